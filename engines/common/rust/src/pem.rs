//! The files that a scenario names.

use std::path::Path;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::error::Error;

/// The certificates in a PEM file, in DER; `key` is what the scenario calls it.
pub fn certificates(key: &str, path: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let refused = |why: &dyn std::fmt::Display| {
        Error::scenario(format!("{key} `{}`: PEM with certificates is allowed: {why}", path.display()))
    };
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| refused(&error))?;
    if certificates.is_empty() {
        return Err(refused(&"it has none"));
    }
    Ok(certificates.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// The PKCS #8 key in a PEM file, in DER.
pub fn private_key(path: &Path) -> Result<Vec<u8>, Error> {
    match PrivatePkcs8KeyDer::from_pem_file(path) {
        Ok(key) => Ok(key.secret_pkcs8_der().to_vec()),
        Err(error) => Err(Error::scenario(format!(
            "key `{}`: PEM with a PKCS #8 key is allowed: {error}",
            path.display()
        ))),
    }
}
