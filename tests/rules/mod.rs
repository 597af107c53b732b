//! Rules that gateways have learned from failures in production, with one test each. Rules 5, 12 to 17 and most of 23
//! apply to HTTP/2. These tests cover the general case; the modules of the subjects test corner cases.

mod connections;
mod messages;
mod process;
mod tls;

use crate::common::{Answer, Case, Client, MODES, Mode, Peer};

const CLEARTEXT: Mode = MODES[0];
const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A gateway in cleartext, with an upstream that runs this script.
fn cleartext(flags: &[&str], script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Case {
    Case::new(CLEARTEXT, flags, script)
}

/// Sends a request on a new connection, which the gateway closes after a rejection.
fn ask(case: &Case, request: impl AsRef<[u8]>) -> Answer {
    case.client().ask(request)
}

/// Sends a request, which the gateway must reject with this reason before a byte reaches the upstream, and then close
/// the connection.
fn rejected(case: &Case, request: &str, status: u16, reason: &str) {
    let before = case.upstream.received_bytes();
    let mut client: Client = case.client();
    let answer = client.ask(request);
    assert!(answer.status == status && answer.text().contains(reason), "{request:?}: {}", answer.text());
    client.expect_end();
    assert_eq!(case.upstream.received_bytes(), before, "{request:?}");
}
