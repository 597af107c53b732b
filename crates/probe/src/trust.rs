//! The probe's trust anchors, and recording the server's certificate. It continues whatever the verdict, which
//! is part of the report.

use crate::{Options, ProbeError, Sni, names};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use serde::Serialize;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_tls::{FileError, Roots, Suite, TlsError};

/// The verdict on the server's certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verification {
    /// Trusted for the expected name.
    Verified,
    /// Not trusted.
    Refused {
        /// The reason, as a stable name: `expired`, `not_valid_yet`, `unknown_issuer`, `wrong_name`, `revoked`,
        /// `bad_signature`, `bad_encoding`, `wrong_purpose`, `other`.
        reason: &'static str,
        /// The reason, as text.
        detail: String,
    },
    /// Not checked.
    NotChecked {
        /// The reason.
        detail: String,
    },
}

/// The CAs, the name and the client certificate.
pub(crate) struct Trust {
    pub(crate) provider: Arc<CryptoProvider>,
    pub(crate) name: ServerName<'static>,
    /// The name to send, if any.
    pub(crate) sent_name: Option<String>,
    identity: Option<Arc<CertifiedKey>>,
    judge: Result<Arc<WebPkiServerVerifier>, String>,
}

/// Observations during a handshake.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) chain: Vec<Vec<u8>>,
    /// Size of the stapled OCSP response in bytes.
    pub(crate) ocsp: Vec<u8>,
    /// The server's signature scheme.
    pub(crate) scheme: Option<SignatureScheme>,
    pub(crate) asks_certificate: bool,
}

/// Accepts every certificate, offers only the given schemes, and records observations.
#[derive(Debug)]
pub(crate) struct Witness {
    provider: Arc<CryptoProvider>,
    schemes: Vec<SignatureScheme>,
    identity: Option<Arc<CertifiedKey>>,
    seen: Mutex<Seen>,
}

impl Trust {
    pub(crate) fn new(options: &Options) -> Result<Self, ProbeError> {
        let mut provider = aws_lc_rs::default_provider();
        // In the order of `weir load`, for servers that honour the client's preference.
        let place = |name: String| Suite::ALL.iter().position(|suite| suite.name() == name);
        provider.cipher_suites.sort_by_key(|suite| place(names::suite(suite.suite().into())));
        let provider = Arc::new(provider);
        let asked_for = match &options.sni {
            Sni::Name(name) => name,
            Sni::Host | Sni::None => &options.server.host,
        };
        let wrong = |_| ProbeError::Name(asked_for.clone());
        let name = ServerName::try_from(asked_for.clone()).map_err(wrong)?;
        // RFC 6066 3: an address is not sent as SNI.
        let sent_name = match (&name, &options.sni) {
            (ServerName::DnsName(name), Sni::Host | Sni::Name(_)) => {
                Some(name.as_ref().trim_end_matches('.').to_owned())
            }
            _ => None,
        };
        let judge = match &options.roots {
            Roots::DangerouslyNone => Err("disabled by -k".to_owned()),
            Roots::File(path) => Ok(judge(roots_in(path)?, &provider)?),
            Roots::Native => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                match roots.is_empty() {
                    true => Err("the system has no trusted CAs; use --cacert FILE".to_owned()),
                    false => Ok(judge(roots, &provider)?),
                }
            }
        };
        let identity = match &options.identity {
            Some((certificates, key)) => Some(Arc::new(identity(certificates, key, &provider)?)),
            None => None,
        };
        Ok(Self { provider, name, sent_name, identity, judge })
    }

    /// A recorder of handshakes that offer these schemes; all if none.
    pub(crate) fn witness(&self, schemes: &[SignatureScheme]) -> Arc<Witness> {
        let all = self.provider.signature_verification_algorithms.supported_schemes();
        Arc::new(Witness {
            provider: self.provider.clone(),
            schemes: if schemes.is_empty() { all } else { schemes.to_vec() },
            identity: self.identity.clone(),
            seen: Mutex::default(),
        })
    }

    pub(crate) fn presents_certificate(&self) -> bool {
        self.identity.is_some()
    }

    /// Verifies a chain, leaf first.
    pub(crate) fn verify(&self, chain: &[Vec<u8>], ocsp: &[u8]) -> Verification {
        let judge = match &self.judge {
            Ok(judge) => judge,
            Err(why) => return Verification::NotChecked { detail: why.clone() },
        };
        let chain = chain.iter().map(|der| CertificateDer::from(der.as_slice())).collect::<Vec<_>>();
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Verification::NotChecked { detail: "the server sent no certificate".to_owned() };
        };
        match judge.verify_server_cert(leaf, intermediates, &self.name, ocsp, UnixTime::now()) {
            Ok(_) => Verification::Verified,
            Err(error) => {
                let detail = detail(&error);
                let reason = TlsError::from(error).reason();
                Verification::Refused {
                    reason: reason.strip_prefix("certificate_").unwrap_or("other"),
                    detail,
                }
            }
        }
    }
}

