//! Field names with an underscore, which many servers treat as a hyphen.

use super::{ask, metric, named};
use crate::common::{Upstream, Weir};

fn gateway(upstream: &Upstream, listener: &str) -> Weir {
    let config = format!(
        "workers = 1\n[admin]\nbind = '127.0.0.1:0'\n[listener.web]\nbind = '127.0.0.1:0'\n{listener}\n[service.app]\n\
         servers = 'http://{}'\n[[route]]\nservice = 'app'\nrequest_headers.set.X-User = 'nobody'\n",
        upstream.address
    );
    Weir::configured(&config, 1)
}

const FIELDS: [&str; 12] = [
    "plain_field: 1",
    "_: 2",
    "X-Mixed_Name: 3",
    // Fields that servers may confuse with fields of the gateway, the protocol or the route.
    "X_Forwarded_For: 203.0.113.7",
    "X-Forwarded_Proto: https",
    "x_real_ip: 203.0.113.7",
    "Content_Length: 5",
    "Transfer_Encoding: chunked",
    "Client_Cert: :YQ==:",
    "X_User: root",
    "Max_Forwards: 1",
    "X-Kept: 4",
];

#[test]
fn fields_with_an_underscore_are_dropped_passed_or_refused() {
    let upstream = named("app");
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n\r\n", FIELDS.join("\r\n"));
    for (listener, passed, counted) in [
        ("", &["X-Kept: 4"][..], 11),
        ("underscores_in_headers = 'drop'", &["X-Kept: 4"], 11),
        ("underscores_in_headers = 'pass'", &["plain_field: 1", "_: 2", "X-Mixed_Name: 3", "X-Kept: 4"], 5),
        // A trusted proxy forwards fields written by clients.
        (
            "underscores_in_headers = 'pass'\ntrusted_proxies = '127.0.0.1'",
            &["plain_field: 1", "_: 2", "X-Mixed_Name: 3", "X-Kept: 4"],
            5,
        ),
    ] {
        let weir = gateway(&upstream, listener);
        let answer = ask(&weir, &request);
        let found: Vec<_> = answer.text().lines().filter(|line| FIELDS.contains(line)).collect();
        assert_eq!(found, passed, "{listener}");
        assert_eq!(metric(&weir, "weir_underscore_fields_dropped_total"), counted, "{listener}");
    }
}

#[test]
fn a_listener_may_refuse_them() {
    let upstream = named("app");
    let weir = gateway(&upstream, "underscores_in_headers = 'reject'");
    for field in FIELDS {
        let answer = ask(&weir, &format!("GET / HTTP/1.1\r\nHost: h\r\n{field}\r\n\r\n"));
        if field.starts_with("X-Kept") {
            assert_eq!(answer.status, 200, "{field}");
        } else {
            assert!(
                answer.status == 400 && answer.text().contains("underscore_in_field_name"),
                "{field}: {}",
                answer.text()
            );
        }
    }
    super::check::refused(
        "[listener.web]\nbind = '127.0.0.1:0'\nunderscores_in_headers = 'on'\n[[route]]\nrespond.status = 200\n",
        "unknown variant `on`, expected one of `drop`, `pass`, `reject`",
    );
}
