//! The field section: field lines up to the empty line.

use crate::{HeadError, Limits};
use weir_http::scan::{name_end, text_end};
use weir_http::{Field, FieldName, Span};

/// Reads the field lines of `head`, the window of `limits`, from `at` into `fields`, and passes each known name with
/// its value to `note`. Returns the offset after the empty line, or `None` if the bytes end before that.
#[inline]
pub(crate) fn read<E: From<HeadError>>(
    head: &[u8],
    mut at: usize,
    limits: &Limits,
    fields: &mut Vec<Field>,
    mut note: impl FnMut(FieldName, Span) -> Result<(), E>,
) -> Result<Option<usize>, E> {
    fields.clear();
    loop {
        let (name_end, underscore) = name_end(head, at);
        if head.get(name_end) != Some(&b':') || name_end == at {
            return Ok(last_line(head, at, name_end, limits)?);
        }
        let mut start = name_end + 1;
        while matches!(head.get(start), Some(b' ' | b'\t')) {
            start += 1;
        }
        let cr = text_end(head, start);
        let Some(end) = line_end(head, cr)? else { return Ok(partial(head, at, limits)?) };
        if end - at > limits.line_bytes {
            return Err(HeadError::FieldLineTooLong.into());
        }
        let mut value_end = cr;
        while value_end > start && matches!(head[value_end - 1], b' ' | b'\t') {
            value_end -= 1;
        }
        if fields.len() >= limits.fields {
            return Err(HeadError::TooManyFields.into());
        }
        let known = FieldName::of(&head[at..name_end]);
        let value = Span::new(start, value_end);
        fields.push(Field {
            name: Span::new(at, name_end),
            value,
            line: Span::new(at, end),
            known,
            hop_by_hop: known.is_hop_by_hop(),
            underscore,
            never_indexed: false,
        });
        if known != FieldName::Other {
            note(known, value)?;
        }
        at = end;
    }
}

/// The offset after the CRLF at `at`, where a run of text ended; `None` if the bytes end before the LF.
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

/// Handles the empty line and an incomplete line. The error says why the line is not a field line.
#[inline]
fn last_line(head: &[u8], at: usize, name_end: usize, limits: &Limits) -> Result<Option<usize>, HeadError> {
    match head.get(name_end) {
        None => partial(head, at, limits),
        Some(b'\r') if name_end == at => match line_end(head, at)? {
            Some(end) => Ok(Some(end)),
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

/// Checks that an incomplete line can still be completed: both limits must allow another byte.
#[cold]
fn partial(head: &[u8], at: usize, limits: &Limits) -> Result<Option<usize>, HeadError> {
    if head.len() - at >= limits.line_bytes {
        return Err(HeadError::FieldLineTooLong);
    }
    if limits.head_is_full(head) {
        return Err(HeadError::HeadTooLong);
    }
    Ok(None)
}
