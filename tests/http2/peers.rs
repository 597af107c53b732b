//! Other HTTP/2 clients: curl, nghttp, h2load and Go's net/http, over TLS and in cleartext.

use super::listening;
use crate::common::{Certificates, Peer, Upstream, Weir, go_program, pattern, peer};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Responds to `/echo` with the body in chunks and a trailer, to `/bytes/N` with N bytes.
fn serve(peer: &mut Peer) {
    while let Some(request) = peer.request() {
        let path = request.head.split(' ').nth(1).unwrap().to_owned();
        let response = match path.strip_prefix("/bytes/") {
            Some(length) => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                let with_body = !request.head.starts_with("HEAD ");
                [head.as_bytes(), &pattern(if with_body { length.parse().unwrap() } else { 0 })].concat()
            }
            None => {
                let mut response =
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n".to_vec();
                for piece in request.body.chunks(10_000) {
                    response.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                    response.extend_from_slice(piece);
                    response.extend_from_slice(b"\r\n");
                }
                response.extend_from_slice(format!("0\r\nX-Sum: {}\r\n\r\n", request.body.len()).as_bytes());
                response
            }
        };
        peer.answer(response);
    }
}

/// A gateway with this scheme, in front of such a server.
struct Fixture {
    weir: Weir,
    _upstream: Upstream,
    certificates: Certificates,
}

impl Fixture {
    fn new(tls: bool) -> Self {
        let (certificates, upstream) = (Certificates::new(), Upstream::start(None, serve));
        let weir = match tls {
            true => {
                let (chain, key) = (certificates.cert.display(), certificates.key.display());
                let certificate = format!("[[certificate]]\nchain = '{chain}'\nkey = '{key}'\n");
                listening("[listener.web.tls]", &upstream, "", &certificate)
            }
            false => listening("", &upstream, "", ""),
        };
        Self { weir, _upstream: upstream, certificates }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.weir.urls[0])
    }

    /// Stops the gateway. Every exchange must be complete.
    fn stop(self) {
        let ended = self.weir.stop();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains("ended early: none"), "{}\n{}", ended.stdout, ended.stderr);
    }
}

/// Runs a program that must succeed; returns its stdout.
fn run(program: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program:?} {args:?}: {}\n{stderr}", output.status);
    output.stdout
}

#[test]
fn curl() {
    let Some(curl) = peer("curl") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    for (tls, flag) in [(true, "--http2"), (false, "--http2-prior-knowledge")] {
        let fixture = Fixture::new(tls);
        let ca = fixture.certificates.ca.to_str().unwrap();
        let ask = |path: &str, flags: &[&str]| {
            let args =
                [&["--silent", "--show-error", "--max-time", "60", "--cacert", ca, flag][..], flags].concat();
            run(&curl, &[&args[..], &[&fixture.url(path)]].concat())
        };
        assert_eq!(ask("/bytes/1", &["--output", "/dev/null", "--write-out", "%{http_version}"]), b"2");
        let head = String::from_utf8(ask("/bytes/9", &["--head"])).unwrap();
        assert!(head.starts_with("HTTP/2 200") && head.contains("content-length: 9\r\n"), "{head}");
        for size in [0, 1, 65_536, 3_000_000] {
            let body = pattern(size);
            fs::write(&file, &body).unwrap();
            let path = file.to_str().unwrap();
            assert!(ask(&format!("/bytes/{size}"), &[]) == body, "{size}");
            assert!(ask("/echo", &["--data-binary", &format!("@{path}")]) == body, "{size}");
            // A body of unknown length.
            let stdin = fs::File::open(&file).unwrap();
            let args = [
                "--silent",
                "--max-time",
                "60",
                "--cacert",
                ca,
                flag,
                "--upload-file",
                "-",
                &fixture.url("/echo"),
            ];
            let output = Command::new(&curl).args(args).stdin(stdin).output().unwrap();
            assert!(output.status.success() && output.stdout == body, "{size}");
        }
        fixture.stop();
    }
}

#[test]
fn nghttp() {
    let Some(nghttp) = peer("nghttp") else { return };
    for tls in [true, false] {
        let fixture = Fixture::new(tls);
        let urls = [1, 20_000, 300_000, 0].map(|size| fixture.url(&format!("/bytes/{size}")));
        let urls: Vec<_> = urls.iter().map(String::as_str).collect();
        let length: usize = 320_001;
        // With h2load's priorities, padding, small windows and the smallest table.
        for flags in [&[][..], &["--padding=100"], &["-w14", "-W14"], &["--header-table-size=0"]] {
            assert_eq!(run(&nghttp, &[flags, &urls].concat()).len(), length, "{flags:?}");
        }
        fixture.stop();
    }
}

/// With the windows of ordinary clients, which differ from h2load's.
#[test]
fn h2load() {
    let Some(h2load) = peer("h2load") else { return };
    for tls in [true, false] {
        let fixture = Fixture::new(tls);
        for (size, count) in [(100, "400"), (100_000, "80")] {
            let url = fixture.url(&format!("/bytes/{size}"));
            let args = ["-n", count, "-c", "4", "-m", "20", "-w16", "-W16", &url];
            let report = String::from_utf8(run(&h2load, &args)).unwrap();
            let expected = format!("{count} succeeded, 0 failed, 0 errored, 0 timeout");
            assert!(report.contains(&expected), "{report}");
            assert!(report.contains(&format!("{count} 2xx")), "{report}");
        }
        fixture.stop();
    }
}

#[test]
fn go() {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/http2/client.go");
    let Some(client) = go_program("http2-client", &source, &[]) else { return };
    let fixture = Fixture::new(true);
    // More than the gateway's limit of streams: some wait in the client.
    let printed = run(&client, &[&fixture.weir.urls[0], fixture.certificates.ca.to_str().unwrap(), "150"]);
    assert_eq!(String::from_utf8_lossy(&printed), "ok\n");
    fixture.stop();
}
