//! PEM files (RFC 7468), parsed strictly: Weir uses every block of a file, or rejects the file.
//!
//! A parser that skips unknown text would ignore a revocation list that was joined to another one without a
//! line break. So this parser rejects damaged block boundaries and unexpected blocks. It allows text around
//! blocks.

mod blocks;
mod diagnosis;

use std::fs;
use std::path::Path;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use x509_parser::prelude::{CertificateRevocationList, FromDer as _, X509Certificate};

use crate::FileError;
use blocks::Block;
pub(crate) use diagnosis::why_unusable;

pub(crate) const CERTIFICATE: &str = "not a valid certificate";
pub(crate) const LIST: &str = "not a certificate revocation list";
const KEY: &str = "no usable private key";

/// The names in errors for PEM that is in memory rather than in a file.
pub(crate) const GIVEN_CHAIN: &str = "the given certificates";
pub(crate) const GIVEN_KEY: &str = "the given PEM";

/// The trusted CAs in a PEM file, which must contain nothing else.
pub fn authorities_in(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    Ok(File::read(path)?.authorities()?.1)
}

/// Reads a certificate chain, leaf first, and its private key from two PEM files or a combined one.
pub fn chain_and_key(
    chain: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), FileError> {
    let [chain, key] = [File::read(chain)?, File::read(key)?];
    Ok((chain.chain(&key)?, key.key(&chain, provider)?.der))
}

/// The content of a file.
pub(crate) struct File {
    /// The path, or a name for PEM in memory.
    pub(crate) origin: String,
    pub(crate) content: Vec<u8>,
}

/// A decoded block.
pub(crate) struct Item<T> {
    pub(crate) der: T,
    /// The line of the block's `-----BEGIN`.
    pub(crate) line: usize,
}

impl File {
    pub(crate) fn read(path: &Path) -> Result<Self, FileError> {
        match fs::read(path) {
            Ok(content) => Ok(Self { origin: path.display().to_string(), content }),
            Err(source) => Err(FileError::System { what: "read", path: path.to_owned(), source }),
        }
    }

    /// The CAs in a file that contains nothing else. A CA's private key does not belong on a machine that
    /// only verifies.
    pub(crate) fn authorities(&self) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), FileError> {
        let mut roots = RootCertStore::empty();
        let mut authorities = Vec::new();
        for block in self.blocks(CERTIFICATE)? {
            self.expect_label(&block, CERTIFICATE, blocks::CERTIFICATE)?;
            let der: CertificateDer<'static> = self.decoded(&block, CERTIFICATE)?;
            let why = |error| self.bad_line(CERTIFICATE, block.line, diagnosis::unreadable(&error));
            roots.add(der.clone()).map_err(why)?;
            authorities.push(der);
        }
        match authorities.is_empty() {
            true => Err(self.no_certificate()),
            false => Ok((roots, authorities)),
        }
    }

    /// Reads a chain, leaf first. The file may also contain the key, as for HAProxy.
    pub(crate) fn chain(&self, key: &Self) -> Result<Vec<CertificateDer<'static>>, FileError> {
        let is_combined = self.content == key.content;
        let mut chain = Vec::new();
        for block in self.blocks(CERTIFICATE)? {
            if is_combined && (block.is_key() || block.is_parameters()) {
                continue;
            }
            self.expect_label(&block, CERTIFICATE, blocks::CERTIFICATE)?;
            let der: CertificateDer<'static> = self.decoded(&block, CERTIFICATE)?;
            if !matches!(X509Certificate::from_der(&der), Ok(([], _))) {
                return Err(self.bad_line(CERTIFICATE, block.line, diagnosis::NOT_X509.to_owned()));
            }
            chain.push(der);
        }
        match chain.is_empty() {
            true => Err(self.no_certificate()),
            false => Ok(chain),
        }
    }

    /// The only key in a file, which may also contain the chain. Skips parameter blocks: `openssl ecparam` writes the
    /// curve before the key, although the key also contains the curve, and no supported suite uses finite-field
    /// Diffie-Hellman.
    pub(crate) fn key(
        &self,
        chain: &Self,
        provider: &CryptoProvider,
    ) -> Result<Item<PrivateKeyDer<'static>>, FileError> {
        let is_combined = self.content == chain.content;
        let mut found: Option<Item<_>> = None;
        for block in self.blocks(KEY)? {
            if block.is_parameters() || is_combined && block.label == blocks::CERTIFICATE {
                continue;
            }
            if block.is_encrypted() {
                return Err(self.bad_line(KEY, block.line, diagnosis::encrypted(&self.origin)));
            }
            if !block.is_key() {
                self.expect_label(&block, KEY, blocks::KEY)?;
            }
            if let Some(first) = &found {
                let why = format!("a second private key, after that of line {}: expected one", first.line);
                return Err(self.bad_line(KEY, block.line, why));
            }
            found = Some(Item { der: self.decoded(&block, KEY)?, line: block.line });
        }
        found.ok_or_else(|| self.bad(KEY, diagnosis::why_no_key(&self.origin, &self.content, provider)))
    }

    /// The revocation lists in a file that contains nothing else.
    pub(crate) fn lists(&self) -> Result<Vec<Item<CertificateRevocationListDer<'static>>>, FileError> {
        let mut lists = Vec::new();
        for block in self.blocks(LIST)? {
            self.expect_label(&block, LIST, blocks::LIST)?;
            let der: CertificateRevocationListDer<'static> = self.decoded(&block, LIST)?;
            if !matches!(CertificateRevocationList::from_der(&der), Ok(([], _))) {
                return Err(self.bad_line(LIST, block.line, diagnosis::NOT_X509.to_owned()));
            }
            lists.push(Item { der, line: block.line });
        }
        match lists.is_empty() {
            true => Err(self.bad(LIST, diagnosis::why_no_list(&self.origin, &self.content))),
            false => Ok(lists),
        }
    }

    pub(crate) fn bad(&self, what: &'static str, detail: String) -> FileError {
        FileError::Bad { origin: self.origin.clone(), what, detail }
    }

    pub(crate) fn bad_line(&self, what: &'static str, line: usize, why: String) -> FileError {
        self.bad(what, format!("line {line}: {why}"))
    }

    fn blocks(&self, what: &'static str) -> Result<Vec<Block<'_>>, FileError> {
        blocks::read(&self.content).map_err(|damage| self.bad_line(what, damage.line, damage.why))
    }

    fn expect_label(
        &self,
        block: &Block<'_>,
        what: &'static str,
        expected: &'static str,
    ) -> Result<(), FileError> {
        match block.label == expected {
            true => Ok(()),
            false => {
                Err(self.bad_line(what, block.line, diagnosis::why_not_used(&self.origin, block, expected)))
            }
        }
    }

    fn decoded<T: rustls_pki_types::pem::PemObject>(
        &self,
        block: &Block<'_>,
        what: &'static str,
    ) -> Result<T, FileError> {
        T::from_pem_slice(block.text)
            .map_err(|error| self.bad_line(what, block.line, diagnosis::why_damaged(&error)))
    }

    fn no_certificate(&self) -> FileError {
        self.bad("it contains no certificate", diagnosis::why_no_certificate(&self.origin, &self.content))
    }
}
