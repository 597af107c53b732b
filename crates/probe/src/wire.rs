//! TLS records (RFC 8446 5.1), numbers (big endian) and length-prefixed vectors (RFC 8446 3).

/// The content of a record.
pub(crate) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(crate) const ALERT: u8 = 21;
pub(crate) const HANDSHAKE: u8 = 22;
pub(crate) const APPLICATION_DATA: u8 = 23;

/// The kind of a record, its version, and the length of what follows.
pub(crate) const RECORD_HEADER: usize = 5;

/// Takes the first record from the received bytes; `None` until it is complete.
pub(crate) fn take_record(received: &mut Vec<u8>) -> Option<Vec<u8>> {
    let header = received.first_chunk::<RECORD_HEADER>()?;
    let length = RECORD_HEADER + usize::from(u16::from_be_bytes([header[3], header[4]]));
    if received.len() < length {
        return None;
    }
    let rest = received.split_off(length);
    Some(std::mem::replace(received, rest))
}

/// A cursor over bytes; reads past the end are `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of `N` bytes, at most four.
    pub(crate) fn number<const N: usize>(&mut self) -> Option<u32> {
        let bytes = self.take(N)?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A vector with a length prefix of `N` bytes.
    pub(crate) fn vector<const N: usize>(&mut self) -> Option<Self> {
        let length = self.number::<N>()?;
        self.take(length as usize).map(Self)
    }

    /// The extensions of a message, as number and body. Ends with `None` at the first malformed one.
    pub(crate) fn extensions(mut self) -> impl Iterator<Item = Option<(u16, Bytes<'a>)>> {
        std::iter::from_fn(move || {
            if self.is_empty() {
                return None;
            }
            let extension = self.u16().zip(self.vector::<2>());
            if extension.is_none() {
                self.0 = &[];
            }
            Some(extension)
        })
    }
}

/// Writes the output of `content` with a length prefix of `N` bytes.
pub(crate) fn vector<const N: usize>(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.resize(at + N, 0);
    content(out);
    let length = (out.len() - at - N).to_be_bytes();
    out[at..at + N].copy_from_slice(&length[length.len() - N..]);
}

/// Writes two-byte numbers.
pub(crate) fn numbers(out: &mut Vec<u8>, numbers: &[u16]) {
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
}
