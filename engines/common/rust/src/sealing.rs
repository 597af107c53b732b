//! Sealing and opening a record repeatedly with a library's cipher.

use crate::error::Error;
use crate::stack::Operate;

/// A record cipher with its key set.
pub trait Cipher {
    /// The tag after a sealed record.
    type Tag: AsRef<[u8]>;

    /// Encrypts a record in place; authenticates it and [`HEADER`].
    fn seal(&self, nonce: [u8; 12], record: &mut [u8]) -> Result<Self::Tag, Error>;

    /// Decrypts a record, with its tag after it, in place.
    fn open(&self, nonce: [u8; 12], sealed: &mut [u8]) -> Result<(), Error>;
}

/// The header of a TLS 1.3 record, which is authenticated with it.
pub const HEADER: [u8; 5] = [23, 3, 3, 64, 17];

/// Seals a record of this many bytes, each time with a new nonce.
pub fn seal<C: Cipher + 'static>(cipher: C, record: usize) -> Box<dyn Operate> {
    let (mut count, mut record) = (0, plain(record));
    Box::new(move || {
        count += 1;
        cipher.seal(nonce(count), &mut record).map(drop)
    })
}

/// Opens a record of this many bytes.
pub fn open<C: Cipher + 'static>(cipher: C, record: usize) -> Result<Box<dyn Operate>, Error> {
    let mut sealed = plain(record);
    let tag = cipher.seal(nonce(0), &mut sealed)?;
    sealed.extend_from_slice(tag.as_ref());
    Ok(Box::new(Open { cipher, sealed, records: Vec::new(), next: 0 }))
}

fn plain(record: usize) -> Vec<u8> {
    vec![0x55; record]
}

fn nonce(count: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&count.to_be_bytes());
    nonce
}

/// A record is opened in place, so each call needs its own sealed record.
struct Open<C> {
    cipher: C,
    sealed: Vec<u8>,
    records: Vec<u8>,
    next: usize,
}

impl<C: Cipher> Operate for Open<C> {
    fn prepare(&mut self, times: usize) -> Result<(), Error> {
        self.records.clear();
        for _ in 0..times {
            self.records.extend_from_slice(&self.sealed);
        }
        self.next = 0;
        Ok(())
    }

    fn run(&mut self) -> Result<(), Error> {
        let end = self.next + self.sealed.len();
        let record = self.records.get_mut(self.next..end);
        let record = record.ok_or_else(|| Error::runner("operation", "not prepared"))?;
        self.next = end;
        self.cipher.open(nonce(0), record)
    }
}
