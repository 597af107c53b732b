//! One field line at a time.

use crate::scan::{text_end, token_end};
use crate::{Field, FieldName, HeadError, Limits, Span};

/// What stands at some place in a head.
pub(crate) enum Line {
    /// A field line.
    Field(Field),
    /// The empty line that ends the head; the offset is the one after it.
    Empty(usize),
    /// The bytes end in the middle of a line.
    Partial,
}

impl Line {
    /// Reads the line at `at` of `head`, the window of `limits`.
    #[inline]
    pub(crate) fn read(head: &[u8], at: usize, limits: &Limits) -> Result<Self, HeadError> {
        let name_end = token_end(head, at);
        if head.get(name_end) != Some(&b':') || name_end == at {
            return not_a_name(head, at, name_end, limits);
        }
        let mut start = name_end + 1;
        while matches!(head.get(start), Some(b' ' | b'\t')) {
            start += 1;
        }
        let cr = text_end(head, start);
        let Some(end) = line_end(head, cr)? else { return partial(head, at, limits) };
        if end - at > limits.line_bytes {
            return Err(HeadError::FieldLineTooLong);
        }
        let mut value_end = cr;
        while value_end > start && matches!(head[value_end - 1], b' ' | b'\t') {
            value_end -= 1;
        }
        let name = &head[at..name_end];
        let known = FieldName::of(name);
        Ok(Self::Field(Field {
            name: Span::new(at, name_end),
            value: Span::new(start, value_end),
            line: Span::new(at, end),
            known,
            hop_by_hop: known.is_hop_by_hop(),
            underscore: name.contains(&b'_'),
        }))
    }
}

/// The offset after the CRLF at `at`, where a run of text ended; `None` when the bytes end before the LF.
#[inline]
pub(crate) fn line_end(head: &[u8], at: usize) -> Result<Option<usize>, HeadError> {
    match head[at..] {
        [b'\r', b'\n', ..] => Ok(Some(at + 2)),
        [] | [b'\r'] => Ok(None),
        [b'\r', ..] => Err(HeadError::BareCr),
        [b'\n', ..] => Err(HeadError::BareLf),
        [_, ..] => Err(HeadError::ControlCharacter),
    }
}

/// The empty line, a line that is not complete, or why the line is not a field line.
#[inline]
fn not_a_name(head: &[u8], at: usize, name_end: usize, limits: &Limits) -> Result<Line, HeadError> {
    match head.get(name_end) {
        None => partial(head, at, limits),
        Some(b'\r') if name_end == at => match line_end(head, at)? {
            Some(end) => Ok(Line::Empty(end)),
            None => partial(head, at, limits),
        },
        Some(b'\n') => Err(HeadError::BareLf),
        Some(b'\r') => Err(HeadError::MissingColon),
        Some(b' ' | b'\t') if name_end == at => Err(HeadError::ObsFold),
        Some(b' ' | b'\t') => Err(HeadError::WhitespaceBeforeColon),
        Some(byte) if byte.is_ascii_control() => Err(HeadError::ControlCharacter),
        Some(_) => Err(HeadError::BadFieldName),
    }
}

/// A line that is not complete, if it may still become so: at least one more byte must fit both limits.
#[cold]
fn partial(head: &[u8], at: usize, limits: &Limits) -> Result<Line, HeadError> {
    if head.len() - at >= limits.line_bytes {
        return Err(HeadError::FieldLineTooLong);
    }
    if limits.head_is_full(head) {
        return Err(HeadError::HeadTooLong);
    }
    Ok(Line::Partial)
}
