//! The gateway between other programs: curl and OpenSSL as clients, nginx and servers in Go, Node and Python as
//! upstreams.

use crate::common::{Certificates, MODES, Mode, origin, pattern, peer, serve};
use crate::servers::Server;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Empty, one byte, more than one read, and far more than all buffers in between.
const SIZES: [usize; 4] = [0, 1, 64 * 1024, 20_000_000];

#[test]
fn curl_through_h1c_h1c() {
    curl_up_and_down(MODES[0]);
}

#[test]
fn curl_through_h1_h1c() {
    curl_up_and_down(MODES[1]);
}

#[test]
fn curl_through_h1c_h1() {
    curl_up_and_down(MODES[2]);
}

#[test]
fn curl_through_h1_h1() {
    curl_up_and_down(MODES[3]);
}

fn curl_up_and_down(mode: Mode) {
    let certificates = Certificates::new();
    let Some(curl) = Curl::new(&certificates) else { return };
    let origin = origin(mode.upstream_tls, &certificates);
    let weir = serve(mode, &certificates, origin.address(), &[]);
    let url = &weir.urls[0];
    for size in SIZES {
        let expected = origin_bytes(size);
        let down = curl.get(&format!("{url}/bytes/{size}"), &[]);
        down.is(200, &expected);
        assert_eq!(down.field("content-length"), Some(size.to_string()));
        let down = curl.get(&format!("{url}/bytes/{size}?chunked=1"), &[]);
        down.is(200, &expected);
        assert_eq!(down.field("transfer-encoding").as_deref(), Some("chunked"));
        curl.upload_both_ways(&format!("{url}/echo"), size);
    }
    let ended = weir.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("ended early: none"), "{}", ended.stdout);
}

/// Regression test: over TLS, curl then offers only `http/1.0`, and the handshake failed.
#[test]
fn curl_with_http_1_0() {
    for mode in MODES {
        let certificates = Certificates::new();
        let Some(curl) = Curl::new(&certificates) else { return };
        let origin = origin(mode.upstream_tls, &certificates);
        let weir = serve(mode, &certificates, origin.address(), &[]);
        curl.get(&format!("{}/bytes/1000", weir.urls[0]), &["--http1.0"]).is(200, &origin_bytes(1000));
    }
}

#[test]
fn go_as_upstream() {
    upstream_in_both_modes(Server::go);
}

#[test]
fn node_as_upstream() {
    upstream_in_both_modes(Server::node);
}

#[test]
fn python_as_upstream() {
    upstream_in_both_modes(Server::python);
}

/// Modes with TLS on one side only, so that each side is tested with and without it.
fn upstream_in_both_modes(start: fn(Option<&Certificates>) -> Option<Server>) {
    let certificates = Certificates::new();
    let Some(curl) = Curl::new(&certificates) else { return };
    for mode in [MODES[1], MODES[2]] {
        let Some(server) = start(mode.upstream_tls.then_some(&certificates)) else { return };
        let weir = serve(mode, &certificates, server.address(mode.upstream_tls), &[]);
        let url = weir.urls[0].as_str();
        for size in SIZES {
            curl.get(&format!("{url}/bytes/{size}"), &[]).is(200, &pattern_251(size));
            let chunked = curl.get(&format!("{url}/chunked/{size}"), &[]);
            chunked.is(200, &pattern_251(size));
            chunked.is_chunked(size);
            curl.upload_both_ways(&format!("{url}/echo"), size);
        }
        responses_without_a_body(&curl, url);
        connections_are_reused(&curl, url);
        curl.get(&format!("{url}/last"), &[]).is(200, b"last");
        let cut = curl.get(&format!("{url}/cut"), &[]);
        assert_eq!(
            (cut.exit, cut.status, cut.body.as_slice()),
            (Some(PARTIAL_FILE), 200, &b"the beginning"[..])
        );
        let silent = curl.get(&format!("{url}/silent"), &[]);
        silent.is(502, b"502 Bad Gateway: upstream_closed\n");
        weir.wait_for_stderr(&["upstream_truncated", "GET /cut"]);
        weir.wait_for_stderr(&["502 upstream_closed", "GET /silent"]);
        curl.get(&format!("{url}/bytes/1"), &[]).is(200, &[0]);
        assert_eq!(weir.stop().code, Some(0));
    }
}

