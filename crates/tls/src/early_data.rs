//! Rejected early data (RFC 8446 4.2.10): drops each record once.
//!
//! A server cannot decrypt rejected early data, and rustls skips up to 16 KiB of such records. But rustls leaves the
//! skipped records in its input and counts them again in each call until another record follows, so early data in
//! several pieces exceeded the limit at a third of 16 KiB or less. So the decrypter of a server's handshake counts the
//! records that it could not decrypt, and the caller drops these records.

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter,
    Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::{ConnectionTrafficSecrets, Error};

use crate::notes;
use crate::unbuffered::RECORD_HEADER;

/// Whether a record that fails to decrypt may be early data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EarlyData {
    /// No: this is a client's session, or the server has decrypted a record of the client's handshake.
    #[default]
    Over,
    /// Yes: this is a server's session.
    Possible {
        /// The bytes of undecryptable records, with headers, at the front of rustls's input.
        skipped: usize,
    },
}

/// A TLS 1.3 algorithm whose decrypters record early data, but only in a server's handshake.
pub(crate) struct Noting(pub(crate) &'static dyn Tls13AeadAlgorithm);

struct NotingDecrypter(Box<dyn MessageDecrypter>);

impl Tls13AeadAlgorithm for Noting {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        self.0.encrypter(key, iv)
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        let decrypter = self.0.decrypter(key, iv);
        match notes::current().early_data {
            EarlyData::Possible { .. } => Box::new(NotingDecrypter(decrypter)),
            EarlyData::Over => decrypter,
        }
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

impl MessageDecrypter for NotingDecrypter {
    fn decrypt<'a>(
        &mut self,
        record: InboundOpaqueMessage<'a>,
        number: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let bytes = RECORD_HEADER + record.payload.len();
        let decrypted = self.0.decrypt(record, number);
        notes::early_data(match (notes::current().early_data, &decrypted) {
            (EarlyData::Possible { skipped }, Err(_)) => EarlyData::Possible { skipped: skipped + bytes },
            // rustls drops the skipped records together with this one.
            _ => EarlyData::Over,
        });
        decrypted
    }
}

/// Takes the number of bytes at the front of rustls's input that rustls skipped in this call; the caller drops them.
pub(crate) fn take_skipped() -> usize {
    match notes::current().early_data {
        EarlyData::Possible { skipped } if skipped > 0 => {
            notes::early_data(EarlyData::Possible { skipped: 0 });
            skipped
        }
        _ => 0,
    }
}
