//! Integers with a prefix of N bits (RFC 7541, section 5.1).

use super::HpackError;

/// The maximum number of continuation bytes: they contain 28 bits, and no index, length or table size needs more.
const MAX_CONTINUATION: usize = 4;

/// Reads an integer whose first byte is at `at`, and advances `at` past it.
#[inline]
pub(super) fn read(block: &[u8], at: &mut usize, prefix: u32) -> Result<usize, HpackError> {
    let mask = (1u8 << prefix) - 1;
    let first = block.get(*at).ok_or(HpackError::Truncated)? & mask;
    *at += 1;
    if first < mask {
        return Ok(first.into());
    }
    let mut value = usize::from(mask);
    for index in 0..MAX_CONTINUATION {
        let byte = *block.get(*at).ok_or(HpackError::Truncated)?;
        *at += 1;
        value += usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(HpackError::IntegerTooLarge)
}

/// Appends an integer; `pattern` contains the bits before the prefix.
#[inline]
pub(super) fn write(mut value: usize, prefix: u32, pattern: u8, out: &mut Vec<u8>) {
    let mask = (1usize << prefix) - 1;
    if value < mask {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | mask as u8);
    value -= mask;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7541, appendix C.1, and the bounds.
    #[test]
    fn integers() {
        let cases: [(&[u8], u32, Result<usize, HpackError>); 10] = [
            (&[0x0a], 5, Ok(10)),
            (&[0x1f, 0x9a, 0x0a], 5, Ok(1337)),
            (&[0x2a], 8 - 1, Ok(42)),
            (&[0x1f, 0x00], 5, Ok(31)),
            (&[0x1f, 0x80, 0x80, 0x80, 0x00], 5, Ok(31)),
            (&[0x1f, 0xff, 0xff, 0xff, 0x7f], 5, Ok(31 + (1 << 28) - 1)),
            (&[0x1f, 0xff, 0xff, 0xff, 0xff, 0x00], 5, Err(HpackError::IntegerTooLarge)),
            (&[0x1f, 0x80, 0x80, 0x80, 0x80, 0x00], 5, Err(HpackError::IntegerTooLarge)),
            (&[0x1f, 0x80], 5, Err(HpackError::Truncated)),
            (&[], 5, Err(HpackError::Truncated)),
        ];
        for (bytes, prefix, expected) in cases {
            assert_eq!(read(bytes, &mut 0, prefix), expected, "{bytes:x?}");
        }
    }

    #[test]
    fn written_integers_are_read_back() {
        for prefix in 4..=7 {
            for value in (0..600).chain([16_383, 16_384, 1 << 20, (1 << 28) - 1]) {
                let (mut out, mut at) = (Vec::new(), 0);
                write(value, prefix, 0, &mut out);
                assert_eq!(read(&out, &mut at, prefix), Ok(value));
                assert_eq!(at, out.len());
            }
        }
    }
}
