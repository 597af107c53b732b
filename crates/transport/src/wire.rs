//! What all connections of a core share.

/// A core's buffers: one for reads, one for records, and a pool for connections that wait.
#[derive(Debug, Default)]
pub struct Wire {
    /// Bytes as read, for TLS. Grows to [`crate::READ_SIZE`] and stays.
    pub(crate) ciphertext: Vec<u8>,
    /// Records for a single write.
    pub(crate) sealed: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl Wire {
    /// An empty buffer, for as long as it is in use.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_else(|| Vec::with_capacity(USUAL))
    }

    /// Takes a buffer back. Those that grew large are freed, so a burst of large messages leaves no memory behind.
    pub fn give_back(&mut self, mut buffer: Vec<u8>) {
        if (1..=LARGEST).contains(&buffer.capacity()) && self.spare.len() < MOST {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

/// A head with a small body.
const USUAL: usize = 2 * 1024;
/// With [`MOST`], at most 16 MiB per core.
const LARGEST: usize = 256 * 1024;
const MOST: usize = 64;
