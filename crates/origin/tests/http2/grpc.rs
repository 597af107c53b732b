//! Calls of gRPC: their messages, and their status in the trailers or in a response that is only a head.

use super::client::{Client, Response};
use crate::server::Server;

const FIELDS: [(&str, &str); 2] = [("content-type", "application/grpc+x"), ("te", "trailers")];

/// A message of two bytes, with its prefix.
const MESSAGE: &[u8] = b"\0\0\0\0\x02hi";

/// The response to a whole request.
fn call(client: &mut Client, path: &str, body: &[u8]) -> Response {
    let no = client.request("POST", path, &FIELDS, body.is_empty());
    if !body.is_empty() {
        client.upload(no, body);
    }
    client.response(no)
}

/// A response's messages, with their prefixes, and its status.
fn outcome(response: Response) -> (Vec<u8>, String) {
    assert_eq!((response.status, response.fields["content-type"].as_str()), (200, "application/grpc"));
    let status = response.trailers.get("grpc-status").expect("the trailers have the status");
    (response.body, status.clone())
}

#[test]
fn each_message_returns_as_it_arrives() {
    let server = Server::start();
    let mut client = Client::new(&server);
    for messages in 0..3 {
        let path = if messages < 2 { "/grpc.echo.Echo/Call" } else { "/weir.Echo/Bidi" };
        let no = client.request("POST", path, &FIELDS, messages == 0);
        for at in 1..=messages {
            // The call may be bidirectional: a message returns before the next one.
            assert_eq!(client.data(no, MESSAGE, at == messages), MESSAGE.len());
            client.send();
            client.until(|client| client.responses[&no].body.len() == at * MESSAGE.len());
        }
        let response = client.response(no);
        assert_eq!((response.status, response.body), (200, MESSAGE.repeat(messages)));
        assert_eq!(response.fields["content-type"], "application/grpc");
        assert_eq!(response.trailers.into_iter().collect::<Vec<_>>(), [("grpc-status".into(), "0".into())]);
    }
    let get = client.get("/grpc.echo.Echo/Call");
    let plain = client.request("POST", "/weir.Echo/Unary", &[("content-type", "text/plain")], true);
    for no in [get, plain] {
        let response = client.response(no);
        assert_eq!(response.status, 400);
        assert!(String::from_utf8_lossy(&response.body).contains("POST with content-type application/grpc"));
    }
    drop(client);
    assert!(
        server.ask("POST /grpc.echo.Echo/Call HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 400 "),
        "gRPC needs HTTP/2"
    );
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers, totals.refused), (6, 6, 0));
}

#[test]
fn a_unary_call_has_one_message() {
    let server = Server::start();
    let mut client = Client::new(&server);
    let large = [&[0, 0, 4, 0, 0][..], &[b'x'; 1 << 18]].concat();
    for (body, status) in [
        (MESSAGE, "0"),
        (large.as_slice(), "0"),
        (b"\0\0\0\0\0", "0"),
        (b"", "13"),
        (&MESSAGE.repeat(2), "13"),
        (&MESSAGE[..6], "13"),
        (b"\x07\0\0\0\0", "13"),
    ] {
        let response = call(&mut client, "/weir.Echo/Unary", body);
        assert_eq!(response.trailers.contains_key("grpc-message"), status != "0");
        let (messages, found) = outcome(response);
        assert_eq!(found, status, "{}", body.escape_ascii());
        assert!(messages == body);
    }
    drop(client);
    server.stop();
}

#[test]
fn a_message_returns_as_often_as_the_path_says() {
    let server = Server::start();
    let mut client = Client::new(&server);
    let large = [&[0, 0, 1, 0, 0][..], &[b'x'; 1 << 16]].concat();
    for (query, body, times) in [
        ("", MESSAGE, 1),
        ("?messages=0", MESSAGE, 0),
        ("?messages=3&delay_ms=1", MESSAGE, 3),
        ("?messages=5000", MESSAGE, 5000),
        // More than the window: the client's credit resumes the response.
        ("?messages=20", large.as_slice(), 20),
    ] {
        let (messages, status) = outcome(call(&mut client, &format!("/weir.Echo/Server{query}"), body));
        assert_eq!((status.as_str(), messages.len()), ("0", body.len() * times), "{query}");
        assert!(messages == body.repeat(times), "{query}");
    }
    drop(client);
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers, totals.failed), (5, 5, 0));
}

#[test]
fn many_messages_become_their_total() {
    let server = Server::start();
    let mut client = Client::new(&server);
    for (times, total) in
        [(0, "{\"messages\":0,\"bytes\":0}"), (40_000, "{\"messages\":40000,\"bytes\":80000}")]
    {
        let (message, status) = outcome(call(&mut client, "/weir.Echo/Client", &MESSAGE.repeat(times)));
        assert_eq!(status, "0");
        assert_eq!(message[..5], [0, 0, 0, 0, total.len() as u8]);
        assert_eq!(String::from_utf8_lossy(&message[5..]), total);
    }
    drop(client);
    server.stop();
}

#[test]
fn failed_calls_get_their_status_in_the_head() {
    let server = Server::start();
    let mut client = Client::new(&server);
    let large = [&[0, 0, 0x40, 0, 1][..], &vec![b'x'; (4 << 20) + 1]].concat();
    for (path, body, status, text) in [
        ("/weir.Echo/Other", MESSAGE, "12", "expected /weir.Echo/Unary, Server, Client or Bidi"),
        ("/other.Service/Method", b"", "12", "expected /weir.Echo/"),
        ("/weir.Echo/Server", &MESSAGE.repeat(2), "13", "2 messages: expected one"),
        ("/weir.Echo/Server", &MESSAGE[..4], "13", "ends within the prefix"),
        ("/weir.Echo/Client", &MESSAGE[..6], "13", "within a gRPC message; missing bytes: 1"),
        ("/weir.Echo/Server", large.as_slice(), "8", "larger than 4 MiB"),
    ] {
        let response = call(&mut client, path, body);
        let field = |name: &str| response.fields[name].as_str();
        assert_eq!(
            (response.status, field("content-type"), field("grpc-status")),
            (200, "application/grpc", status)
        );
        assert!(field("grpc-message").contains(text), "{path}: {response:?}");
        assert!(response.body.is_empty() && response.trailers.is_empty());
    }
    drop(client);
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers), (6, 6));
}
