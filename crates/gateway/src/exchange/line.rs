//! What the log says of a request.

/// A request line for the log, of fixed size: no allocation for successful requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLine {
    bytes: [u8; RequestLine::LEN],
    len: u8,
}

impl RequestLine {
    const LEN: usize = 47;

    pub(crate) fn new(method: &[u8], target: &[u8]) -> Self {
        let mut line = Self { bytes: [0; Self::LEN], len: 0 };
        for part in [method, b" ", target] {
            let start = line.len as usize;
            let taken = part.len().min(Self::LEN - start);
            line.bytes[start..start + taken].copy_from_slice(&part[..taken]);
            line.len += taken as u8;
        }
        line
    }

    pub(crate) fn as_str(&self) -> &str {
        // The parser only accepts ASCII.
        std::str::from_utf8(&self.bytes[..self.len as usize]).unwrap_or("?")
    }
}
