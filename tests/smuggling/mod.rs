//! Request smuggling: what clients and servers send that two parties could read differently, and what must become of it.
//! The cases are data, in `requests.toml` and `answers.toml`; each passes through a running gateway.

mod answers;
mod data;
mod messages;
mod origins;
mod requests;
mod tap;

use crate::common::{Client, DEADLINE, Weir, poll_until};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A gateway in front of one server. It sends no request twice, since the cases count them.
fn gateway_before(server: SocketAddr) -> Weir {
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[admin]\nbind = '127.0.0.1:0'\n\
         [service.app]\nservers = 'http://{server}'\n\
         [[route]]\npath = '/trailers'\nservice = 'app'\nretry = 'never'\nrequest_trailers = 'X-Sum'\n\
         [[route]]\nservice = 'app'\nretry = 'never'\n"
    );
    Weir::configured(&config, 1)
}

/// Does this with each case, and fails at the end if it failed with any: a matrix is read as a whole.
fn each<T>(cases: &[T], label: impl Fn(&T) -> &str, mut run: impl FnMut(&T)) {
    let fails = |case: &&T| {
        println!("{}", label(case));
        catch_unwind(AssertUnwindSafe(|| run(case))).is_err()
    };
    let failed: Vec<_> = cases.iter().filter(fails).map(&label).collect();
    assert!(failed.is_empty(), "{} cases: {failed:#?}", failed.len());
}

/// A file of this directory.
fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/smuggling").join(name)
}

/// How the bytes of a case arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    AtOnce,
    /// One by one; a long message in some hundred pieces.
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

/// What a gateway counts as ended early, by reason.
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

    /// Waits until exactly these have been counted since the last call.
    fn expect(&mut self, expected: &[&str], what: &str) {
        let mut wanted = self.seen.clone();
        for reason in expected {
            *wanted.entry((*reason).to_owned()).or_default() += 1;
        }
        let before = std::mem::take(&mut self.seen);
        let what = format!("{what}: only {expected:?} is counted, after {before:?}");
        poll_until(DEADLINE, &what, || {
            self.seen = self.now();
            // More would not become less.
            let unexpected = self.seen.iter().find(|(reason, count)| wanted.get(*reason) < Some(*count));
            assert!(unexpected.is_none(), "{what}, but {unexpected:?}");
            self.seen == wanted
        });
    }

    /// Since the last call at most these have been counted.
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
        let answer = Client::connect(self.admin, None).ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        let samples = answer.text().lines().filter_map(|line| {
            let (reason, count) =
                line.strip_prefix("weir_ended_early_total{reason=\"")?.split_once("\"} ")?;
            Some((reason.to_owned(), count.parse().unwrap()))
        });
        samples.filter(|(_, count)| *count > 0).collect()
    }
}
