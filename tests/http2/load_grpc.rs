//! `weir load --grpc` against the test server, grpc-go and grpcio, with and without a gateway in between.

use super::behind::Behind;
use crate::common::load::{load, load_well};
use crate::common::{Certificates, Weir};
use crate::servers::Server;
use std::fs;
use weir_load::result::LoadResult;

/// A short run of calls, over TLS if there is a CA.
fn calls(url: &str, ca: Option<&Certificates>, more: &[&str]) -> LoadResult {
    load_well(&words(url, ca, more))
}

fn words<'a>(url: &'a str, ca: Option<&'a Certificates>, more: &[&'a str]) -> Vec<&'a str> {
    let short = ["--http", "2", "--grpc", "-c", "2", "-m", "4", "-d", "300ms", "--warmup", "50ms"];
    let ca = ca.map(|certificates| ["--cacert", certificates.ca.to_str().unwrap()]);
    [&[url][..], &short, ca.as_ref().map_or(&[], |ca| ca.as_slice()), more].concat()
}

#[track_caller]
fn assert_good(result: &LoadResult, up: u64, down: u64) {
    assert_eq!(result.validity, "valid", "{:?}", result.error_examples);
    let grpc = result.grpc.as_ref().unwrap();
    assert_eq!(grpc.statuses, [("OK".to_string(), result.requests)].into());
    // Calls at the edges of the window have only a part of their messages in it.
    for (found, each) in [(grpc.messages_sent, up), (grpc.messages_received, down)] {
        assert!(found.abs_diff(result.requests * each) <= 8 * each, "{} calls: {grpc:?}", result.requests);
    }
}

/// The test server in cleartext, alone and behind a gateway that speaks HTTP/2 on both sides.
#[test]
fn the_test_servers_methods() {
    let origin = Weir::start(&["origin", "--listen", "http://127.0.0.1:0"]);
    let listen = ["--listen", "http://127.0.0.1:0", "--upstream-http2", "--to", &origin.urls[0]];
    let gateway = Weir::start(&[&["serve"], &listen[..]].concat());
    for at in [&origin.urls[0], &gateway.urls[0]] {
        for (path, data, up, down) in [
            ("/weir.Echo/Unary", "1KiB", 1, 1),
            ("/weir.Echo/Server?messages=20", "100", 1, 20),
            ("/weir.Echo/Client", "20KiB", 10, 1),
            ("/weir.Echo/Bidi", "20KiB", 10, 10),
        ] {
            let (messages, expected) = (up.to_string(), down.to_string());
            let more = ["--data", data, "--messages", &messages, "--expect-messages", &expected];
            assert_good(&calls(&format!("{at}{path}"), None, &more), up, down);
        }
        let result = load(&words(&format!("{at}/weir.Echo/Other"), None, &[])).result;
        assert_eq!((result.requests, result.errors.len()), (0, 1));
        let example = &result.error_examples["grpc_status"];
        assert!(example.starts_with("grpc-status 12 UNIMPLEMENTED: "), "{example}");
    }
}

/// The gateway's errors are statuses of gRPC.
#[test]
fn a_gateway_without_a_server() {
    let gateway = Weir::start(&["serve", "--listen", "http://127.0.0.1:0", "--to", "http://127.0.0.1:1"]);
    let result = load(&words(&format!("{}/s/m", gateway.urls[0]), None, &[])).result;
    assert_eq!((result.requests, result.errors.len()), (0, 1), "{:?}", result.error_examples);
    let example = &result.error_examples["grpc_status"];
    assert!(example.starts_with("grpc-status 14 UNAVAILABLE: 502 Bad Gateway"), "{example}");
}

#[test]
fn the_table_has_the_messages() {
    let origin = Weir::start(&["origin", "--listen", "http://127.0.0.1:0"]);
    let url = format!("{}/weir.Echo/Bidi", origin.urls[0]);
    let ended = Weir::run(
        &[&["load"], &words(&url, None, &["--messages", "5", "--expect-messages", "5"])[..]].concat(),
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("gRPC calls with 5 messages up and 5 down"), "{}", ended.stdout);
    assert!(ended.stdout.contains("\n  messages       sent "), "{}", ended.stdout);
}

