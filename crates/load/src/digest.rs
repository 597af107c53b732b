//! SHA-256 of a body, piece by piece as it comes.

use aws_lc_rs::digest::{Context, SHA256};

/// A body's hash that is being made.
#[derive(Clone)]
pub(crate) struct Digest(Context);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.finish().as_ref());
        bytes
    }
}

/// Reads a SHA-256 as `sha256sum` writes it: 64 hexadecimal digits, large or small.
///
/// # Errors
/// When it is anything else.
pub fn sha256(text: &str) -> Result<[u8; 32], String> {
    let wrong = || "write 64 hexadecimal digits, as sha256sum does".to_string();
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(wrong);
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(wrong()) };
    let mut bytes = [0; 32];
    if pairs.len() != bytes.len() {
        return Err(wrong());
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Ok(bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The hash of `abc` (FIPS 180-2 appendix B.1).
    pub(crate) const ABC: [u8; 32] = [
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0,
        0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
    ];

    #[test]
    fn pieces_make_one_hash() {
        let mut digest = Digest::new();
        digest.update(b"a");
        digest.update(b"");
        digest.update(b"bc");
        assert_eq!(digest.finish(), ABC);
    }

    #[test]
    fn hashes_as_people_write_them() {
        let text = "ba7816bf8f01cfea414140de5dae2223B00361A396177A9CB410FF61F20015AD";
        assert_eq!(sha256(text), Ok(ABC));
        let (short, long) = (&text[1..], format!("{text}00"));
        for text in ["", "ba", short, &long, &text.replace('b', "g"), &text.replace("ba", "é")] {
            assert!(sha256(text).unwrap_err().contains("64 hexadecimal"), "{text}");
        }
    }
}