impl Witness {
    pub(crate) fn seen(&self) -> Seen {
        self.noting().clone()
    }

    fn noting(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut seen = self.noting();
        seen.chain = [end_entity].into_iter().chain(intermediates).map(|der| der.to_vec()).collect();
        seen.ocsp = ocsp_response.to_vec();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.noting().scheme = Some(signed.scheme);
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.noting().scheme = Some(signed.scheme);
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

impl ResolvesClientCert for Witness {
    fn resolve(
        &self,
        _root_hint_subjects: &[&[u8]],
        _sigschemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        self.noting().asks_certificate = true;
        self.identity.clone()
    }

    /// Even without one: otherwise the request for a certificate goes unnoticed.
    fn has_certs(&self) -> bool {
        true
    }
}

fn judge(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, ProbeError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| ProbeError::Internal(error.to_string()))
}

fn detail(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) if weir_tls::is_ca_as_server(why) => {
            "the server's own certificate is a CA certificate (CA:TRUE)".to_owned()
        }
        Error::InvalidCertificate(why) => why.to_string(),
        other => other.to_string(),
    }
}

fn roots_in(path: &Path) -> Result<RootCertStore, ProbeError> {
    let mut roots = RootCertStore::empty();
    for authority in weir_tls::authorities_in(path)? {
        roots.add(authority).map_err(|error| ProbeError::Internal(error.to_string()))?;
    }
    Ok(roots)
}

fn identity(certificates: &Path, key: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, ProbeError> {
    let (chain, der) = weir_tls::chain_and_key(certificates, key, provider)?;
    CertifiedKey::from_der(chain, der, provider).map_err(|error| {
        let detail = error.to_string();
        FileError::Bad { origin: key.display().to_string(), what: "no key for that certificate", detail }
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
    use std::time::Duration;

    /// A chain for a.test that ends in the given year, from a trusted or untrusted CA.
    fn verdict(host: &str, last_year: i32, trusted: bool) -> Verification {
        let key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = authority.self_signed(&key).unwrap().der().clone();
        let issuer = Issuer::new(authority, key);
        let mut leaf = CertificateParams::new(["a.test".to_owned()]).unwrap();
        (leaf.not_before, leaf.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(last_year, 1, 1));
        let leaf = leaf.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().der().to_vec();
        let options = Options {
            server: format!("https://{host}").parse().unwrap(),
            sni: Sni::Host,
            roots: Roots::DangerouslyNone,
            identity: None,
            tries: 1,
            timeout: Duration::from_secs(1),
        };
        let mut trust = Trust::new(&options).unwrap();
        assert_eq!(trust.sent_name.as_deref(), Some(host));
        let mut roots = RootCertStore::empty();
        roots.add(if trusted { root } else { of_somebody_else() }).unwrap();
        trust.judge = Ok(judge(roots, &trust.provider).unwrap());
        trust.verify(&[leaf], &[])
    }

    fn of_somebody_else() -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "somebody else");
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    #[test]
    fn why_a_certificate_is_refused() {
        assert_eq!(verdict("a.test", 2049, true), Verification::Verified);
        for (host, last_year, trusted, expected) in [
            ("b.test", 2049, true, "wrong_name"),
            ("a.test", 2021, true, "expired"),
            ("a.test", 2049, false, "unknown_issuer"),
        ] {
            match verdict(host, last_year, trusted) {
                Verification::Refused { reason, detail } => assert_eq!(reason, expected, "{detail}"),
                other => panic!("{expected}: {other:?}"),
            }
        }
    }
}
