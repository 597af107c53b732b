//! Buffers shared by all connections of a core.

use crate::READ_SIZE;

/// A core's buffers: one for reads, one for records, and a pool for connections with unsent bytes.
#[derive(Debug)]
pub struct Wire {
    /// The size of a read, in bytes.
    pub(crate) read_size: usize,
    /// Bytes as read from a TLS connection. The buffer grows to the size of a read, and keeps it.
    pub(crate) ciphertext: Vec<u8>,
    /// TLS records for a single write.
    pub(crate) sealed: Vec<u8>,
    pub(crate) flights: u64,
    spare: Vec<Vec<u8>>,
}

impl Default for Wire {
    fn default() -> Self {
        Self::with_read_size(READ_SIZE)
    }
}

impl Wire {
    /// Buffers for reads of about `read_size` bytes; the default is [`READ_SIZE`].
    pub fn with_read_size(read_size: usize) -> Self {
        Self { read_size, ciphertext: Vec::new(), sealed: Vec::new(), flights: 0, spare: Vec::new() }
    }

    /// The number of handshake flights produced so far. Flights take almost all CPU time of a handshake.
    pub fn flights(&self) -> u64 {
        self.flights
    }

    /// An empty buffer from the pool, to be returned with [`Wire::give_back`].
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_else(|| Vec::with_capacity(USUAL))
    }

    /// Frees the buffers in the pool.
    pub fn shed(&mut self) {
        self.spare = Vec::new();
    }

    /// Returns a buffer to the pool, or frees it if the pool is full or the buffer exceeds 256 KiB, so that memory use
    /// drops after a burst of large messages.
    pub fn give_back(&mut self, mut buffer: Vec<u8>) {
        if (1..=LARGEST).contains(&buffer.capacity()) && self.spare.len() < MOST {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

/// The initial capacity of a buffer in bytes: enough for a head with a small body.
const USUAL: usize = 2 * 1024;
/// The maximum capacity of a buffer in the pool, in bytes. With [`MOST`] buffers, the pool takes at most 16 MiB per
/// core.
const LARGEST: usize = 256 * 1024;
const MOST: usize = 64;
