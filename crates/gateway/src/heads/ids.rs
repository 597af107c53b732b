//! Request IDs, which identify a request in the logs of several machines.

use crate::config::Tracing;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use weir_http1::RequestHead;

/// A generator of request IDs. The IDs are unique, not secret: one half identifies the worker, and the other is a
/// counter.
#[derive(Debug)]
pub(crate) struct Ids {
    worker: u64,
    count: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestIds {
    /// The request ID, in hexadecimal.
    id: [u8; 32],
    traceparent: [u8; 55],
}

impl Ids {
    pub(crate) fn new() -> Self {
        let random = || RandomState::new().build_hasher().finish();
        Self { worker: random(), count: random() }
    }

    /// Generates the IDs of the next request.
    pub(crate) fn make(&mut self) -> RequestIds {
        self.count = self.count.wrapping_add(1);
        let (low, parent) = (crate::hash::mix(self.count), crate::hash::mix(!self.count));
        let mut ids = RequestIds {
            id: [0; 32],
            traceparent: *b"00-00000000000000000000000000000000-0000000000000000-00",
        };
        hex(self.worker, &mut ids.id[..16]);
        hex(low, &mut ids.id[16..]);
        // Neither the trace ID nor the parent ID may be zero (W3C Trace Context, sections 3.2.2.3 and 3.2.2.4).
        hex(self.worker | 1, &mut ids.traceparent[3..19]);
        hex(low, &mut ids.traceparent[19..35]);
        hex(parent | 1, &mut ids.traceparent[36..52]);
        ids
    }
}

impl RequestIds {
    /// The ID of a request whose head was parsed from `buf`: the one that a trusted proxy in front sent, if valid, else
    /// the gateway's own.
    pub(crate) fn id<'a>(
        &'a self,
        tracing: &Tracing,
        head: &RequestHead,
        buf: &'a [u8],
        is_trusted: bool,
    ) -> &'a [u8] {
        let given =
            tracing.request_id.as_ref().filter(|_| is_trusted).and_then(|name| value(name, head, buf));
        given.filter(|id| !id.is_empty() && id.len() <= LONGEST).unwrap_or(&self.id)
    }

    /// The request's trace context: the client's if it sent a valid one, else a new one.
    pub(crate) fn traceparent<'a>(&'a self, head: &RequestHead, buf: &'a [u8]) -> &'a [u8] {
        value(TRACEPARENT, head, buf).filter(|value| is_traceparent(value)).unwrap_or(&self.traceparent)
    }
}

/// The value of a field that occurs exactly once.
fn value<'a>(name: &[u8], head: &RequestHead, buf: &'a [u8]) -> Option<&'a [u8]> {
    let mut named = head.fields.iter().filter(|field| field.name.of(buf).eq_ignore_ascii_case(name));
    let only = named.next()?;
    named.next().is_none().then(|| only.value.of(buf))
}

/// Whether a value is valid by W3C Trace Context, section 3.2. Versions after 00 may append more fields.
fn is_traceparent(value: &[u8]) -> bool {
    let hex = |part: &[u8]| part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_set = |part: &[u8]| hex(part) && part.iter().any(|byte| *byte != b'0');
    let Some((known, rest)) = value.split_at_checked(55) else { return false };
    let separated = [2, 35, 52].iter().all(|at| known[*at] == b'-');
    let fits = match &known[..2] {
        b"00" => rest.is_empty(),
        b"ff" => false,
        _ => rest.is_empty() || rest.starts_with(b"-"),
    };
    fits && separated
        && hex(&known[..2])
        && is_set(&known[3..35])
        && is_set(&known[36..52])
        && hex(&known[53..])
}

fn hex(number: u64, out: &mut [u8]) {
    for (digit, place) in out.iter_mut().enumerate() {
        *place = b"0123456789abcdef"[(number >> (60 - 4 * digit) & 15) as usize];
    }
}

pub(crate) const TRACEPARENT: &[u8] = b"traceparent";

/// The maximum length of an ID from a proxy in front, since it goes into a log line.
const LONGEST: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_unique_and_valid() {
        let mut ids = Ids::new();
        let mut seen = HashSet::new();
        for _ in 0..1000 {
            let made = ids.make();
            assert!(is_traceparent(&made.traceparent), "{}", made.traceparent.escape_ascii());
            assert!(seen.insert(made.id) && made.id.iter().all(u8::is_ascii_hexdigit));
        }
        assert_ne!(Ids::new().worker, ids.worker);
    }

    #[test]
    fn traceparents_have_one_form() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(is_traceparent(good.as_bytes()));
        assert!(is_traceparent(format!("01{}-more", &good[2..]).as_bytes()));
        for bad in [
            "",
            &good[..54],
            &format!("{good}-more"),
            &good.replace("00-", "ff-"),
            &good.replace("0af", "0AF"),
            &good.replace("b7ad6b7169203331", "0000000000000000"),
            &good.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &good.replace("-01", "_01"),
        ] {
            assert!(!is_traceparent(bad.as_bytes()), "{bad}");
        }
    }
}
