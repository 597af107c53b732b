//! Checks of a response, in HTTP/1.1 or HTTP/2.

use crate::Invariant;
use crate::ledger::{Ledger, Outcome};
use crate::message::{ATTEMPT, COPY};
use crate::setting::VERSION;

/// A response's head: its status, and whether an origin sent it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) status: u16,
    pub(crate) is_own: bool,
}

/// Checks a final head that the client of a request received; `field` returns a field's value.
pub(crate) fn begin(
    id: usize,
    status: u16,
    field: impl Fn(&str) -> Option<String>,
    ledger: &mut Ledger,
) -> Begun {
    let named = field("x-id");
    let begun = Begun { status, is_own: named.is_some() };
    let Some(entry) = ledger.entries.get_mut(id) else { return begun };
    entry.has_begun |= named.is_some();
    let (arrivals, attempt) = (entry.arrivals.len(), field(ATTEMPT).and_then(|text| text.parse().ok()));
    let is_replaced = attempt.is_some_and(|attempt: usize| attempt + 1 != arrivals);
    let wrong = match entry.arrivals.last() {
        _ if field(COPY).is_some() => Some(format!("#{id} got the answer to a copy")),
        _ if is_replaced => Some(format!("#{id} got the answer to attempt {attempt:?} of {arrivals}")),
        Some(arrival) if named.is_some() && !entry.is_passed => field(VERSION)
            .filter(|version| *version != arrival.version.to_string())
            .map(|version| format!("#{id} began by configuration {}, ended by {version}", arrival.version)),
        _ => None,
    };
    if let Some(wrong) = wrong {
        ledger.violation(Invariant::Owner, wrong);
    }
    if let Some(named) = &named
        && *named != id.to_string()
    {
        ledger.violation(Invariant::Owner, format!("the answer to #{named} went to the client of #{id}"));
    }
    if named.is_none() && status < 400 {
        ledger.violation(Invariant::Owner, format!("#{id} got {status} from nobody"));
    }
    begun
}

/// Checks a complete response, and records it as the outcome of its request.
pub(crate) fn complete(id: usize, begun: Begun, body: &[u8], ledger: &mut Ledger) {
    let Some(entry) = ledger.entries.get(id) else { return };
    if !begun.is_own {
        return ledger.outcome(id, Outcome::Refused(begun.status));
    }
    let ask = &entry.ask;
    let error = entry.arrivals.last().and_then(|arrival| arrival.error);
    let (status, wanted) = match error {
        Some(error) => (error.status, ask.error_body(error, entry.arrivals.len() - 1)),
        None => (ask.status(), ask.answer_body()),
    };
    if begun.status != status || body != wanted {
        let (wanted, got) = (wanted.len(), body.len());
        ledger.violation(
            Invariant::Bytes,
            format!("#{id} got {} with {got} bytes, not its {wanted}", begun.status),
        );
    }
    ledger.outcome(id, Outcome::Answered);
}
