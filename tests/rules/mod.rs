//! The rules that gateways have learned from failures in production, a test each: rule 5, 12 to 17 and the greater part of 23 are
//! about HTTP/2. What a rule says in general is here; the corner cases are in the modules of their subjects.

mod connections;
mod messages;
mod process;
mod tls;

use crate::common::{Answer, Case, Client, MODES, Mode, Peer};

const CLEARTEXT: Mode = MODES[0];
const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A gateway in cleartext, and an upstream that runs this script.
fn cleartext(flags: &[&str], script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Case {
    Case::new(CLEARTEXT, flags, script)
}

/// Asks on a connection of its own; the gateway closes it after a rejection.
fn ask(case: &Case, request: impl AsRef<[u8]>) -> Answer {
    case.client().ask(request)
}

/// Asks for what must be rejected with this reason, before a byte of it reaches the upstream, and closes.
fn rejected(case: &Case, request: &str, status: u16, reason: &str) {
    let before = case.upstream.received_bytes();
    let mut client: Client = case.client();
    let answer = client.ask(request);
    assert!(answer.status == status && answer.text().contains(reason), "{request:?}: {}", answer.text());
    client.expect_end();
    assert_eq!(case.upstream.received_bytes(), before, "{request:?}");
}
