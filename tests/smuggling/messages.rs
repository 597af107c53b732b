//! Sequences of messages, as a recipient on either side of the gateway parses them.

use weir_http::Method;
use weir_http1::{BodyDecoder, Framing, Limits, Parse, RequestHead, ResponseHead};

/// A message: its head and its decoded body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub head: Vec<u8>,
    pub body: Vec<u8>,
    pub is_complete: bool,
}

/// The requests of a connection; the last may be incomplete.
pub(super) fn requests(bytes: &[u8]) -> Vec<Read> {
    let mut head = RequestHead::new();
    read(bytes, |bytes| match head.parse(bytes, &generous()).expect("a request of the gateway") {
        Parse::Complete(length) => Some((length, head.framing)),
        Parse::Partial => None,
    })
}

/// The responses to a request; the last may be incomplete.
pub(super) fn responses(bytes: &[u8], method: Method) -> Vec<Read> {
    let mut head = ResponseHead::new();
    read(bytes, |bytes| match head.parse(bytes, &generous()).expect("a response of the gateway") {
        Parse::Complete(length) => Some((length, head.framing(method))),
        Parse::Partial => None,
    })
}

/// The number of final responses in these bytes. No body may contain a status line.
pub(super) fn final_responses(bytes: &[u8]) -> usize {
    let is_final = |at: &&[u8]| at.starts_with(b"HTTP/1.") && at[8] == b' ' && at[9] != b'1';
    bytes.windows(10).filter(is_final).count()
}

/// The number of occurrences of `part`.
pub(super) fn count(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).filter(|window| *window == part).count()
}

/// Limits for messages to which the gateway has added fields.
fn generous() -> Limits {
    Limits { fields: 1000, ..Limits::default() }
}

fn read(mut bytes: &[u8], mut head: impl FnMut(&[u8]) -> Option<(usize, Framing)>) -> Vec<Read> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let Some((length, framing)) = head(bytes) else {
            all.push(Read { head: bytes.to_vec(), body: Vec::new(), is_complete: false });
            break;
        };
        let (start, mut rest) = bytes.split_at(length);
        let mut decoder = BodyDecoder::new(framing, &generous());
        let mut body = Vec::new();
        while !decoder.is_complete() {
            let step = decoder.decode(rest).expect("a body of the gateway");
            body.extend_from_slice(&rest[step.data]);
            rest = &rest[step.consumed..];
            if step.consumed == 0 {
                break;
            }
        }
        let is_complete = decoder.is_complete() || framing == Framing::UntilClose;
        all.push(Read { head: start.to_vec(), body, is_complete });
        bytes = rest;
        if !is_complete {
            break;
        }
    }
    all
}
