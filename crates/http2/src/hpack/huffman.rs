//! The Huffman code (RFC 7541, section 5.2 and appendix B), with tables computed from the code lengths. The code is
//! canonical: codes of one length are consecutive numbers in the order of their symbols.

use super::HpackError;

const SYMBOLS: usize = 257;
const EOS: u16 = 256;
const LONGEST: usize = 30;

/// The length of each symbol's code in bits, EOS last.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

struct Code {
    /// Each symbol's code, in the low bits.
    codes: [u32; SYMBOLS],
    /// The symbols in the order of their codes.
    symbols: [u16; SYMBOLS],
    /// For each length: the smallest code of any greater length, aligned to the high end of 32 bits.
    ends: [u64; LONGEST + 1],
    /// For each length: the index in `symbols` of its first code, minus that code.
    offsets: [i64; LONGEST + 1],
}

const CODE: Code = {
    let mut code = Code {
        codes: [0; SYMBOLS],
        symbols: [0; SYMBOLS],
        ends: [0; LONGEST + 1],
        offsets: [0; LONGEST + 1],
    };
    let (mut next, mut index, mut length) = (0, 0, 1);
    while length <= LONGEST {
        next <<= 1;
        code.offsets[length] = index as i64 - next as i64;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                code.codes[symbol] = next;
                code.symbols[index] = symbol as u16;
                next += 1;
                index += 1;
            }
            symbol += 1;
        }
        code.ends[length] = (next as u64) << (32 - length);
        length += 1;
    }
    code
};

static TABLES: Code = CODE;

/// For each value of the next 8 bits: the symbol and the length of the code at their start; length 0 if that code is
/// longer. Nearly all printable characters in fields have codes of at most 8 bits.
static SHORT: [(u8, u8); 256] = {
    let mut short = [(0, 0); 256];
    let mut symbol = 0;
    while symbol < 256 {
        let length = LENGTHS[symbol];
        if length <= 8 {
            let spare = 8 - length;
            let first = CODE.codes[symbol] << spare;
            let mut index = first;
            while index < first + (1 << spare) {
                short[index as usize] = (symbol as u8, length);
                index += 1;
            }
        }
        symbol += 1;
    }
    short
};

/// The symbol and the length of the code at the start of `bits`, for a code of more than 8 bits.
#[cold]
fn long(bits: u64) -> (u16, u32) {
    let next = bits >> 32;
    let mut length = 9;
    while next >= TABLES.ends[length] && length < LONGEST {
        length += 1;
    }
    let code = (next >> (32 - length)) as i64;
    (TABLES.symbols[(code + TABLES.offsets[length]) as usize], length as u32)
}

/// Appends the decoded string. After an error, `out` may contain additional bytes.
#[inline]
pub(super) fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let mut at = out.len();
    // The shortest code has 5 bits.
    out.resize(at + input.len() * 8 / 5, 0);
    let mut rest = input;
    // The next bits, from the highest on, and their number.
    let (mut bits, mut count) = (0u64, 0u32);
    loop {
        if let Some(word) = rest.first_chunk() {
            // This also sets bits below `count`; the next refill sets them to the same values.
            bits |= u64::from_be_bytes(*word) >> count;
            let taken = (63 - count) / 8;
            rest = &rest[taken as usize..];
            count += 8 * taken;
            // At least 56 bits are available, enough for seven short codes.
            for _ in 0..7 {
                let (symbol, length) = SHORT[(bits >> 56) as usize];
                if length == 0 {
                    break;
                }
                out[at] = symbol;
                at += 1;
                bits <<= length;
                count -= u32::from(length);
            }
        } else {
            while let (true, [byte, behind @ ..]) = (count <= 56, rest) {
                bits |= u64::from(*byte) << (56 - count);
                count += 8;
                rest = behind;
            }
        }
        let (symbol, length) = match SHORT[(bits >> 56) as usize] {
            (_, 0) => long(bits),
            (symbol, length) => (symbol.into(), length.into()),
        };
        if length <= count {
            if symbol == EOS {
                return Err(HpackError::BadHuffman);
            }
            out[at] = symbol as u8;
            at += 1;
            bits <<= length;
            count -= length;
        } else if rest.is_empty() {
            break;
        }
    }
    // Padding: up to 7 bits, all ones.
    if count > 7 || bits.leading_ones() < count {
        return Err(HpackError::BadHuffman);
    }
    out.truncate(at);
    Ok(())
}

