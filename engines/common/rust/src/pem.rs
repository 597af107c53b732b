//! The scenario's files.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::error::Error;
use crate::names::{Certificate, Named};
use crate::scenario::Primitive;

/// A raw file, for a library that parses PEM itself; `key` is its scenario key.
pub fn text(key: &str, path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| refused(key, path, "a PEM file", error))
}

/// Rejects a chain whose leaf has another kind of key, as a library would accept any.
pub fn check_leaf(chain: &Path, certificate: Certificate) -> Result<(), Error> {
    // The object identifiers of the leaf's key.
    let identifier: &[u8] = match certificate {
        Certificate::Rsa2048 => &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01],
        Certificate::EcdsaP256 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        Certificate::EcdsaP384 => &[0x2b, 0x81, 0x04, 0x00, 0x22],
    };
    let leaf = certificates("chain", chain)?.swap_remove(0);
    if leaf.windows(identifier.len()).any(|part| part == identifier) {
        return Ok(());
    }
    let (chain, kind) = (chain.display(), certificate.name());
    Err(Error::scenario(format!("certificate `{kind}`: the leaf of chain `{chain}` has another kind of key")))
}

/// The certificates in a PEM file, in DER; `key` is its scenario key.
pub fn certificates(key: &str, path: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let refused = |why: &dyn Display| refused(key, path, "PEM with certificates", why);
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| refused(&error))?;
    if certificates.is_empty() {
        return Err(refused(&"it has none"));
    }
    Ok(certificates.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// The PKCS #8 key of an operation that signs or verifies, in DER.
pub fn operation_key(primitive: &Primitive) -> Result<Vec<u8>, Error> {
    let path = primitive.key.as_deref().ok_or_else(|| Error::scenario("key `key` is missing"))?;
    private_key(path)
}

/// The PKCS #8 key in a PEM file, in DER.
pub fn private_key(path: &Path) -> Result<Vec<u8>, Error> {
    let key = PrivatePkcs8KeyDer::from_pem_file(path);
    let key = key.map_err(|error| refused("key", path, "PEM with a PKCS #8 key", error))?;
    Ok(key.secret_pkcs8_der().to_vec())
}

fn refused(key: &str, path: &Path, expected: &str, why: impl Display) -> Error {
    Error::scenario(format!("{key} `{}`: {why}: expected {expected}", path.display()))
}
