//! Header blocks that contain fields as literal bytes, valid or not.

/// A field of a header block: its name and value, as sent.
pub(super) type Field<'a> = (&'a [u8], &'a [u8]);

/// A header block of literals without indexing and Huffman codes, so that it contains the fields' bytes.
pub(super) fn block(fields: &[Field<'_>]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        literal(0, name, value, &mut block);
    }
    block
}

/// Appends a literal: `pattern` is 0 for one without indexing, 0x10 for one that is never indexed, 0x40 for one that
/// enters the table.
pub(super) fn literal(pattern: u8, name: &[u8], value: &[u8], block: &mut Vec<u8>) {
    block.push(pattern);
    for text in [name, value] {
        integer(text.len(), 7, block);
        block.extend_from_slice(text);
    }
}

/// Appends an integer with a prefix of this many bits.
fn integer(mut value: usize, bits: u32, block: &mut Vec<u8>) {
    let most = (1 << bits) - 1;
    if value < most {
        return block.push(value as u8);
    }
    block.push(most as u8);
    value -= most;
    while value >= 128 {
        block.push((value % 128) as u8 | 128);
        value /= 128;
    }
    block.push(value as u8);
}

/// The pseudo-fields of a request to `h`.
pub(super) fn request<'a>(method: &'a str, path: &'a str) -> [Field<'a>; 4] {
    [
        (b":method", method.as_bytes()),
        (b":scheme", b"http"),
        (b":authority", b"h"),
        (b":path", path.as_bytes()),
    ]
}