/// The length of the encoded string in bytes.
#[inline]
pub(super) fn encoded_length(input: &[u8]) -> usize {
    let bits: usize = input.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the encoded string.
#[inline]
pub(super) fn encode(input: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0u64, 0u32);
    for byte in input {
        let length = u32::from(LENGTHS[usize::from(*byte)]);
        bits = bits << length | u64::from(TABLES.codes[usize::from(*byte)]);
        count += length;
        if count >= 32 {
            count -= 32;
            out.extend_from_slice(&((bits >> count) as u32).to_be_bytes());
        }
    }
    while count >= 8 {
        count -= 8;
        out.push((bits >> count) as u8);
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | 0xff >> count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = b"before".to_vec();
        decode(input, &mut out)?;
        Ok(out.split_off(6))
    }

    /// Codes of RFC 7541, appendix B: the first and last of several lengths.
    #[test]
    fn codes() {
        for (symbol, code) in [
            (b'0', 0x0),
            (b't', 0x9),
            (b' ', 0x14),
            (b':', 0x5c),
            (b'&', 0xf8),
            (b'!', 0x3f8),
            (b'\\', 0x7fff0),
            (0xff, 0x3ffffee),
            (0x00, 0x1ff8),
            (22, 0x3ffffffe),
        ] {
            assert_eq!(TABLES.codes[usize::from(symbol)], code, "{symbol}");
        }
        assert_eq!(TABLES.codes[usize::from(EOS)], 0x3fff_ffff);
    }

    #[test]
    fn padding_and_eos() {
        for (input, expected) in [
            (&b""[..], Ok(&b""[..])),
            (b"\xff", Err(HpackError::BadHuffman)),
            (b"\x07", Ok(b"0")),
            (b"\x06", Err(HpackError::BadHuffman)),
            (b"\x00", Err(HpackError::BadHuffman)),
            (b"\x07\xff", Err(HpackError::BadHuffman)),
            (b"\x53", Ok(b" ")),
            (b"\xf8", Ok(b"&")),
            (b"\xf8\xff", Err(HpackError::BadHuffman)),
            (b"\xff\xff\xff\xff", Err(HpackError::BadHuffman)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff", Err(HpackError::BadHuffman)),
            (b"\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff", Err(HpackError::BadHuffman)),
            (b"\xff\xff\xff\xfb", Ok(b"\x16")),
        ] {
            assert_eq!(decoded(input), expected.map(<[u8]>::to_vec), "{input:x?}");
        }
    }

    #[test]
    fn each_byte_after_any_number_of_bits() {
        for byte in 0..=u8::MAX {
            for before in 0..20 {
                let mut text = vec![b'0'; before];
                text.extend_from_slice(&[byte, byte, b'a', byte]);
                let mut coded = Vec::new();
                encode(&text, &mut coded);
                assert_eq!(coded.len(), encoded_length(&text));
                assert_eq!(decoded(&coded), Ok(text));
            }
        }
    }

    proptest! {
        #[test]
        fn encoded_strings_are_read_back(text in vec(any::<u8>(), 0..100)) {
            let mut coded = Vec::new();
            encode(&text, &mut coded);
            prop_assert_eq!(coded.len(), encoded_length(&text));
            prop_assert_eq!(decoded(&coded), Ok(text));
        }

        /// A string has only one encoding: encoding the decoded string again yields the same bytes.
        #[test]
        fn any_bytes(coded in vec(any::<u8>(), 0..40)) {
            if let Ok(text) = decoded(&coded) {
                let mut again = Vec::new();
                encode(&text, &mut again);
                prop_assert_eq!(again, coded);
            }
        }
    }
}
