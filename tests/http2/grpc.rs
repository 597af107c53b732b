//! gRPC through the gateway: the gateway's errors as gRPC responses, deadlines, and gRPC statuses in logs and metrics.

use super::Client;
use super::fields::{Field, request};
use crate::common::{DEADLINE, Peer, Upstream, Weir, poll_until};
use std::fs;

/// The fields of a call.
fn call<'a>(path: &'a str, more: &[Field<'a>]) -> Vec<Field<'a>> {
    [&request("POST", path)[..], &[(b"content-type", b"application/grpc"), (b"te", b"trailers")], more]
        .concat()
}

/// A message of five bytes, preceded by its length.
const MESSAGE: &[u8] = b"\0\0\0\0\x05hello";

fn metric(weir: &Weir, line: &str) {
    poll_until(DEADLINE, &format!("{line} among the metrics"), || {
        weir.ask_admin("GET /metrics").text().contains(line)
    });
}

#[test]
fn the_gateways_errors_are_responses_of_grpc() {
    // This server accepts requests, and does not respond.
    let silent = Upstream::start(None, |peer: &mut Peer| {
        peer.read_to_end();
    });
    let config = format!(
        "workers = 1\nadmin = {{ bind = '127.0.0.1:0' }}\n[listener.web]\nbind = '127.0.0.1:0'\n\
         [service.dead]\nservers = 'http://127.0.0.1:1'\nhttp2 = true\n\
         [service.silent]\nservers = 'http://{}'\nhttp2 = true\n\
         [[route]]\npath = '/dead.S/*'\nservice = 'dead'\nmax_body = 100\n\
         [[route]]\npath = '/silent.S/*'\nservice = 'silent'\n\
         [[route]]\npath = '/closed.S/*'\nrespond = {{ status = 403 }}\n\
         [[route]]\npath = '/moved.S/*'\nredirect.to = 'https://h/'\n",
        silent.address
    );
    let weir = Weir::configured(&config, 1);
    let mut client = Client::connect(weir.address());
    let large: &[Field<'_>] = &[(b"content-length", b"101")];
    let deadline: &[Field<'_>] = &[(b"grpc-timeout", b"50m")];
    for (stream, path, more, status, words) in [
        (1, "/dead.S/M", &[][..], "14", "502 Bad Gateway: upstream_connect"),
        (3, "/none.S/M", &[], "12", "404 Not Found"),
        (5, "/dead.S/M", large, "8", "413 Content Too Large: body_too_large"),
        (7, "/closed.S/M", &[], "7", "403 Forbidden"),
        (9, "/silent.S/M", deadline, "4", "504 Gateway Timeout: exchange_timeout"),
    ] {
        client.headers(stream, &call(path, more), false);
        let received = client.response(stream);
        let found = [received.field("content-type"), received.field("grpc-status")];
        assert_eq!((received.status(), found), (200, ["application/grpc", status]), "{path}");
        assert!(received.field("grpc-message").starts_with(words), "{received:?}");
        assert_eq!((received.body.len(), received.trailers.as_str()), (0, ""));
    }
    // A redirect is not one of them, nor is an error for another kind of request.
    client.headers(11, &call("/moved.S/M", &[]), true);
    assert_eq!(client.response(11).status(), 308);
    assert_eq!(client.get(13, "/none").response(13).status(), 404);
    metric(&weir, "weir_grpc_responses_total{status=\"DEADLINE_EXCEEDED\"} 1");
}

#[test]
fn calls_pass_with_their_trailers() {
    let origin = Weir::start(&["origin", "--listen", "http://127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let config = format!(
        "workers = 1\nadmin = {{ bind = '127.0.0.1:0' }}\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\n\
         servers = '{}'\nhttp2 = true\n[[route]]\nservice = 'app'\n[log]\naccess = '{}'\n",
        origin.urls[0],
        log.display()
    );
    let weir = Weir::configured(&config, 1);
    let mut client = Client::connect(weir.address());
    // Messages in both directions, one after the other.
    client.headers(1, &call("/grpc.echo.Echo/Bidi", &[]), false);
    for n in 1..=3 {
        client
            .data(1, MESSAGE, false)
            .read_until(|client| client.get_stream(1).body.len() >= n * MESSAGE.len());
        assert_eq!(client.get_stream(1).body.len(), n * MESSAGE.len());
    }
    let received = client.data(1, b"", true).response(1);
    assert_eq!(received.field("content-type"), "application/grpc");
    assert!(received.trailers.contains("grpc-status: 0\r\n"), "{received:?}");
    metric(&weir, "weir_grpc_responses_total{status=\"OK\"} 1");
    poll_until(DEADLINE, "the line of the call", || {
        let line = fs::read_to_string(&log).unwrap_or_default();
        line.contains("\"protocol\":\"HTTP/2.0\",\"status\":200,\"grpc_status\":0")
    });
    // A request without gRPC to the same server is not a call.
    let echoed = client.post(3, "/echo").data(3, b"hello", true).response(3);
    assert_eq!(echoed.text(), "hello");
}
