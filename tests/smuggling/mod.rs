//! Request smuggling: messages that two recipients could parse differently, and the gateway's handling of them. The
//! cases are data, in `requests.toml` and `answers.toml`; each passes through a running gateway.

mod answers;
mod data;
mod messages;
mod origins;
mod requests;
mod tap;

use self::data::Entry;
use crate::common::{Client, DEADLINE, Weir, poll_until};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use weir_http1::Rule;

/// A gateway in front of one server. It does not retry, since the cases count requests. Its first listener and service
/// accept no violation, the second accept all that settings allow, and each further pair accepts the violations of one
/// rule.
fn gateway_before(server: SocketAddr) -> Weir {
    let one = |rule: &Rule| format!("'{}'", rule.name());
    let of = |rules: &[Rule; 5]| {
        let all: Vec<_> = rules.iter().map(one).collect();
        let mut sets = vec!["[]".to_owned(), format!("[{}]", all.join(", "))];
        sets.extend(all);
        sets
    };
    let mut config = "workers = 1\n[admin]\nbind = '127.0.0.1:0'\n".to_owned();
    let sets = of(&Rule::OF_REQUESTS).into_iter().zip(of(&Rule::OF_RESPONSES));
    for (name, (requests, answers)) in sets.enumerate() {
        config.push_str(&format!(
            "[listener.{name}]\nbind = '127.0.0.1:0'\nhalf_close = 'serve'\nhttp2 = false\naccept = {requests}\n\
             [service.{name}]\nservers = 'http://{server}'\naccept = {answers}\n\
             [[route]]\nlistener = '{name}'\npath = '/trailers'\nservice = '{name}'\nretry = 'never'\n\
             request_trailers = 'X-Sum'\n\
             [[route]]\nlistener = '{name}'\nservice = '{name}'\nretry = 'never'\n"
        ));
    }
    Weir::configured(&config, LISTENERS)
}

/// The number of listeners of [`gateway_before`].
const LISTENERS: usize = 2 + Rule::OF_REQUESTS.len();

/// The listener that accepts everything.
const LENIENT: usize = 1;

/// The listener for a case's key `accept`: the name of a rule, or `all`.
fn listener_for(accept: Option<&str>, rules: &[Rule; 5]) -> usize {
    match accept {
        None => 0,
        Some("all") => LENIENT,
        Some(name) => 2 + rules.iter().position(|rule| rule.name() == name).unwrap(),
    }
}

/// The rules that the metrics count as accepted for a case: those of its key `counted`, else of `accept` unless the
/// gateway rejects the message for another reason.
fn counted(entry: &Entry<'_>) -> Vec<String> {
    let names = match (entry.text("counted"), entry.text("accept")) {
        (Some(counted), _) => counted,
        (None, Some(rule)) if entry.text("refused").is_none() => rule,
        (None, _) => "",
    };
    names.split_whitespace().map(|name| format!("accepted {}", name.replace(['-', '.'], "_"))).collect()
}

/// Whether the body of a generated response has this reason, optionally followed by the setting that accepts the
/// message.
fn names_reason(answer: &str, reason: &str) -> bool {
    let (_, said) = answer.rsplit_once("\r\n\r\n").unwrap_or_default();
    let said = said.split_once(": ").and_then(|(_, said)| said.strip_suffix('\n'));
    said.is_some_and(|said| said.split(';').next() == Some(reason))
}

/// Runs each case, and fails at the end if any case failed, so that one run shows the whole matrix.
fn each<T>(cases: &[T], label: impl Fn(&T) -> &str, mut run: impl FnMut(&T)) {
    let fails = |case: &&T| {
        let has_failed = catch_unwind(AssertUnwindSafe(|| run(case))).is_err();
        if has_failed {
            println!("The message above is that of the case: {}", label(case));
        }
        has_failed
    };
    let failed: Vec<_> = cases.iter().filter(fails).map(&label).collect();
    assert!(failed.is_empty(), "{} cases: {failed:#?}", failed.len());
}

/// A file of this directory.
fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/smuggling").join(name)
}

/// The segmentation of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    AtOnce,
    /// Byte by byte; a long message in about a hundred pieces.
    InPieces,
}

impl Sent {
    fn pieces(self, bytes: &[u8]) -> std::slice::Chunks<'_, u8> {
        let size = match self {
            Self::AtOnce => bytes.len(),
            Self::InPieces => bytes.len().div_ceil(300),
        };
        bytes.chunks(size.max(1))
    }
}

/// The gateway's counters of early ends, by reason, and of accepted violations, by rule.
struct Reasons {
    admin: SocketAddr,
    seen: BTreeMap<String, u64>,
}

impl Reasons {
    fn of(weir: &Weir) -> Self {
        let mut reasons = Self { admin: weir.admin(), seen: BTreeMap::new() };
        reasons.seen = reasons.now();
        reasons
    }

    /// Waits until the counters have grown by exactly these since the last call.
    fn expect(&mut self, expected: &[&str], what: &str) {
        let mut wanted = self.seen.clone();
        for reason in expected {
            *wanted.entry((*reason).to_owned()).or_default() += 1;
        }
        let before = std::mem::take(&mut self.seen);
        let what = format!("{what}: only {expected:?} is counted, after {before:?}");
        poll_until(DEADLINE, &what, || {
            self.seen = self.now();
            // Counters never decrease.
            let unexpected = self.seen.iter().find(|(reason, count)| wanted.get(*reason) < Some(*count));
            assert!(unexpected.is_none(), "{what}, but {unexpected:?}");
            self.seen == wanted
        });
    }

    /// Checks that the counters have grown by no more than these since the last call.
    fn allow(&mut self, allowed: &[&str], what: &str) {
        let now = self.now();
        let before = std::mem::replace(&mut self.seen, now);
        for (reason, count) in &self.seen {
            let most = allowed.iter().filter(|allowed| *allowed == reason).count() as u64;
            let new = count - before.get(reason).unwrap_or(&0);
            assert!(new <= most, "{what}: {reason} is counted {new} times");
        }
    }

    fn now(&self) -> BTreeMap<String, u64> {
        let answer =
            Client::connect(self.admin, None).ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut counts = BTreeMap::new();
        for line in answer.text().lines() {
            let ended = line.strip_prefix("weir_ended_early_total{reason=\"").map(|rest| ("", rest));
            let accepted = line.strip_prefix("weir_accepted_total{rule=\"").map(|rest| ("accepted ", rest));
            let Some((kind, rest)) = ended.or(accepted) else { continue };
            let (name, _) = rest.split_once('"').unwrap();
            let count: u64 = rest.rsplit_once(' ').unwrap().1.parse().unwrap();
            *counts.entry(format!("{kind}{name}")).or_default() += count;
        }
        counts.retain(|_, count| *count > 0);
        counts
    }
}
