//! curl, nghttp and h2load against the test server.

use crate::common::{Certificates, Weir, pattern, peer};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A test server on two ports, cleartext and TLS.
fn origin(certificates: &Certificates, flags: &[&str]) -> Weir {
    let [cert, key] = [&certificates.cert, &certificates.key].map(|path| path.to_str().unwrap());
    let listen = ["--listen", "http://127.0.0.1:0", "--listen", "https://127.0.0.1:0"];
    let identity = ["--cert", cert, "--key", key, "--workers", "1"];
    Weir::start(&[&["origin"], &listen[..], &identity, flags].concat())
}

/// Runs a client, which must succeed.
pub(super) fn run(program: &Path, args: &[&str]) -> Output {
    succeed(Command::new(program).args(args).stdin(Stdio::null()))
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
    assert!(output.status.success(), "{command:?}: {}\n{stdout:.2000}\n{stderr}", output.status);
    output
}

pub(super) struct Curl {
    program: PathBuf,
    ca: String,
}

impl Curl {
    pub(super) fn new(certificates: &Certificates) -> Option<Self> {
        Some(Self { program: peer("curl")?, ca: certificates.ca.to_str().unwrap().to_owned() })
    }

    /// curl with these arguments, without input.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut curl = Command::new(&self.program);
        curl.args(["--disable", "--silent", "--show-error", "--noproxy", "*", "--max-time", "120"]);
        curl.args(["--cacert", &self.ca]).args(args).stdin(Stdio::null());
        curl
    }

    /// The body, then HTTP version and status, such as `2 200`.
    pub(super) fn get(&self, args: &[&str]) -> (Vec<u8>, String) {
        let marked = ["--write-out", "\n%{http_version} %{http_code}"];
        let mut body = succeed(&mut self.command(&[&marked[..], args].concat())).stdout;
        let at = body.iter().rposition(|byte| *byte == b'\n').unwrap();
        let end = String::from_utf8(body.split_off(at)).unwrap();
        (body, end.trim().to_owned())
    }
}

pub(super) const PRIOR: &str = "--http2-prior-knowledge";

#[test]
fn curl_downloads_and_uploads() {
    let certificates = Certificates::new();
    let Some(curl) = Curl::new(&certificates) else { return };
    let origin = origin(&certificates, &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("upload");
    for (url, how) in [(&origin.urls[0], PRIOR), (&origin.urls[1], "--http2")] {
        for size in [0, 1, 64 * 1024, 20_000_000] {
            for query in ["", "?chunked=1"] {
                let (body, end) = curl.get(&[how, &format!("{url}/bytes/{size}{query}")]);
                assert_eq!(end, "2 200", "{url} {size}{query}");
                assert!(body == content(size), "{url} {size}{query}: {} bytes", body.len());
            }
            let sent = pattern(size);
            std::fs::write(&file, &sent).unwrap();
            let data = format!("@{}", file.display());
            for upload in [["--data-binary", data.as_str()], ["-T", file.to_str().unwrap()]] {
                let to = format!("{url}/echo");
                let (body, end) = curl.get(&[how, "-X", "POST", upload[0], upload[1], &to]);
                assert_eq!(end, "2 200", "{url} {size}");
                assert!(body == sent, "{url} {size}: {} bytes", body.len());
            }
        }
        let (_, end) = curl.get(&[how, "--head", &format!("{url}/bytes/1000")]);
        assert_eq!(end, "2 200");
        assert_eq!(curl.get(&[how, &format!("{url}/nothing")]), (b"Not found.\n".to_vec(), "2 404".into()));
    }
    let ended = origin.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("(0 failed)"), "{}", ended.stdout);
}

#[test]
fn curl_chooses_the_version() {
    let certificates = Certificates::new();
    let Some(curl) = Curl::new(&certificates) else { return };
    let version = |url: &str, how: &[&str]| curl.get(&[how, &[&format!("{url}/bytes/1")]].concat()).1;
    let both = origin(&certificates, &[]);
    let [cleartext, tls] = [both.urls[0].as_str(), &both.urls[1]];
    assert_eq!(version(cleartext, &[]), "1.1 200");
    assert_eq!(version(cleartext, &[PRIOR]), "2 200");
    // The upgrade of RFC 7540 is obsolete, so the connection stays with HTTP/1.1.
    assert_eq!(version(cleartext, &["--http2"]), "1.1 200");
    assert_eq!(version(tls, &[]), "2 200");
    assert_eq!(version(tls, &["--http1.1"]), "1.1 200");
    assert_eq!(version(tls, &["--no-alpn"]), "1.1 200");
    // Regression test: with this flag, curl offers only `http/1.0`.
    assert_eq!(version(tls, &["--http1.0"]), "1.1 200");

    let first = origin(&certificates, &["--http", "1.1"]);
    assert_eq!(version(&first.urls[1], &["--http2"]), "1.1 200");
    let second = origin(&certificates, &["--http", "2"]);
    assert_eq!(version(&second.urls[0], &[PRIOR]), "2 200");
    assert_eq!(version(&second.urls[1], &["--http2"]), "2 200");
}

#[test]
fn nghttp_sends_many_requests_at_once() {
    let Some(nghttp) = peer("nghttp") else { return };
    let certificates = Certificates::new();
    let origin = origin(&certificates, &[]);
    for url in &origin.urls {
        let urls = [1, 1000, 100_000, 3_000_000].map(|size| format!("{url}/bytes/{size}"));
        let args = [&["--null-out", "--stat", "--multiply=20"], &urls.each_ref().map(String::as_str)[..]];
        let output = run(&nghttp, &args.concat());
        let said = String::from_utf8_lossy(&output.stdout);
        let ended = said.lines().filter(|line| line.contains(" 200 ")).count();
        assert_eq!(ended, 80, "{said}");
    }
    let ended = origin.stop();
    assert!(
        ended.stdout.contains("served 160 requests (160 answers complete, 0 refused)"),
        "{}",
        ended.stdout
    );
}

#[test]
fn h2load_has_many_streams() {
    let Some(h2load) = peer("h2load") else { return };
    let certificates = Certificates::new();
    let origin = origin(&certificates, &[]);
    for url in &origin.urls {
        for (streams, size, windows) in [("64", 500, "30"), ("200", 20_000, "30"), ("64", 100_000, "16")] {
            let url = format!("{url}/bytes/{size}");
            let args = ["-n", "1000", "-c", "4", "-m", streams, "-w", windows, "-W", windows, &url];
            let said = String::from_utf8(run(&h2load, &args).stdout).unwrap();
            assert!(said.contains("1000 succeeded, 0 failed, 0 errored"), "{url}: {said}");
            assert!(said.contains(&format!("({}) data", 1000 * size)), "{url}: {said}");
        }
    }
    let ended = origin.stop();
    assert!(
        ended.stdout.contains("served 6000 requests (6000 answers complete, 0 refused)"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("on 24 connections (0 failed)"), "{}", ended.stdout);
}

/// The content of `/bytes/N`.
fn content(size: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(size);
    while all.len() < size {
        all.extend_from_slice(weir_origin::pattern::from(all.len() as u64, (size - all.len()) as u64));
    }
    all
}
