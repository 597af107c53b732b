//! Repairing responses: the head is split into lines first, then each field is repaired.

use super::{Written, lines};
use crate::{Rule, Rules};
use weir_http::FieldName;
use weir_http::scan::{elements, token_end, trim_ows};

/// Writes the complete lines of `head` to `out`, repairing violations of `rules`.
pub(super) fn write(head: &[u8], rules: Rules, out: &mut Vec<u8>) -> Written {
    out.clear();
    let mut written = Written::default();
    let mut fields = Fields::default();
    for line in lines(head, 0) {
        let broken = &mut written.broken;
        let text = match line {
            [text @ .., b'\r', b'\n'] => Some(text),
            [text @ .., b'\n'] if rules.has(Rule::BareLf) => {
                *broken = broken.with(Rule::BareLf);
                Some(text)
            }
            _ => None,
        };
        match text {
            Some(text) if written.lines > 0 => fields.line(text, rules, broken, out),
            Some(text) => write_line(text, out),
            // The parser rejects this line, so no later fold may continue it.
            None => {
                fields = Fields::default();
                out.extend_from_slice(line);
            }
        }
        written.read += line.len();
        written.lines += 1;
    }
    written
}

/// The effects of the lines so far on the repair of later lines.
#[derive(Default)]
struct Fields {
    /// Whether a fold may continue the last line.
    may_go_on: bool,
    /// The number of `chunked` codings so far.
    chunked: usize,
}

impl Fields {
    /// Writes a line, given without its line ending.
    fn line(&mut self, text: &[u8], rules: Rules, broken: &mut Rules, out: &mut Vec<u8>) {
        if let [b' ' | b'\t', ..] = text {
            // Some recipients take a line of only white space for the end of the head.
            if self.may_go_on && rules.has(Rule::ObsFold) && !trim_ows(text).is_empty() {
                *broken = broken.with(Rule::ObsFold);
                out.truncate(out.len() - b"\r\n".len());
                out.push(b' ');
                return write_line(trim_ows(text), out);
            }
            return write_line(text, out);
        }
        let name_end = token_end(text, 0);
        let (name, rest) = text.split_at(name_end);
        let value = match trim_ows(rest) {
            [b':', value @ ..] if rest.first() == Some(&b':') => Some(value),
            [b':', value @ ..] if rules.has(Rule::SpaceBeforeColon) && !name.is_empty() => {
                *broken = broken.with(Rule::SpaceBeforeColon);
                Some(value)
            }
            _ => None,
        };
        let Some(value) = value else {
            self.may_go_on = false;
            return write_line(text, out);
        };
        let known = FieldName::of(name);
        // Recipients that ignore folds must still see framing and connection fields in full.
        self.may_go_on = !known.is_hop_by_hop() && !known.is_relied_on();
        let value = match known {
            FieldName::Connection if rules.has(Rule::ConnectionNamesFraming) => {
                without_framing(value, broken)
            }
            FieldName::TransferEncoding if rules.has(Rule::ChunkedTwice) => self.once(value, broken),
            _ => Some(value.to_vec()),
        };
        if let Some(value) = value {
            out.extend_from_slice(name);
            out.push(b':');
            write_line(&value, out);
        }
    }

    /// Removes repeated `chunked` codings from a `Transfer-Encoding`; `None` if nothing remains.
    fn once(&mut self, value: &[u8], broken: &mut Rules) -> Option<Vec<u8>> {
        let mut codings = elements(value).filter(|coding| !coding.is_empty()).peekable();
        let before = self.chunked;
        if codings.peek().is_none() || !codings.all(|coding| coding.eq_ignore_ascii_case(b"chunked")) {
            // Writes the value unchanged, so that the parser rejects it.
            self.chunked = usize::MAX;
            return Some(value.to_vec());
        }
        let now = elements(value).filter(|coding| !coding.is_empty()).count();
        self.chunked = before.saturating_add(now);
        match (before, self.chunked) {
            (0, 2) => {
                *broken = broken.with(Rule::ChunkedTwice);
                Some(b" chunked".to_vec())
            }
            (1, 2) => {
                *broken = broken.with(Rule::ChunkedTwice);
                None
            }
            _ => Some(value.to_vec()),
        }
    }
}

/// Removes the names of framing fields from a `Connection`; `None` if nothing remains.
fn without_framing(value: &[u8], broken: &mut Rules) -> Option<Vec<u8>> {
    let frames = |option: &[u8]| {
        matches!(FieldName::of(option), FieldName::ContentLength | FieldName::TransferEncoding)
    };
    if !elements(value).any(frames) {
        return Some(value.to_vec());
    }
    *broken = broken.with(Rule::ConnectionNamesFraming);
    let others: Vec<_> = elements(value).filter(|option| !frames(option) && !option.is_empty()).collect();
    (!others.is_empty()).then(|| [&b" "[..], &others.join(&b", "[..])].concat())
}

fn write_line(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}
