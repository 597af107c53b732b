//! Decoding a field block into a head (RFC 7541, sections 3.2 and 6).

use super::statics::{self, Static};
use super::table::{Entry, OVERHEAD, Table};
use super::{HpackError, huffman, integer};
use crate::head::{Builder, Line, Name, Verdict};
use crate::{Head, HeadError, Limits, Section};

/// The decoder of one direction of a connection.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// The largest table that the peer's encoder may use.
    limit: usize,
    /// The length of the last block's fields as lines of text, in bytes.
    lines: usize,
}

/// The entry for an index.
enum Indexed {
    Static(&'static Static),
    Dynamic(Entry),
}

impl Decoder {
    /// A decoder whose table never exceeds `largest` bytes, or 4096 if that is more: the peer's encoder may use 4096
    /// until it has acknowledged a smaller value (RFC 9113, section 6.5.2).
    #[must_use]
    pub fn new(largest: u32) -> Self {
        Self { table: Table::new((largest as usize).max(4096)), limit: 4096, lines: 0 }
    }

    /// Applies the SETTINGS_HEADER_TABLE_SIZE that the peer has acknowledged. The value must not exceed the maximum of
    /// [`Decoder::new`]. If it is below the table's current maximum, the next block must start with an update (RFC
    /// 7541, section 4.2).
    pub fn acknowledged(&mut self, limit: u32) {
        self.limit = limit as usize;
    }

    /// The size of the dynamic table in bytes (RFC 7541, section 4.1).
    #[must_use]
    pub fn table_size(&self) -> usize {
        self.table.size()
    }

    /// The heap memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.table.memory()
    }

    /// The bytes of the last block's fields as lines of text: name, value and 4 bytes each.
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    /// Decodes a whole block. The inner result is the verdict on the message: even the block of a malformed message
    /// updates the table.
    ///
    /// # Errors
    /// The violated rule of HPACK. The connection must be closed.
    pub fn decode(
        &mut self,
        block: &[u8],
        section: Section,
        limits: &Limits,
        head: &mut Head,
    ) -> Result<Result<(), HeadError>, HpackError> {
        let mut at = 0;
        self.size_updates(block, &mut at)?;
        let mut builder = Builder::new(head, limits, section);
        while let Some(&byte) = block.get(at) {
            match byte {
                0x80.. => self.indexed(integer::read(block, &mut at, 7)?, &mut builder)?,
                0x40.. => self.literal(block, &mut at, 6, &mut builder)?,
                0x20.. => return Err(HpackError::LateSizeUpdate),
                _ => self.literal(block, &mut at, 4, &mut builder)?,
            }
            if builder.size() > limits.decoded_bytes() {
                return Err(HpackError::Bomb);
            }
        }
        self.lines = builder.lines();
        Ok(builder.finish())
    }

    /// Applies the dynamic table size updates at the start of a block (RFC 7541, section 6.3).
    fn size_updates(&mut self, block: &[u8], at: &mut usize) -> Result<(), HpackError> {
        while let Some(0x20..=0x3f) = block.get(*at) {
            let size = integer::read(block, at, 5)?;
            if size > self.limit {
                return Err(HpackError::TableTooLarge);
            }
            self.table.set_max_size(size);
        }
        if self.table.max_size() > self.limit {
            return Err(HpackError::TableTooLarge);
        }
        Ok(())
    }

    /// Decodes an indexed field (RFC 7541, section 6.1).
    #[inline]
    fn indexed(&mut self, index: usize, builder: &mut Builder<'_>) -> Result<(), HpackError> {
        let start = builder.head.bytes.len();
        match self.entry(index)? {
            Indexed::Static(entry) => {
                if builder.admit(entry.name.len() + entry.value.len() + OVERHEAD) {
                    let bytes = &mut builder.head.bytes;
                    bytes.extend_from_slice(entry.name);
                    bytes.extend_from_slice(if entry.value.is_empty() { b":" } else { b": " });
                    bytes.extend_from_slice(entry.value);
                    bytes.extend_from_slice(b"\r\n");
                    let line = Line { start, name: entry.name.len(), never_indexed: false };
                    builder.field(line, Verdict::of(entry.name_verdict(), entry.value));
                }
            }
            Indexed::Dynamic(entry) => {
                if builder.admit(entry.size()) {
                    self.table.copy_line(entry, &mut builder.head.bytes);
                    let line = Line { start, name: entry.name_length(), never_indexed: false };
                    builder.field(line, entry.verdict);
                }
            }
        }
        Ok(())
    }

    /// Decodes a literal field (RFC 7541, section 6.2), with incremental indexing if the prefix has 6 bits.
    #[inline]
    fn literal(
        &mut self,
        block: &[u8],
        at: &mut usize,
        prefix: u32,
        builder: &mut Builder<'_>,
    ) -> Result<(), HpackError> {
        let never_indexed = prefix == 4 && block[*at] & 0x10 != 0;
        let index = integer::read(block, at, prefix)?;
        let bytes = &mut builder.head.bytes;
        let start = bytes.len();
        let name = if index == 0 {
            string(block, at, bytes)?;
            Name::of(&bytes[start..])
        } else {
            match self.entry(index)? {
                Indexed::Static(entry) => {
                    bytes.extend_from_slice(entry.name);
                    entry.name_verdict()
                }
                Indexed::Dynamic(entry) => {
                    self.table.copy_name(entry, bytes);
                    entry.verdict.name
                }
            }
        };
        let name_end = bytes.len();
        bytes.extend_from_slice(b": ");
        let value_start = bytes.len();
        string(block, at, bytes)?;
        let value = &bytes[value_start..];
        let (size, verdict) = (name_end - start + value.len() + OVERHEAD, Verdict::of(name, value));
        if value.is_empty() {
            bytes.pop();
        }
        bytes.extend_from_slice(b"\r\n");
        if prefix == 6 {
            self.table.insert(&bytes[start..], name_end - start, verdict);
        }
        if builder.admit(size) {
            builder.field(Line { start, name: name_end - start, never_indexed }, verdict);
        } else {
            builder.head.bytes.truncate(start);
        }
        Ok(())
    }

    /// The entry with an index in both tables (RFC 7541, section 2.3.3).
    #[inline]
    fn entry(&self, index: usize) -> Result<Indexed, HpackError> {
        match index.checked_sub(1) {
            None => Err(HpackError::BadIndex),
            Some(index) if index < statics::LEN => Ok(Indexed::Static(&statics::TABLE[index])),
            Some(index) => {
                self.table.get(index - statics::LEN).map(Indexed::Dynamic).ok_or(HpackError::BadIndex)
            }
        }
    }
}

/// Decodes the string literal at `at` (RFC 7541, section 5.2), appends it to `out`, and advances `at`.
#[inline]
fn string(block: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_huffman = block.get(*at).is_some_and(|byte| byte & 0x80 != 0);
    let length = integer::read(block, at, 7)?;
    let text = block[*at..].get(..length).ok_or(HpackError::Truncated)?;
    *at += length;
    match is_huffman {
        true => huffman::decode(text, out),
        false => {
            out.extend_from_slice(text);
            Ok(())
        }
    }
}
