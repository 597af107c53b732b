//! Selecting a server's certificate: of those that the client can verify, the one with the most specific
//! name, then the cheapest.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::notes;
use crate::{Certificate, Curves, FileError, ServerSettings, SettingsError, Suite, TimeProvider, Version};

/// A server's certificates by name, shared by all cores.
#[derive(Debug)]
pub(crate) struct Resolver {
    exact: HashMap<Box<str>, Choices>,
    /// The certificates for wildcards, by the name after `*.`.
    below: HashMap<Box<str>, Choices>,
    /// The certificates for clients that send no name, or an unknown one.
    default: Choices,
    strict: bool,
    /// The suites that the server accepts.
    suites: Vec<Suite>,
    /// The number of certificates.
    certificates: usize,
    /// The implementation that signs.
    curves: Curves,
    /// The clock for the validity of OCSP responses.
    time: Arc<dyn TimeProvider>,
}

/// The certificates for one name with different kinds of keys, the cheapest to sign with first.
#[derive(Clone, Debug, Default)]
struct Choices(Vec<Choice>);

#[derive(Clone, Debug)]
struct Choice {
    /// The index in the server's certificates.
    number: u32,
    certificate: Certificate,
}

impl Resolver {
    /// Uses the first certificate and the other certificates for its first name by default. Fails if two certificates
    /// for one name have the same kind of key.
    pub(crate) fn new(
        certificates: &[Certificate],
        settings: &ServerSettings,
    ) -> Result<Self, SettingsError> {
        let mut resolver = Self {
            exact: HashMap::new(),
            below: HashMap::new(),
            default: Choices::default(),
            strict: settings.strict_names,
            suites: settings.suites.clone(),
            certificates: certificates.len(),
            curves: settings.curves,
            time: Arc::clone(&settings.time),
        };
        for (number, certificate) in (0..).zip(certificates) {
            let choice = Choice { number, certificate: certificate.clone() };
            for name in &certificate.presented().names {
                let choices = match name.strip_prefix("*.") {
                    Some(domain) => resolver.below.entry(domain.into()).or_default(),
                    None => resolver.exact.entry(name.as_str().into()).or_default(),
                };
                choices.add(name, &choice)?;
            }
            if resolver.default.0.is_empty() {
                resolver.default.0.push(choice);
            }
        }
        let names = certificates.first().map(|first| &first.presented().names[..]).unwrap_or_default();
        let named = names.first().and_then(|name| match name.strip_prefix("*.") {
            Some(domain) => resolver.below.get(domain),
            None => resolver.exact.get(name.as_str()),
        });
        if let Some(choices) = named {
            resolver.default = choices.clone();
        }
        Ok(resolver)
    }

    /// The certificate for a client that asks for `name`, and whether the certificate covers that name. `None`: names
    /// are strict, and no certificate covers `name`.
    fn choose(&self, name: Option<&str>, hello: &ClientHello<'_>) -> Option<(&Choice, bool)> {
        let covering =
            || name.into_iter().flat_map(|name| self.covering(name)).flat_map(|choices| &choices.0);
        let default = || (!self.strict).then_some(&self.default).into_iter().flat_map(|choices| &choices.0);
        let number_covers = |number| covering().any(|choice| choice.number == number);
        let first = covering().chain(default()).next()?;
        let is_only = covering().chain(default()).all(|choice| choice.number == first.number);
        let chosen = match is_only {
            true => first,
            false => {
                let best = self.best(covering(), hello).or_else(|| self.best(default(), hello));
                best.unwrap_or(first)
            }
        };
        Some((chosen, number_covers(chosen.number)))
    }

