//! Early data that is rejected (RFC 8446 4.2.10): dropped once, record by record.
//!
//! A server cannot decrypt rejected early data, and rustls skips up to 16 KiB of such records. But it leaves them in its input,
//! and counts them again in each call until another record follows: of early data that arrives in pieces, a third or less
//! was too much. So the decrypter of a server's handshake notes what it could not decrypt, and the caller drops that.

use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter,
    Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::{ConnectionTrafficSecrets, Error};

use crate::notes;
use crate::unbuffered::RECORD_HEADER;

/// Whether a record that cannot be decrypted may be early data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EarlyData {
    /// No: a client's session, or a record of the peer's handshake has been decrypted.
    #[default]
    Over,
    /// Yes: a server's session.
    Possible {
        /// The bytes of such records at the front of rustls's input that it has counted, with their headers.
        skipped: usize,
    },
}

/// An algorithm of TLS 1.3 whose decrypters note early data, in a server's handshake alone.
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
            // rustls drops what came before this record, with it.
            _ => EarlyData::Over,
        });
        decrypted
    }
}

/// The bytes at the front of rustls's input that it has skipped in this call and does not want again.
pub(crate) fn take_skipped() -> usize {
    match notes::current().early_data {
        EarlyData::Possible { skipped } if skipped > 0 => {
            notes::early_data(EarlyData::Possible { skipped: 0 });
            skipped
        }
        _ => 0,
    }
}