/// The rates of messages in conditions, and the messages of each second.
#[test]
fn conditions_and_seconds_have_the_messages() {
    let origin = Weir::start(&["origin", "--listen", "http://127.0.0.1:0"]);
    let url = format!("{}/weir.Echo/Server?messages=20", origin.urls[0]);
    let more = |condition| ["--expect-messages", "20", "--assert", condition];
    let holds = "messages_sent_per_second>0,messages_received_per_second>0";
    let held = load(&words(&url, None, &more(holds)));
    assert_eq!(held.code, Some(0), "{}", held.stderr);
    let (grpc, seconds) = (held.result.grpc.as_ref().unwrap(), &held.result.seconds);
    assert_eq!(seconds.iter().map(|second| second.messages_sent).sum::<u64>(), grpc.messages_sent);
    assert_eq!(seconds.iter().map(|second| second.messages_received).sum::<u64>(), grpc.messages_received);
    let failed = load(&words(&url, None, &more("messages_received_per_second<1")));
    assert_eq!(failed.code, Some(4), "{}", failed.stderr);
    assert!(failed.stderr.contains("messages_received_per_second is "), "{}", failed.stderr);
}

/// The interoperability service, whose messages are protocol buffers: an empty message has only default values.
#[test]
fn grpc_go() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("three");
    // Three values of the field `response_parameters`, each with a size of 10.
    fs::write(&file, b"\x12\x02\x08\x0a".repeat(3)).unwrap();
    let three = file.to_str().unwrap();
    for tls in [false, true] {
        let Some(behind) = Behind::start(tls, |_, tls| Server::grpc_go(tls)) else { return };
        let ca = tls.then_some(&behind.certificates);
        let scheme = if tls { "https" } else { "http" };
        let alone = format!("{scheme}://{}", behind.server.address(tls));
        for at in [alone, behind.url("")] {
            let call = |method: &str| format!("{at}/grpc.testing.TestService/{method}");
            assert_good(&calls(&call("EmptyCall"), ca, &[]), 1, 1);
            assert_good(&calls(&call("UnaryCall"), ca, &["--data", "0"]), 1, 1);
            assert_good(&calls(&call("StreamingInputCall"), ca, &["--messages", "9"]), 9, 1);
            let down = ["--data", three, "--expect-messages", "3"];
            assert_good(&calls(&call("StreamingOutputCall"), ca, &down), 1, 3);
            let both = ["--data", three, "--messages", "2", "--expect-messages", "6"];
            assert_good(&calls(&call("FullDuplexCall"), ca, &both), 2, 6);
            let result = load(&words(&call("UnimplementedCall"), ca, &[])).result;
            assert!(result.error_examples["grpc_status"].starts_with("grpc-status 12 UNIMPLEMENTED"));
            assert_eq!((result.requests, result.errors.len()), (0, 1));
        }
        behind.stop();
    }
}

#[test]
fn grpcio() {
    let Some(behind) = Behind::start(false, |_, tls| Server::grpcio(tls)) else { return };
    for at in [format!("http://{}", behind.server.address(false)), behind.url("")] {
        let call = |method: &str| format!("{at}/weir.Test/{method}");
        assert_good(&calls(&call("unary"), None, &["--data", "100"]), 1, 1);
        assert_good(&calls(&call("upload"), None, &["--data", "100", "--messages", "4"]), 4, 1);
        let both = ["--data", "100", "--messages", "4", "--expect-messages", "4"];
        assert_good(&calls(&call("echo"), None, &both), 4, 4);
        let result = load(&words(&call("status"), None, &["--data", "3"])).result;
        assert_eq!(result.error_examples["grpc_status"], "grpc-status 9 FAILED_PRECONDITION: xxx");
    }
}