    /// The first of these certificates that the client can use. A TLS 1.2 client lists the curves of keys among its
    /// groups (RFC 8422 section 5.1), but many clients accept unlisted curves, too. So certificates with an unlisted
    /// curve come last.
    fn best<'a>(
        &self,
        choices: impl Iterator<Item = &'a Choice> + Clone,
        hello: &ClientHello<'_>,
    ) -> Option<&'a Choice> {
        let mut usable = choices.filter(|choice| self.is_usable(choice, hello));
        let is_listed =
            |choice: &&Choice| match (choice.certificate.presented().key.curve(), hello.named_groups()) {
                (Some(curve), Some(groups)) => groups.contains(&curve) || self.is_tls13(hello),
                (Some(_) | None, None) | (None, Some(_)) => true,
            };
        usable.clone().find(is_listed).or_else(|| usable.next())
    }

    /// The certificates whose names cover `name`, the most specific name first. A wildcard covers one label: RFC
    /// 6066 section 3 does not say so, but RFC 9525 section 6.3 does.
    fn covering(&self, name: &str) -> impl Iterator<Item = &Choices> + Clone {
        let below = name.split_once('.').and_then(|(_, domain)| self.below.get(domain));
        self.exact.get(name).into_iter().chain(below)
    }

    /// Whether there are several certificates among which a name selects.
    pub(crate) fn has_choice(&self) -> bool {
        self.certificates > 1
    }

    /// Whether other certificates cover `name`, but certificate number `certificate` does not.
    pub(crate) fn is_for_another(&self, certificate: u32, name: &str) -> bool {
        let mut covering = self.covering(name).flat_map(|choices| &choices.0).peekable();
        covering.peek().is_some() && covering.all(|choice| choice.number != certificate)
    }

    /// Whether the client can verify the certificate's signature and has a suite for it.
    fn is_usable(&self, choice: &Choice, hello: &ClientHello<'_>) -> bool {
        let Some(signer) = choice.certificate.bare().key.choose_scheme(hello.signature_schemes()) else {
            return false;
        };
        if self.is_tls13(hello) {
            // In TLS 1.3, PKCS#1 1.5 is for certificates only (RFC 8446 section 4.2.3).
            use SignatureScheme as S;
            return !matches!(
                signer.scheme(),
                S::RSA_PKCS1_SHA256 | S::RSA_PKCS1_SHA384 | S::RSA_PKCS1_SHA512
            );
        }
        // In TLS 1.2 the suite determines the kind of key (RFC 5246 section 7.4.2).
        let algorithm = choice.certificate.algorithm();
        self.common(hello).any(|suite| suite.rustls().usable_for_signature_algorithm(algorithm))
    }

    /// Whether the handshake will use TLS 1.3.
    fn is_tls13(&self, hello: &ClientHello<'_>) -> bool {
        self.common(hello).any(|suite| suite.version() == Version::Tls13)
    }

    /// The suites that the client offers and the server accepts.
    fn common(&self, hello: &ClientHello<'_>) -> impl Iterator<Item = &Suite> {
        self.suites.iter().filter(|suite| hello.cipher_suites().contains(&suite.rustls().suite()))
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // rustls returns the name in lower case, but with a trailing dot if the client sends one. RFC 6066
        // section 3 forbids the dot; in DNS it does not change the name.
        let name = hello.server_name().map(|name| name.strip_suffix('.').unwrap_or(name));
        let (chosen, is_covering) = self.choose(name, &hello)?;
        if name.is_some() {
            notes::named(chosen.number, is_covering);
        }
        Some(Arc::clone(chosen.certificate.certified(self.curves, &*self.time)))
    }
}

impl Choices {
    fn add(&mut self, name: &str, choice: &Choice) -> Result<(), SettingsError> {
        if self.0.iter().any(|other| other.number == choice.number) {
            // Nothing to do: a certificate may contain a name twice.
            return Ok(());
        }
        let presented = choice.certificate.presented();
        let mut others = self.0.iter().map(|other| other.certificate.presented());
        if let Some(other) = others.find(|other| other.key.is_alike(presented.key)) {
            return Err(FileError::SameName {
                name: name.to_owned(),
                first: other.origin.clone(),
                second: presented.origin.clone(),
            }
            .into());
        }
        // Most names have a single certificate, so allocate room for exactly one more.
        self.0.reserve_exact(1);
        self.0.push(choice.clone());
        self.0.sort_by_key(|choice| choice.certificate.presented().key.cost());
        Ok(())
    }
}
