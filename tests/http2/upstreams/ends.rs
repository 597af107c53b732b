//! Early ends of requests, responses and connections, by the server or the client.

use super::Case;
use crate::common::{DEADLINE, pattern, peer, poll_until};
use crate::http2::clients::run;
use std::fs;
use std::io::Read;
use std::process::Stdio;

/// curl's exit codes for a truncated body.
const PARTIAL_FILE: i32 = 18;
const HTTP2_STREAM: i32 = 92;

/// The response completes before the request. curl 7.88 reports the reset that follows in HTTP/2 as an error, also
/// without a gateway.
#[test]
fn a_response_to_a_part_of_the_request() {
    let Some(nghttp) = peer("nghttp") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, pattern(3_000_000)).unwrap();
    let file = file.to_str().unwrap();
    Case::each(|case| {
        let printed = run(&nghttp, &["--data", file, &case.behind.url("/early")]).stdout;
        assert_eq!(String::from_utf8_lossy(&printed), "too large", "{}", case.name);
        let version = case.versions()[0];
        for unknown in [&[][..], &["--header", "Transfer-Encoding: chunked"]] {
            let args = [unknown, &["--request", "POST", "--upload-file", file]].concat();
            assert_eq!(case.text(version, "/early", &args), ("too large".into(), 413), "{}", case.name);
        }
    });
}

#[test]
fn a_server_resets_streams() {
    Case::each(|case| {
        for version in case.versions() {
            let got = case.text(version, "/silent", &[]);
            assert_eq!(got, ("502 Bad Gateway: upstream_reset\n".into(), 502), "{} {version:?}", case.name);
            let cut = case.curl.command(&[version.1, &case.behind.url("/cut")]).output().unwrap();
            let partial = if version.0 == "2" { HTTP2_STREAM } else { PARTIAL_FILE };
            assert_eq!(cut.status.code(), Some(partial), "{} {version:?}", case.name);
            case.behind.weir.wait_for_stderr(&[" upstream_reset ", "GET /cut"]);
        }
        // All requests used a single connection.
        assert_eq!(case.text(case.versions()[1], "/connections", &[]), ("1".into(), 200), "{}", case.name);
    });
}

#[test]
fn a_server_refuses_streams() {
    Case::each(|case| {
        if !case.name.starts_with("Node") {
            return;
        }
        for version in case.versions() {
            for args in [&[][..], &["--data", "body"]] {
                let got = case.text(version, "/refused", args);
                assert_eq!(got, ("accepted".into(), 200), "{} {version:?} {args:?}", case.name);
            }
        }
    });
}

#[test]
fn a_server_ends_connections() {
    Case::each(|case| {
        let version = case.versions()[1];
        for connections in ["1", "2", "3"] {
            // Until GOAWAY arrives the gateway may send further requests.
            poll_until(DEADLINE, "another connection", || {
                case.text(version, "/connections", &[]) == (connections.into(), 200)
            });
            assert_eq!(case.text(version, "/last", &[]), ("last".into(), 200), "{}", case.name);
        }
    });
}

#[test]
fn clients_abandon_responses() {
    Case::each(|case| {
        for (number, version) in (1..).zip(case.versions()) {
            let mut curl = case.curl.command(&["--no-buffer", version.1, &case.behind.url("/endless")]);
            let mut curl = curl.stdout(Stdio::piped()).spawn().unwrap();
            let mut beginning = [0; 13];
            curl.stdout.as_mut().unwrap().read_exact(&mut beginning).unwrap();
            assert_eq!(&beginning, b"the beginning");
            curl.kill().unwrap();
            curl.wait().unwrap();
            poll_until(DEADLINE, "the server's stream is reset", || {
                case.text(version, "/abandoned", &[]) == (number.to_string(), 200)
            });
        }
    });
}
