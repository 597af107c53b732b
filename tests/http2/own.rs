//! The gateway's generated responses, and its log lines for requests.

use super::fields::request;
use super::{Client, gateway};
use std::fs;
use weir_http2::ErrorCode;

#[test]
fn the_gateways_own_responses() {
    let upstream = super::upstream();
    let weir = gateway(
        &upstream,
        "path = '/app'",
        "[[route]]\npath = '/hello'\nrespond = { status = 200, body = 'hello' }\n\
         [[route]]\npath = '/old/*'\nredirect.to = 'https://{host}{path}'\n",
    );
    let mut client = Client::connect(weir.address());
    let cases = [
        ("GET", "/hello", 200, "hello", ""),
        ("HEAD", "/hello", 200, "", ""),
        ("POST", "/hello", 200, "hello", ""),
        ("GET", "/old/a?b", 308, "", "https://h/old/a"),
        ("GET", "/none", 404, "404 Not Found", ""),
        ("GET", "/app", 200, "ok", ""),
    ];
    for (index, (method, path, status, text, location)) in cases.into_iter().enumerate() {
        let stream = 1 + 2 * index as u32;
        client.headers(stream, &request(method, path), method != "POST");
        let received = client.response(stream);
        assert_eq!(received.status(), status, "{path}: {received:?}");
        assert!(
            received.text().contains(text) && received.field("location").starts_with(location),
            "{received:?}"
        );
        assert_eq!(received.field("connection"), "");
        if method == "HEAD" {
            assert_eq!((received.field("content-length"), received.body.len()), ("5", 0));
        }
        if method == "POST" {
            // The response does not need the body.
            client
                .data(stream, b"hello", true)
                .read_until(|client| client.get_stream(stream).reset.is_some());
            assert_eq!(client.get_stream(stream).reset, Some(ErrorCode::NO_ERROR));
        }
    }
}

#[test]
fn lines_of_the_access_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let upstream = super::upstream();
    let weir = gateway(&upstream, "max_body = 10", &format!("[log]\naccess = '{}'\n", file.display()));
    let mut client = Client::connect(weir.address());
    let agent =
        [&request("GET", "/a?b")[..], &[(b"user-agent", b"test"), (b"referer", b"http://h/")]].concat();
    assert_eq!(client.headers(1, &agent, true).response(1).text(), "ok");
    assert_eq!(client.post(3, "/p").data(3, b"hello", true).response(3).text(), "ok");
    let refused = client.post(5, "/q").data(5, b"hello world", true).response(5);
    client.post(7, "/r").data(7, b"hello", false).reset(7, ErrorCode::CANCEL).sync();
    weir.stop();
    let log = fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |key: &str| lines.iter().map(|line| line[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("method"), ["GET", "POST", "POST", "POST"], "{log}");
    assert_eq!(of("target"), ["/a?b", "/p", "/q", "/r"]);
    assert_eq!(of("status"), [200, 200, 413, 0]);
    assert_eq!(of("received"), [0, 5, 11, 5]);
    assert_eq!(of("sent"), [2, 2, refused.body.len(), 0]);
    assert_eq!(of("reason")[2..], ["body_too_large", "client_reset"]);
    assert!(of("protocol").iter().all(|protocol| protocol == "HTTP/2.0"), "{log}");
    assert!(of("host").iter().all(|host| host == "h"), "{log}");
    assert_eq!((&lines[0]["user_agent"], &lines[0]["referer"]), (&"test".into(), &"http://h/".into()));
}
