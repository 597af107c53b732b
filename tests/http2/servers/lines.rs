//! The access log and the metrics for requests over HTTP/2 to servers.

use super::{BOTH, Connection, Content, Server, ask, gateway, metric};
use std::fs;
use weir_http2::ErrorCode;

#[test]
fn lines_of_the_access_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let server = Server::start(|connection: &mut Connection<'_>| {
        while let Some(request) = connection.request() {
            let stream = request.stream;
            match request.path() {
                "/reset" => {
                    connection.reset(stream, ErrorCode::INTERNAL_ERROR).flush();
                }
                "/refused" => {
                    connection.reset(stream, ErrorCode::REFUSED_STREAM).flush();
                }
                "/bad" => {
                    connection.headers(stream, &[], true).flush();
                }
                "/cut" => {
                    connection.headers(stream, &[(":status", "200")], false).data(stream, b"part", false);
                    connection.sync().reset(stream, ErrorCode::CANCEL).flush();
                }
                _ => connection.ok(&request),
            }
        }
    });
    let weir = gateway(&[&server], "", &format!("[log]\naccess = '{}'\n", file.display()));
    let rows = [
        ("POST", "/", 200, 5, Some(2), ""),
        ("POST", "/reset", 502, 5, None, "upstream_reset"),
        ("POST", "/refused", 502, 5, None, "upstream_reset"),
        ("POST", "/bad", 502, 5, None, "bad_upstream_http2"),
        ("POST", "/cut", 200, 5, Some(4), "upstream_reset"),
    ];
    for version in BOTH {
        for (method, path, status, ..) in rows {
            let reply = ask(&weir, version, method, path, &[], Content::Length(b"hello"));
            assert_eq!(reply.status, status, "{version:?} {path}");
        }
    }
    weir.stop();
    let log = fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2 * rows.len(), "{log}");
    let own = server.address().to_string();
    for (line, (method, path, status, received, sent, reason)) in lines.iter().zip(rows.into_iter().cycle()) {
        let about = line.to_string();
        assert_eq!((&line["method"], &line["target"]), (&method.into(), &path.into()), "{about}");
        assert_eq!((&line["status"], &line["received"]), (&status.into(), &received.into()), "{about}");
        if let Some(sent) = sent {
            assert_eq!(line["sent"], sent, "{about}");
        }
        assert_eq!(line["reason"].as_str().unwrap_or_default(), reason, "{about}");
        assert!(line["server"].as_str().is_some_and(|server| server.contains(&own)), "{about}");
    }
}

#[test]
fn metrics() {
    let server = Server::start(|connection| {
        while let Some(request) = connection.request() {
            match (request.path(), request.stream) {
                ("/once", 1) => {
                    connection.reset(1, ErrorCode::REFUSED_STREAM).flush();
                }
                _ => connection.ok(&request),
            }
        }
    });
    let weir = gateway(&[&server], "pool.max_requests = 3\n", super::ADMIN);
    for path in ["/once", "/", "/", "/"] {
        assert_eq!(ask(&weir, BOTH[0], "GET", path, &[], Content::None).text(), "ok");
    }
    let of = |name: &str| metric(&weir, &format!("weir_{name}_total"));
    assert_eq!(of("retries_unprocessed"), 1);
    assert_eq!(of("upstream_http2_connections"), server.connections() as u64);
    // The metrics count requests, not attempts.
    assert_eq!((of("upstream_http2_requests"), of("requests")), (4, 4));
    let (reads, writes) = (of("upstream_http2_reads"), of("upstream_http2_writes"));
    assert!((1..=4).contains(&reads), "{reads}");
    assert!(writes >= 4, "{writes}");
}
