//! The chunked transfer coding (RFC 9112, section 7.1): framing byte by byte, data in runs.

use crate::decoded::{Decoded, within};
use crate::{BodyError, Limits};
use weir_http::scan::{is_text_byte, is_token_byte};

#[derive(Clone, Debug)]
pub(crate) struct Chunked {
    at: At,
    /// The length of this chunk's extensions so far.
    extension_bytes: usize,
    trailer: Trailer,
}

/// The state before the next byte.
#[derive(Clone, Copy, Debug)]
enum At {
    Size {
        digits: u8,
        size: u64,
    },
    Extension {
        at: Extension,
        size: u64,
    },
    /// The LF after the size and its extensions.
    SizeLf {
        size: u64,
    },
    /// This many bytes of data, at least one.
    Data(u64),
    DataCr,
    DataLf,
    Trailer,
    End,
}

/// `*( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )` (RFC 9112, section 7.1.1).
#[derive(Clone, Copy, Debug)]
enum Extension {
    /// White space that only a semicolon may follow.
    BeforeSemicolon,
    BeforeName,
    Name,
    /// White space that only an equals sign or a semicolon may follow.
    AfterName,
    BeforeValue,
    Value,
    Quoted,
    Escaped,
    AfterQuoted,
}

/// The position in the trailer section, and the part of each limit that it has used.
#[derive(Clone, Debug)]
struct Trailer {
    at: TrailerAt,
    limits: Limits,
    fields: usize,
    line_bytes: usize,
    bytes: usize,
    /// The lines so far; `None` unless the caller asked to keep them.
    kept: Option<Box<Section>>,
}

/// The lines of a trailer section, boxed where they are kept, since few bodies have trailers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) lines: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum TrailerAt {
    LineStart,
    Name,
    Value,
    LineLf,
    EndLf,
}

impl Chunked {
    pub(crate) fn new(limits: &Limits) -> Self {
        let trailer = Trailer {
            at: TrailerAt::LineStart,
            limits: *limits,
            fields: 0,
            line_bytes: 0,
            bytes: 0,
            kept: None,
        };
        Self { at: At::Size { digits: 0, size: 0 }, extension_bytes: 0, trailer }
    }

    /// Makes the decoder keep the lines of the trailer section, for [`Chunked::take_trailers`].
    pub(crate) fn keep_trailers(&mut self) {
        self.trailer.kept = Some(Box::default());
    }

    /// Takes the kept lines; `None` without [`Chunked::keep_trailers`].
    pub(crate) fn take_trailers(&mut self) -> Option<Box<Section>> {
        self.trailer.kept.take()
    }