#[test]
fn nginx_as_upstream() {
    let certificates = Certificates::new();
    let Some(curl) = Curl::new(&certificates) else { return };
    let Some(nginx) = Server::nginx(&certificates, &SIZES, pattern_251) else { return };
    for mode in [MODES[1], MODES[2]] {
        let weir = serve(mode, &certificates, nginx.address(mode.upstream_tls), &[]);
        let url = weir.urls[0].as_str();
        for size in SIZES {
            curl.get(&format!("{url}/bytes/{size}"), &[]).is(200, &pattern_251(size));
            let chunked = curl.get(&format!("{url}/chunked/{size}"), &[]);
            chunked.is(200, &pattern_251(size));
            chunked.is_chunked(size);
            let body = format!("@{}", curl.file(&pattern(size)));
            for (framing, name) in
                [("Content-Type: a/b", "length"), ("Transfer-Encoding: chunked", "chunked")]
            {
                let name = format!("{}-{name}-{size}", mode.name);
                let how = ["-X", "PUT", "-H", framing, "--data-binary", &body];
                let put = curl.get(&format!("{url}/upload/{name}"), &how);
                assert!(matches!(put.status, 201 | 204), "{} {}", put.head, put.stderr);
                assert!(nginx.uploaded(&name) == pattern(size), "{name} differs from the uploaded body");
            }
        }
        let whole = curl.get(&format!("{url}/bytes/65536"), &[]);
        let tag = format!("If-None-Match: {}", whole.field("etag").unwrap());
        curl.get(&format!("{url}/bytes/65536"), &["-H", &tag]).is(304, b"");
        curl.get(&format!("{url}/bytes/65536"), &["-r", "10-19"]).is(206, &pattern_251(20)[10..]);
        let head = curl.get(&format!("{url}/bytes/65536"), &["-I"]);
        assert_eq!((head.status, head.field("content-length").as_deref()), (200, Some("65536")));
        curl.get(&format!("{url}/204"), &[]).is(204, b"");
        connections_are_reused(&curl, url);
        curl.get(&format!("{url}/last"), &[]).is(200, b"last");
        curl.get(&format!("{url}/silent"), &[]).is(502, b"502 Bad Gateway: upstream_closed\n");
        curl.get(&format!("{url}/bytes/1"), &[]).is(200, &[0]);
        assert_eq!(weir.stop().code, Some(0));
    }
}

/// Tests HEAD, 204 and 304, and that the connection stays in sync after each of them.
fn responses_without_a_body(curl: &Curl, url: &str) {
    let head = curl.get(&format!("{url}/bytes/1000"), &["-I"]);
    assert_eq!((head.exit, head.status), (Some(0), 200), "{}", head.stderr);
    assert_eq!(head.field("content-length").as_deref(), Some("1000"));
    curl.get(&format!("{url}/204"), &[]).is(204, b"");
    curl.get(&format!("{url}/304"), &[]).is(304, b"");
    let urls = ["204", "bytes/3", "304", "bytes/3"].map(|path| format!("{url}/{path}"));
    let one_connection = curl.run(&urls.each_ref().map(String::as_str));
    assert_eq!((one_connection.exit, one_connection.body), (Some(0), vec![0, 1, 2, 0, 1, 2]));
}

/// One upstream connection serves requests of one client connection and of several. The servers report their number of
/// connections, and nginx that of the current one.
fn connections_are_reused(curl: &Curl, url: &str) {
    let url = format!("{url}/connections");
    let first = curl.get(&url, &[]).body;
    let all = curl.run(&[url.as_str(); 20]).body;
    assert_eq!(String::from_utf8_lossy(&all), String::from_utf8_lossy(&first.repeat(20)));
    for _ in 0..5 {
        curl.get(&url, &[]).is(200, &first);
    }
}

