//! The known content of `/bytes/N`.

/// The period of the content: a prime, so that bytes lost or duplicated by a buffer or record, whose sizes
/// are powers of two, show.
pub const PERIOD: usize = 61;

const LETTERS: &[u8; PERIOD] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXY";

/// The most that [`from`] returns at once.
pub const PIECE: usize = 64 * 1024;

static BLOCK: [u8; PIECE + PERIOD] = {
    let mut block = [0; PIECE + PERIOD];
    let mut at = 0;
    while at < block.len() {
        block[at] = LETTERS[at % PERIOD];
        at += 1;
    }
    block
};

/// The content from byte `offset` on, at most `length` bytes and at most [`PIECE`]. Byte `i` of a response is letter
/// `i % 61` of `0-9a-zA-Y`.
pub fn from(offset: u64, length: u64) -> &'static [u8] {
    let start = (offset % PERIOD as u64) as usize;
    let length = length.min(PIECE as u64) as usize;
    &BLOCK[start..start + length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_follows_from_its_offset() {
        let mut offset = 0u64;
        while offset < 200_000 {
            let piece = from(offset, 200_000 - offset);
            for (at, byte) in piece.iter().enumerate() {
                assert_eq!(*byte, LETTERS[((offset + at as u64) % 61) as usize]);
            }
            offset += piece.len() as u64;
        }
        assert_eq!((offset, from(7, 0).len(), from(u64::MAX, u64::MAX).len()), (200_000, 0, PIECE));
    }
}