    /// Advances `decoded` over framing around at most one run of data. Returns whether the body is complete.
    pub(crate) fn decode(&mut self, input: &[u8], decoded: &mut Decoded) -> Result<bool, BodyError> {
        while let Some(&byte) = input.get(decoded.consumed) {
            if let At::Data(missing) = self.at {
                if !decoded.data.is_empty() {
                    return Ok(false);
                }
                let start = decoded.consumed;
                let length = within(missing, &input[start..]);
                decoded.consumed += length;
                decoded.data = start..decoded.consumed;
                let missing = missing - length as u64;
                self.at = if missing == 0 { At::DataCr } else { At::Data(missing) };
                continue;
            }
            self.at = self.next(byte)?;
            decoded.consumed += 1;
            if let At::End = self.at {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Processes one byte of framing.
    fn next(&mut self, byte: u8) -> Result<At, BodyError> {
        match (self.at, byte) {
            (At::Size { digits, size }, byte) => self.size(digits, size, byte),
            (At::Extension { at, size }, byte) => self.extension(at, size, byte),
            (At::SizeLf { size: 0 }, b'\n') => Ok(At::Trailer),
            (At::SizeLf { size }, b'\n') => Ok(At::Data(size)),
            (At::DataCr, b'\r') => Ok(At::DataLf),
            (At::DataCr, b'\n') => Err(BodyError::BareLf),
            (At::DataCr, _) => Err(BodyError::BadChunkEnd),
            (At::DataLf, b'\n') => Ok(At::Size { digits: 0, size: 0 }),
            (At::SizeLf { .. } | At::DataLf, _) => Err(BodyError::BareCr),
            (At::Trailer, byte) => self.trailer.next(byte),
            // Nothing to do: `decode` handles runs of data and stops at the end.
            (at @ (At::Data(_) | At::End), _) => Ok(at),
        }
    }

    /// Processes a byte of the size. Sixteen digits fill 64 bits, so the size cannot overflow; longer sizes are
    /// rejected even with leading zeros.
    fn size(&mut self, digits: u8, size: u64, byte: u8) -> Result<At, BodyError> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            b'\n' => return Err(BodyError::BareLf),
            _ if digits == 0 => return Err(BodyError::BadChunkSize),
            b'\r' => return Ok(At::SizeLf { size }),
            b';' | b' ' | b'\t' => {
                self.extension_bytes = 0;
                return self.extension(Extension::BeforeSemicolon, size, byte);
            }
            _ => return Err(BodyError::BadChunkSize),
        };
        if digits == 16 {
            return Err(BodyError::BadChunkSize);
        }
        Ok(At::Size { digits: digits + 1, size: size << 4 | u64::from(digit) })
    }

    fn extension(&mut self, at: Extension, size: u64, byte: u8) -> Result<At, BodyError> {
        use Extension::*;
        let at = match (at, byte) {
            (_, b'\n') => return Err(BodyError::BareLf),
            (Name | Value | AfterQuoted, b'\r') => return Ok(At::SizeLf { size }),
            (BeforeSemicolon | Name | AfterName | Value | AfterQuoted, b';') => BeforeName,
            (BeforeSemicolon | Value | AfterQuoted, b' ' | b'\t') => BeforeSemicolon,
            (BeforeName | BeforeValue, b' ' | b'\t') => at,
            (BeforeName | Name, byte) if is_token_byte(byte) => Name,
            (Name | AfterName, b'=') => BeforeValue,
            (Name | AfterName, b' ' | b'\t') => AfterName,
            (BeforeValue | Value, byte) if is_token_byte(byte) => Value,
            (BeforeValue, b'"') => Quoted,
            (Quoted, b'"') => AfterQuoted,
            (Quoted, b'\\') => Escaped,
            (Quoted | Escaped, byte) if is_text_byte(byte) => Quoted,
            _ => return Err(BodyError::BadChunkExtension),
        };
        self.extension_bytes += 1;
        if self.extension_bytes > self.trailer.limits.extension_bytes {
            return Err(BodyError::ChunkExtensionTooLong);
        }
        Ok(At::Extension { at, size })
    }
}

impl Trailer {
    fn next(&mut self, byte: u8) -> Result<At, BodyError> {
        self.bytes += 1;
        self.line_bytes += 1;
        if self.bytes > self.limits.head_bytes || self.line_bytes > self.limits.line_bytes {
            return Err(BodyError::TrailerTooLarge);
        }
        self.at = match (self.at, byte) {
            (TrailerAt::EndLf, b'\n') => return Ok(At::End),
            (TrailerAt::LineLf, b'\n') => {
                self.line_bytes = 0;
                TrailerAt::LineStart
            }
            (TrailerAt::EndLf | TrailerAt::LineLf, _) => return Err(BodyError::BareCr),
            (_, b'\n') => return Err(BodyError::BareLf),
            (TrailerAt::LineStart, b'\r') => return Ok(self.ends()),
            (TrailerAt::LineStart, byte) if is_token_byte(byte) => {
                self.fields += 1;
                if self.fields > self.limits.fields {
                    return Err(BodyError::TrailerTooLarge);
                }
                TrailerAt::Name
            }
            (TrailerAt::Name, byte) if is_token_byte(byte) => TrailerAt::Name,
            (TrailerAt::Name, b':') => TrailerAt::Value,
            (TrailerAt::Value, b'\r') => TrailerAt::LineLf,
            (TrailerAt::Value, byte) if is_text_byte(byte) => TrailerAt::Value,
            _ => return Err(BodyError::BadTrailer),
        };
        if let Some(kept) = &mut self.kept {
            kept.lines.push(byte);
        }
        Ok(At::Trailer)
    }

    /// Expects the rest of the empty line that ends the section. The line itself is not kept.
    fn ends(&mut self) -> At {
        self.at = TrailerAt::EndLf;
        At::Trailer
    }
}
