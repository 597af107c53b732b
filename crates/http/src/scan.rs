//! Search for the first invalid byte: by table for tokens, block by block for longer runs.

const TOKEN: u8 = 1;
const HOST: u8 = 2;

/// For each byte value, the classes that contain it, as the bits [`TOKEN`] and [`HOST`].
const CLASS: [u8; 256] = {
    let class = with([0; 256], b"0123456789", TOKEN | HOST);
    let class = with(class, b"abcdefghijklmnopqrstuvwxyz", TOKEN | HOST);
    let class = with(class, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", TOKEN | HOST);
    // The characters of tokens other than letters and digits (RFC 9110, section 5.6.2).
    let class = with(class, b"!#$%&'*+-.^_`|~", TOKEN);
    // The unreserved characters other than letters and digits (RFC 3986, section 2.3).
    with(class, b"-._~", HOST)
};

const fn with(mut class: [u8; 256], bytes: &[u8], bits: u8) -> [u8; 256] {
    let mut at = 0;
    while at < bytes.len() {
        class[bytes[at] as usize] |= bits;
        at += 1;
    }
    class
}

/// Whether `byte` is valid in a token (RFC 9110, section 5.6.2).
#[inline]
#[must_use]
pub fn is_token_byte(byte: u8) -> bool {
    CLASS[byte as usize] & TOKEN != 0
}

/// Whether `byte` is valid in a host name; see [`crate::Authority`].
#[inline]
#[must_use]
pub fn is_host_byte(byte: u8) -> bool {
    CLASS[byte as usize] & HOST != 0
}

/// Whether `byte` is valid in a field value or a reason: HTAB, SP, VCHAR, obs-text (RFC 9110, section 5.5).
#[inline]
#[must_use]
pub fn is_text_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != DEL)
}

/// Whether `text` is a token (RFC 9110, section 5.6.2): a method or a field name.
#[must_use]
pub fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && token_end(text, 0) == text.len()
}

/// Index of the first byte at or after `at` that is not a token character, or the length of `buf`.
#[inline]
#[must_use]
pub fn token_end(buf: &[u8], at: usize) -> usize {
    buf[at..].iter().position(|&b| !is_token_byte(b)).map_or(buf.len(), |n| at + n)
}

/// As [`token_end`]; also returns whether the run contains an underscore.
#[inline]
#[must_use]
pub fn name_end(buf: &[u8], at: usize) -> (usize, bool) {
    let mut underscore = false;
    for (length, &byte) in buf[at..].iter().enumerate() {
        if !is_token_byte(byte) {
            return (at + length, underscore);
        }
        underscore |= byte == b'_';
    }
    (buf.len(), underscore)
}

/// Index of the first byte at or after `at` that is invalid in a field value, or the length of `buf`.
#[inline]
#[must_use]
pub fn text_end(buf: &[u8], mut at: usize) -> usize {
    while let Some(block) = buf[at..].first_chunk::<16>() {
        // Compilers vectorise this, but not a loop with an early exit.
        if block.iter().fold(false, |odd, &b| odd | (b < b' ') | (b == DEL)) {
            break;
        }
        at += block.len();
    }
    while let Some(word) = word_at(buf, at) {
        let odd = below(word, b' ') | equal(word, DEL);
        if odd == 0 {
            at += WORD;
            continue;
        }
        at += first(odd);
        if buf[at] != b'\t' {
            return at;
        }
        at += 1;
    }
    buf[at..].iter().position(|&b| !is_text_byte(b)).map_or(buf.len(), |n| at + n)
}

/// Index of the first byte at or after `at` that is invalid in a request target, or the length of `buf`. Visible ASCII
/// characters are valid, except `#`, which starts a fragment (RFC 9112, section 3.2).
#[inline]
#[must_use]
pub fn target_end(buf: &[u8], mut at: usize) -> usize {
    while let Some(word) = word_at(buf, at) {
        let odd = below(word, b'!') | equal(word, DEL) | equal(word, b'#') | (word & HIGH);
        if odd != 0 {
            return at + first(odd);
        }
        at += WORD;
    }
    buf[at..].iter().position(|&b| !b.is_ascii_graphic() || b == b'#').map_or(buf.len(), |n| at + n)
}

/// `bytes` without leading and trailing SP and HTAB (OWS: RFC 9110, section 5.6.3).
#[inline]
#[must_use]
pub fn trim_ows(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The trimmed elements of a comma-separated list without quoted strings (RFC 9110, section 5.6.1); some may
/// be empty.
#[inline]
pub fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(trim_ows)
}

const DEL: u8 = 0x7f;
const WORD: usize = 8;
const ONES: u64 = u64::from_ne_bytes([0x01; WORD]);
const HIGH: u64 = u64::from_ne_bytes([0x80; WORD]);

#[inline]
fn word_at(buf: &[u8], at: usize) -> Option<u64> {
    buf[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

// The results of `below` and `equal` have the high bit of each matching byte set. A borrow can set further bits above a
// match, but never below one, so the lowest set bit is exact, even after combining several results with OR.

/// Marks the bytes of `word` that are below `limit`, which is at most 0x80.
#[inline]
fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGH
}

/// Marks the bytes of `word` that equal `byte`.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

/// The index of the byte that contains the lowest set bit.
#[inline]
fn first(bits: u64) -> usize {
    (bits.trailing_zeros() / 8) as usize
}

/// The number in these digits: at least one digit, no other byte, and within 64 bits; otherwise `None`.
/// `Content-Length` allows no sign and no space (RFC 9110, section 8.6).
#[must_use]
#[inline]
pub fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leading zeros are valid, but neither a sign nor white space.
    #[test]
    fn numbers_are_digits_within_64_bits() {
        for (digits, number) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("", None),
            ("+1", None),
            ("-1", None),
            (" 1", None),
            ("1_0", None),
            ("0x1", None),
        ] {
            assert_eq!(decimal(digits.as_bytes()), number, "{digits}");
        }
    }

    /// Every byte value, at every offset of a word and after the last whole word.
    #[test]
    fn words_agree_with_bytes() {
        for byte in 0..=u8::MAX {
            for at in 0..19 {
                let mut buf = *b"abcdefgh~!\x22klmnopqrs";
                buf[at] = byte;
                let text = buf.iter().position(|&b| !is_text_byte(b)).unwrap_or(buf.len());
                assert_eq!(text_end(&buf, 0), text, "{byte:#x} at {at}");
                let target =
                    buf.iter().position(|&b| !(0x21..0x7f).contains(&b) || b == b'#').unwrap_or(buf.len());
                assert_eq!(target_end(&buf, 0), target, "{byte:#x} at {at}");
            }
        }
    }

    #[test]
    fn names_end_before_the_first_byte_that_is_no_token() {
        assert_eq!(name_end(b"x_a-1: b_c", 1), (5, true));
        assert_eq!(name_end(b"host: b_c", 0), (4, false));
        assert_eq!(name_end(b"host", 4), (4, false));
    }

    #[test]
    fn text_goes_on_after_tabs() {
        assert_eq!(text_end(b"a\tb\t\t\tcdefghijklmnop\tq\x80\xff\x7f", 0), 24);
    }

    #[test]
    fn lists_are_trimmed() {
        assert!(elements(b" a ,\tb c,,").eq([&b"a"[..], b"b c", b"", b""]));
        assert!(elements(b"").eq([b""]));
    }
}
