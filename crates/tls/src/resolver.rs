//! Which certificate a client gets: by the name that it asks for, then by what it can verify, then by cost.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, SignatureAlgorithm};

use crate::{FileError, Presented, SettingsError};

/// The certificates of a server by name, shared by all cores.
#[derive(Debug)]
pub(crate) struct Resolver {
    exact: HashMap<Box<str>, Choices>,
    /// By what follows the `*.`.
    below: HashMap<Box<str>, Choices>,
    /// For clients that ask for no name, or for an unknown one.
    default: Choices,
    strict: bool,
}

/// Certificates for one name, the cheapest to sign with first; each has another kind of key.
#[derive(Clone, Debug, Default)]
struct Choices(Vec<Choice>);

#[derive(Clone, Debug)]
struct Choice {
    certified: Arc<CertifiedKey>,
    algorithm: SignatureAlgorithm,
    cost: u32,
    /// Its file, for messages.
    origin: String,
}

impl Resolver {
    /// The first certificate, with others for its names, is the default. Errors: two with one kind of key for one name.
    pub(crate) fn new(
        certificates: &[(CertifiedKey, Presented)],
        strict: bool,
    ) -> Result<Self, SettingsError> {
        let mut resolver =
            Self { exact: HashMap::new(), below: HashMap::new(), default: Choices::default(), strict };
        for (certified, presented) in certificates {
            let choice = Choice {
                certified: Arc::new(certified.clone()),
                algorithm: certified.key.algorithm(),
                cost: presented.key.cost(),
                origin: presented.origin.clone(),
            };
            for name in &presented.names {
                let choices = match name.strip_prefix("*.") {
                    Some(domain) => resolver.below.entry(domain.into()).or_default(),
                    None => resolver.exact.entry(name.as_str().into()).or_default(),
                };
                choices.add(name, choice.clone())?;
            }
            if resolver.default.0.is_empty() {
                resolver.default.0.push(choice);
            }
        }
        let names = certificates.first().map(|(_, presented)| &presented.names[..]).unwrap_or_default();
        if let Some(choices) = names.first().and_then(|name| resolver.named(name)) {
            resolver.default = choices.clone();
        }
        Ok(resolver)
    }

    /// RFC 6066 section 3 does not say what a wildcard covers; RFC 9525 section 6.3 does: one label.
    fn named(&self, name: &str) -> Option<&Choices> {
        let below = || self.below.get(name.split_once('.')?.1);
        match name.strip_prefix("*.") {
            Some(domain) => self.below.get(domain),
            None => self.exact.get(name).or_else(below),
        }
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // rustls gives the name in lower case.
        let named = hello.server_name().and_then(|name| self.named(name));
        let choices = match named {
            None if self.strict => return None,
            named => named.unwrap_or(&self.default),
        };
        if let [only] = &choices.0[..] {
            return Some(Arc::clone(&only.certified));
        }
        let fitting = choices.0.iter().find(|choice| choice.fits(&hello)).or_else(|| choices.0.first());
        fitting.map(|choice| Arc::clone(&choice.certified))
    }
}

impl Choices {
    fn add(&mut self, name: &str, choice: Choice) -> Result<(), SettingsError> {
        if let Some(other) = self.0.iter().find(|other| other.algorithm == choice.algorithm) {
            return Err(FileError::SameName {
                name: name.to_owned(),
                first: other.origin.clone(),
                second: choice.origin,
            }
            .into());
        }
        self.0.push(choice);
        self.0.sort_by_key(|choice| choice.cost);
        Ok(())
    }
}

impl Choice {
    /// Whether the client can verify its signature, and has a suite for it.
    fn fits(&self, hello: &ClientHello<'_>) -> bool {
        self.certified.key.choose_scheme(hello.signature_schemes()).is_some()
            && hello.cipher_suites().iter().any(|suite| self.has_suite(*suite))
    }

    /// In TLS 1.2 the suite names the kind of key (RFC 5246 section 7.4.2).
    fn has_suite(&self, suite: CipherSuite) -> bool {
        use CipherSuite as C;
        match suite {
            C::TLS13_AES_128_GCM_SHA256 | C::TLS13_AES_256_GCM_SHA384 | C::TLS13_CHACHA20_POLY1305_SHA256 => {
                true
            }
            C::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
            | C::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
            | C::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => self.algorithm == SignatureAlgorithm::RSA,
            C::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
            | C::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
            | C::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => self.algorithm != SignatureAlgorithm::RSA,
            _ => false,
        }
    }
}
