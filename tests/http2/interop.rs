//! gRPC's interoperability tests through the gateway, between grpc-go and grpcio.

use super::behind::Behind;
use super::clients::run;
use crate::servers::Server;
use crate::servers::http2::{grpc_go, grpcio};

/// Calls that end with a status.
const COMPLETE: [&str; 11] = [
    "empty_unary",
    "large_unary",
    "client_streaming",
    "server_streaming",
    "ping_pong",
    "empty_stream",
    "status_code_and_message",
    "special_status_message",
    "custom_metadata",
    "unimplemented_method",
    "unimplemented_service",
];

/// Calls that the client resets.
const RESET: [&str; 3] = ["cancel_after_begin", "cancel_after_first_response", "timeout_on_sleeping_server"];

#[test]
fn go_over_h2c() {
    go(false);
}

#[test]
fn go_over_tls() {
    go(true);
}

/// Runs each case alone, and then 20 times concurrently on one connection.
fn go(tls: bool) {
    let Some(client) = grpc_go() else { return };
    for cases in [&COMPLETE[..], &RESET] {
        let Some(behind) = Behind::start(tls, |_, tls| Server::grpc_go(tls)) else { return };
        let (address, ca) = (behind.weir.address().to_string(), ca(&behind, tls));
        for count in ["1", "20"] {
            let printed = run(client, &[&["client", &address, &ca, count], cases].concat()).stdout;
            assert_eq!(String::from_utf8(printed).unwrap().lines().collect::<Vec<_>>(), cases);
        }
        match cases.len() == COMPLETE.len() {
            true => drop(behind.stop()),
            false => stop_after_resets(behind),
        }
    }
}

/// grpcio on both sides, with plain bytes as messages: each kind of call, statuses, metadata and a cancellation.
#[test]
fn python() {
    grpcio_client("client");
}

/// Deadlines within responses.
#[test]
fn python_deadlines() {
    grpcio_client("deadline");
}

fn grpcio_client(calls: &str) {
    let Some((python, script)) = grpcio() else { return };
    for tls in [false, true] {
        let Some(behind) = Behind::start(tls, |_, tls| Server::grpcio(tls)) else { return };
        let (address, ca) = (behind.weir.address().to_string(), ca(&behind, tls));
        let printed = run(&python, &[script.to_str().unwrap(), calls, &address, &ca]).stdout;
        assert_eq!(String::from_utf8_lossy(&printed), "ok\n");
        stop_after_resets(behind);
    }
}

fn ca(behind: &Behind, tls: bool) -> String {
    if tls { behind.certificates.ca.to_str().unwrap().to_owned() } else { String::new() }
}

/// A call may end early only by a reset, by the end of its connection, or at its deadline, which gateway and server
/// also enforce.
fn stop_after_resets(behind: Behind) {
    let ended = behind.weir.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let reason = |line: &str| line.split(' ').nth(2).unwrap().to_owned();
    let reasons: Vec<String> = ended.stderr.lines().map(reason).collect();
    let expected = ["client_reset", "client_closed", "upstream_reset", "exchange_timeout"];
    assert!(reasons.iter().all(|reason| expected.contains(&&**reason)), "{}", ended.stderr);
    assert!(!reasons.is_empty());
}
