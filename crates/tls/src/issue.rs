//! A private CA with its certificates and revocation lists, for the test server and for tests. Not for production,
//! since the CA's key is discarded.

mod ocsp;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, RsaKeySize, SerialNumber,
    date_time_ymd,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::Identity;
pub use ocsp::{Signer, Status};

/// The kind of a certificate's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA on P-256: by far the cheapest to sign with.
    #[default]
    EcdsaP256,
    /// ECDSA on P-384.
    EcdsaP384,
    /// Ed25519.
    Ed25519,
    /// RSA with 2048 bits.
    Rsa2048,
    /// RSA with 3072 bits.
    Rsa3072,
    /// RSA with 4096 bits.
    Rsa4096,
}

impl KeyKind {
    fn generate(self) -> Result<KeyPair, rcgen::Error> {
        match self {
            Self::EcdsaP256 => KeyPair::generate(),
            Self::EcdsaP384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
            Self::Ed25519 => KeyPair::generate_for(&rcgen::PKCS_ED25519),
            Self::Rsa2048 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
            Self::Rsa3072 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_3072),
            Self::Rsa4096 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_4096),
        }
    }
}

/// The reason for a failure to issue a certificate.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// Invalid names, a CA from an intermediate, or a failure of the crypto backend.
    #[error("cannot issue a certificate for {names}: {detail}")]
    Refused {
        /// The requested names.
        names: String,
        /// The reason, as text.
        detail: String,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Unwritable {
        /// The file that cannot be written.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A new CA, in memory.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The root certificate.
    root: String,
    /// The certificates of this CA and of its issuers, without the root; empty for the root.
    between: String,
    /// The kind of CA keys.
    kind: KeyKind,
}

impl Authority {
    /// Creates a CA with a random ECDSA P-256 key.
    pub fn new() -> Result<Self, IssueError> {
        Self::with_keys(KeyKind::default())
    }

    /// Creates a CA with a random key of this kind, also used for its intermediates.
    pub fn with_keys(kind: KeyKind) -> Result<Self, IssueError> {
        let made = || {
            let (params, key) = authority(1, kind)?;
            let root = params.self_signed(&key)?.pem();
            Ok(Self { issuer: Issuer::new(params, key), root, between: String::new(), kind })
        };
        made().map_err(|error| refused(&["an authority"], &error))
    }

    /// Creates an intermediate CA signed by this one, which must be a root: the intermediate's chains contain one more
    /// certificate.
    pub fn intermediate(&self) -> Result<Self, IssueError> {
        if !self.between.is_empty() {
            let detail = "an intermediate cannot issue a CA".to_owned();
            return Err(IssueError::Refused { names: "an intermediate authority".to_owned(), detail });
        }
        let made = || {
            let (mut params, key) = authority(0, self.kind)?;
            params.use_authority_key_identifier_extension = true;
            let between = params.signed_by(&key, &self.issuer)?.pem();
            Ok(Self { issuer: Issuer::new(params, key), root: self.root.clone(), between, kind: self.kind })
        };
        made().map_err(|error| refused(&["an intermediate authority"], &error))
    }

    /// Returns the root certificate as PEM, for peers to trust.
    pub fn ca_pem(&self) -> &str {
        &self.root
    }

    /// Issues a certificate for DNS names and IP addresses, for servers and clients, valid from 2020 to 2049.
    pub fn issue(&self, names: &[&str], kind: KeyKind) -> Result<Issued, IssueError> {
        self.issued(names, kind).map_err(|error| refused(names, &error))
    }

    /// Issues a revocation list (PEM) with these certificates of this CA. The list is valid from the start of the first
    /// year to the start of the second.
    pub fn revocation_list(
        &self,
        revoked: &[&Issued],
        (this_update, next_update): (i32, i32),
    ) -> Result<String, IssueError> {
        let list = || {
            let revoked = revoked.iter().map(|issued| {
                Ok(RevokedCertParams {
                    serial_number: SerialNumber::from_slice(&issued.serial()?),
                    revocation_time: date_time_ymd(2020, 1, 1),
                    reason_code: None,
                    invalidity_date: None,
                })
            });
            let list = CertificateRevocationListParams {
                this_update: date_time_ymd(this_update, 1, 1),
                next_update: date_time_ymd(next_update, 1, 1),
                crl_number: SerialNumber::from(1),
                issuing_distribution_point: None,
                revoked_certs: revoked.collect::<Result<_, rcgen::Error>>()?,
                key_identifier_method: KeyIdMethod::Sha256,
            };
            list.signed_by(&self.issuer)?.pem()
        };
        list().map_err(|error| refused(&["a revocation list"], &error))
    }

    fn issued(&self, names: &[&str], kind: KeyKind) -> Result<Issued, rcgen::Error> {
        let names = names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut params = CertificateParams::new(names.clone())?;
        if let Some(name) = names.into_iter().next() {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        valid(&mut params);
        let key = kind.generate()?;
        let certificates = params.signed_by(&key, &self.issuer)?.pem() + &self.between;
        Ok(Issued { ca: self.root.clone(), certificates, key: key.serialize_pem() })
    }
}

/// A certificate with its key and the root's certificate, all PEM.
#[derive(Clone)]
pub struct Issued {
    /// The root certificate.
    pub ca: String,
    /// The chain to present: the certificate, and the intermediate CA's certificate, if any.
    pub certificates: String,
    /// The private key, PKCS#8.
    pub key: String,
}

/// The files written by [`Issued::write_to`].
#[derive(Clone, Debug)]
pub struct Files {
    /// The root certificate, `ca.pem`.
    pub ca: PathBuf,
    /// The chain, `cert.pem`.
    pub certificates: PathBuf,
    /// The private key, `key.pem`, readable by its owner only.
    pub key: PathBuf,
}

impl Issued {
    /// The certificate and key as an identity to present.
    pub fn identity(&self) -> Identity {
        Identity::Pem { certificates: self.certificates.clone(), key: self.key.clone() }
    }

    fn serial(&self) -> Result<Vec<u8>, rcgen::Error> {
        let leaf = CertificateDer::from_pem_slice(self.certificates.as_bytes());
        let leaf = leaf.map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
        let parsed = X509Certificate::from_der(&leaf);
        Ok(parsed.map_err(|_| rcgen::Error::CouldNotParseCertificate)?.1.raw_serial().to_vec())
    }

    /// Writes `ca.pem`, `cert.pem` and `key.pem` (mode 0600) to an existing directory, replacing files of
    /// these names.
    pub fn write_to(&self, directory: &Path) -> Result<Files, IssueError> {
        let files = Files {
            ca: directory.join("ca.pem"),
            certificates: directory.join("cert.pem"),
            key: directory.join("key.pem"),
        };
        for (path, content, mode) in [
            (&files.ca, &self.ca, 0o644),
            (&files.certificates, &self.certificates, 0o644),
            (&files.key, &self.key, 0o600),
        ] {
            write(path, content, mode)
                .map_err(|source| IssueError::Unwritable { path: path.clone(), source })?;
        }
        Ok(files)
    }
}

/// Issues a certificate for `names` from a new CA.
pub fn issue(names: &[&str], kind: KeyKind) -> Result<Issued, IssueError> {
    Authority::new()?.issue(names, kind)
}

/// The parameters and the key of a CA with path length `below`.
fn authority(below: u8, kind: KeyKind) -> Result<(CertificateParams, KeyPair), rcgen::Error> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(below));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = kind.generate()?;
    // A unique name, so that trusting another test CA fails with "unknown issuer", not "bad signature".
    let id = digest::digest(&digest::SHA256, key.public_key_raw());
    let id = id.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>();
    params.distinguished_name.push(DnType::CommonName, format!("Weir test authority {id}"));
    valid(&mut params);
    Ok((params, key))
}

/// Writes a new file. Removes an old one first, since `mode` applies only to a new file.
fn write(path: &Path, content: &str, mode: u32) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(content.as_bytes())
}

/// Sets a long validity, since the key lives no longer than its process or its directory.
fn valid(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2049, 12, 31);
}

fn refused(names: &[&str], error: &rcgen::Error) -> IssueError {
    IssueError::Refused { names: names.join(", "), detail: error.to_string() }
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued").field("certificates", &self.certificates).finish_non_exhaustive()
    }
}
