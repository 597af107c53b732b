//! Calls of gRPC.

use super::*;
use std::thread;
use weir_load::Grpc;
use weir_load::result::GrpcFigures;
use weir_origin::{Origin, Settings as OriginSettings, Totals};

/// Runs calls against the test server in this process.
fn called(path: &str, grpc: Grpc, change: impl FnOnce(&mut Options)) -> (LoadResult, Totals) {
    let listen = vec!["http://127.0.0.1:0".parse().unwrap()];
    let origin =
        Origin::bind(&OriginSettings { listen, workers: Some(1), ..OriginSettings::default() }).unwrap();
    let mut options = options(&format!("{}{path}", origin.endpoints().next().unwrap()));
    options.grpc = Some(grpc);
    change(&mut options);
    let handle = origin.handle();
    let thread = thread::spawn(move || origin.run().unwrap());
    let result = load(&options);
    handle.drain();
    (result, thread.join().unwrap())
}

#[track_caller]
fn grpc(result: &LoadResult) -> &GrpcFigures {
    result.grpc.as_ref().unwrap()
}

/// The test server and the engine count the same.
#[test]
fn calls_of_each_kind() {
    for (path, messages, expect_messages, size) in [
        ("/weir.Echo/Unary", 1, 1, 1000),
        ("/weir.Echo/Unary?delay_ms=1", 1, 1, 0),
        ("/weir.Echo/Server?messages=7", 1, 7, 10),
        ("/weir.Echo/Client", 20, 1, 5000),
        ("/weir.Echo/Client", 0, 1, 0),
        ("/weir.Echo/Bidi", 50, 50, 300),
        ("/grpc.echo.Any/Method", 3, 3, 1),
    ] {
        let (result, totals) = called(path, Grpc { messages, expect_messages }, |options| {
            options.requests[0].body = Some(vec![b'x'; size]);
            options.stream_window = 4000;
        });
        assert_good(&result);
        assert_eq!(result.validity, "valid", "{path}");
        assert_eq!((totals.answers, totals.reset), (result.answered_in_all, 0), "{path}");
        assert_eq!(totals.bytes_received, result.answered_in_all * u64::from(messages) * (5 + size as u64));
        assert_eq!(
            (result.asked.messages, result.asked.expect_messages),
            (Some(messages), Some(expect_messages))
        );
        let grpc = grpc(&result);
        assert_eq!(grpc.statuses.keys().collect::<Vec<_>>(), ["OK"]);
        assert_eq!(grpc.statuses["OK"], result.requests, "{path}");
        // Calls that the window's edges cut have a part of their messages in it.
        let at_edges = 32 * u64::from(messages);
        assert!(
            grpc.messages_sent.abs_diff(result.requests * u64::from(messages)) <= at_edges,
            "{path}: {grpc:?}"
        );
        let at_edges = 32 * expect_messages;
        assert!(
            grpc.messages_received.abs_diff(result.requests * expect_messages) <= at_edges,
            "{path}: {grpc:?}"
        );
        let rate = grpc.messages_received as f64 / result.window_s;
        assert!((grpc.messages_received_per_second - rate).abs() <= rate * 1e-9);
    }
}

#[test]
fn calls_of_an_open_loop_count_from_the_planned_instant() {
    let (result, totals) = called("/weir.Echo/Unary?delay_ms=20", Grpc::default(), |options| {
        options.streams = 100;
        options.schedule = weir_load::Schedule::constant(200.0, options.phases.window);
    });
    assert_good(&result);
    assert_eq!((result.pacer.clone().unwrap().planned, result.response.count), (100, 100));
    assert!(result.response.mean_us >= 20_000.0 && totals.failed == 0);
}

/// Methods that the test server does not have, and requests that it rejects, by responses that are only a head.
#[test]
fn a_status_in_the_head_is_an_error_with_its_name() {
    for (path, expected) in [
        ("/weir.Echo/Other", "grpc-status 12 UNIMPLEMENTED: expected /weir.Echo/Unary"),
        ("/weir.Echo/Server", "grpc-status 13 INTERNAL: 2 messages: expected one"),
    ] {
        let (result, totals) = called(path, Grpc { messages: 2, expect_messages: 1 }, |_| {});
        assert_eq!((result.requests, result.errors.len()), (0, 1), "{:?}", result.error_examples);
        assert!(result.errors["grpc_status"] > 0 && totals.answers >= result.errors["grpc_status"]);
        let example = &result.error_examples["grpc_status"];
        assert!(example.starts_with(expected), "{example}");
        assert!(!grpc(&result).statuses.contains_key("OK") && result.validity.contains("grpc_status"));
    }
}

#[test]
fn each_fault_of_a_response_is_named() {
    const MESSAGE: &[u8] = b"\0\0\0\0\x01x";
    for (messages, status, class, example) in [
        (MESSAGE, Some("14"), "grpc_status", "grpc-status 14 UNAVAILABLE"),
        (b"", Some("99"), "grpc_status", "grpc-status 99 (unknown)"),
        (MESSAGE, Some("one"), "malformed", "invalid grpc-status `one`"),
        (MESSAGE, None, "malformed", "the response has no grpc-status"),
        (b"\0\0\0\0\x02x", Some("0"), "malformed", "the body ends within a gRPC message; missing bytes: 1"),
        (b"\0\0", Some("0"), "malformed", "the body ends within the prefix of a gRPC message"),
        (
            b"\x09\0\0\0\0",
            Some("0"),
            "malformed",
            "the prefix of a gRPC message starts with 9: expected 0 or 1",
        ),
        (b"", Some("0"), "length", "unexpected number of messages: 0"),
        (b"\0\0\0\0\0\0\0\0\0\0", Some("0"), "length", "unexpected number of messages: 2"),
    ] {
        failed(Script::Call { messages, status }, class, example);
    }
    failed(Script::Status(503), "status", "status 503");
    // It responds to any request, without a content type.
    failed(Script::Respond, "malformed", "no content-type: expected application/grpc");
}

/// All calls fail in one way.
#[track_caller]
fn failed(script: Script, class: &str, example: &str) {
    let server = Server::start(script, usual());
    let mut options = options(&server.url("http", "/s/m"));
    options.grpc = Some(Grpc::default());
    options.phases.window = Duration::from_millis(100);
    let result = load(&options);
    assert!(server.stop().answers > 0);
    let classes: Vec<&str> = result.errors.keys().map(String::as_str).collect();
    assert_eq!((result.requests, classes), (0, vec![class]), "{script:?}");
    assert_eq!(result.error_examples[class], example, "{script:?}");
}