/// A returning client resumes on any worker.
#[test]
fn openssl_resumes_with_two_workers() {
    let Some(openssl) = peer("openssl") else { return };
    let certificates = Certificates::new();
    let origin = origin(false, &certificates);
    let weir = serve(MODES[1], &certificates, origin.address(), &["--workers", "2"]);
    let folder = tempfile::tempdir().unwrap();
    let request = folder.path().join("request");
    fs::write(&request, "GET /bytes/10 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    for flags in [&["-tls1_3"][..], &["-tls1_2"], &["-tls1_2", "-no_ticket"]] {
        let session = folder.path().join("session");
        let _ = fs::remove_file(&session);
        for connection in 0..16 {
            let mut client = Command::new(&openssl);
            client.args(["s_client", "-ign_eof", "-verify_return_error", "-connect"]);
            client.arg(weir.address().to_string()).args(flags).arg("-CAfile").arg(&certificates.ca);
            client.arg("-sess_out").arg(&session);
            if connection > 0 {
                client.arg("-sess_in").arg(&session);
            }
            let output = client.stdin(fs::File::open(&request).unwrap()).output().unwrap();
            let (stdout, stderr) = (lossy(&output.stdout), lossy(&output.stderr));
            let kind = if connection > 0 { "Reused, TLSv1" } else { "New, TLSv1" };
            assert!(
                stdout.contains(kind),
                "{flags:?}, connection {connection}: no `{kind}` in\n{stdout}{stderr}"
            );
            assert!(stdout.contains("HTTP/1.1 200 OK") && stdout.contains("0123456789"), "{stdout}{stderr}");
        }
    }
    let ended = weir.stop();
    for count in ["3 full", "15 resume-1.2-id", "15 resume-1.2-ticket", "15 resume-1.3-psk"] {
        assert!(ended.stdout.contains(count), "no `{count}` in {}", ended.stdout);
    }
}

/// curl's exit code for a truncated body.
const PARTIAL_FILE: i32 = 18;

/// curl as a client that trusts the test's CA.
pub(crate) struct Curl {
    program: PathBuf,
    ca: PathBuf,
    folder: TempDir,
}

/// The outcome of one call of curl.
pub(crate) struct Got {
    pub(crate) exit: Option<i32>,
    pub(crate) status: u16,
    /// The last head.
    head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) stderr: String,
}

impl Curl {
    pub(crate) fn new(certificates: &Certificates) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        Some(Self { program: peer("curl")?, ca: certificates.ca.clone(), folder })
    }

    pub(crate) fn get(&self, url: &str, flags: &[&str]) -> Got {
        self.run(&[flags, &[url]].concat())
    }

    /// curl with these arguments, without input.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut curl = Command::new(&self.program);
        // HTTP/2 is tested separately.
        curl.args([
            "--disable",
            "--silent",
            "--show-error",
            "--noproxy",
            "*",
            "--max-time",
            "120",
            "--http1.1",
        ]);
        curl.arg("--cacert").arg(&self.ca).args(args).stdin(Stdio::null());
        curl
    }

    fn run(&self, args: &[&str]) -> Got {
        let heads = self.folder.path().join("heads");
        let mut curl = self.command(args);
        let output = curl.arg("--dump-header").arg(&heads).output().unwrap();
        let heads = fs::read_to_string(&heads).unwrap_or_default();
        let head = heads.trim_end().rsplit("\r\n\r\n").next().unwrap_or_default().to_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Got { exit: output.status.code(), status, head, body: output.stdout, stderr: lossy(&output.stderr) }
    }

    /// A file with this content.
    pub(crate) fn file(&self, content: &[u8]) -> String {
        let path = self.folder.path().join("upload");
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Uploads bodies to a URL that echoes them: streamed and from memory, with a length and in chunks.
    fn upload_both_ways(&self, url: &str, size: usize) {
        let body = pattern(size);
        let file = self.file(&body);
        let in_memory = format!("@{file}");
        for how in [["-X", "POST", "-T", &file], ["-X", "POST", "--data-binary", &in_memory]] {
            let length = self.get(url, &how);
            length.is(200, &body);
            if size == 0 && how.contains(&"-T") {
                // curl 7.88 never sends the last chunk of an empty file.
                continue;
            }
            let chunked = self.get(url, &[&how[..], &["-H", "Transfer-Encoding: chunked"]].concat());
            chunked.is(200, &body);
            chunked.is_chunked(size);
        }
    }
}

impl Got {
    /// Compares the body byte by byte, which is stricter than by hash.
    fn is(&self, status: u16, body: &[u8]) {
        let Self { exit, stderr, head, .. } = self;
        assert_eq!((*exit, self.status), (Some(0), status), "{head} {stderr}");
        let (got, expected) = (self.body.len(), body.len());
        assert!(self.body == body, "got {got} bytes, expected {expected}, or they differ: {head}");
    }

    /// An empty response may have either framing: Go and Node send a length of 0.
    fn is_chunked(&self, size: usize) {
        let framing = self.field("transfer-encoding");
        assert!(size == 0 || framing.as_deref() == Some("chunked"), "{}", self.head);
    }

    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    }
}

/// The origin's response body for /bytes/N.
fn origin_bytes(size: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(size);
    while all.len() < size {
        all.extend_from_slice(weir_origin::pattern::from(all.len() as u64, (size - all.len()) as u64));
    }
    all
}

/// The peers' response body.
fn pattern_251(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
