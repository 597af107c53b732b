//! Pairs of independent clients and services with the gateway in between. Each client performs the same steps with a
//! service, and all must write the same transcript.

mod chromium;
mod curl;
mod programs;
mod services;

pub(crate) use chromium::headless;

use crate::common::Certificates;
use aws_lc_rs::digest::{Context, SHA256};
use services::Services;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The services; `unix` has the steps of `api`, with a server on a Unix socket.
const SERVICES: [&str; 11] = [
    "site",
    "api",
    "unix",
    "chunked",
    "continued",
    "refused",
    "websocket",
    "events",
    "slow",
    "upload",
    "download",
];

/// The size of an upload or download in bytes, not a multiple of any buffer and more than the gateway's memory may
/// grow. One client transfers [`GIGABYTE`] bytes instead.
const BULK: u64 = 96 * 1024 * 1024 + 3;
const GIGABYTE: u64 = 1_000_000_007;

/// The maximum growth of the gateway's memory over all pairs of a client.
const GROWTH_KIB: u64 = 64 * 1024;

/// A client program.
trait Client {
    /// The services that it can use.
    fn services(&self) -> Vec<&'static str>;

    /// Performs the steps of a pair and returns the transcript, or the reason why there is none.
    fn transcript(&self, pair: &Pair<'_>) -> Result<String, String>;

    /// The bytes that it uploads and downloads.
    fn bulk(&self) -> u64 {
        BULK
    }
}

/// One client and one service.
struct Pair<'a> {
    /// `SCHEME://HOST:PORT`, with a path for a service below one.
    base: String,
    /// The steps to perform.
    steps: &'a str,
    length: u64,
    certificates: &'a Certificates,
}

#[test]
fn curl() {
    pairs_of(curl::Client::new);
}

#[test]
fn go() {
    pairs_of(|_| programs::Program::go());
}

#[test]
fn java() {
    pairs_of(|_| programs::Program::java());
}

#[test]
fn node_core() {
    pairs_of(|_| programs::Program::node("core"));
}

#[test]
fn node_undici() {
    pairs_of(|_| programs::Program::node("undici"));
}

#[test]
fn python_urllib() {
    pairs_of(|_| programs::Program::python("urllib"));
}

#[test]
fn python_requests() {
    pairs_of(|_| programs::Program::python("requests"));
}

#[test]
fn python_httpx() {
    pairs_of(|_| programs::Program::python("httpx"));
}

#[test]
fn python_websockets() {
    pairs_of(|_| programs::Program::python("websockets"));
}

#[test]
fn chromium() {
    pairs_of(|_| chromium::Chromium::new());
}

/// Runs all services with a client, over TLS and in cleartext, through one gateway.
fn pairs_of<C: Client>(client: impl FnOnce(&Certificates) -> Option<C>) {
    // A test with many bulk transfers must have the machine's cores to itself.
    static ALONE: Mutex<()> = Mutex::new(());
    let certificates = Certificates::new();
    let Some(client) = client(&certificates) else { return };
    let Some(services) = Services::start(&certificates) else { return };
    let before = services.weir.memory_kib("VmRSS");
    let mut failed = String::new();
    for tls in [true, false] {
        for service in client.services() {
            let bulk = ["upload", "download"].contains(&service);
            let _alone = bulk.then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner));
            let (steps, below) = if service == "unix" { ("api", "/unix") } else { (service, "") };
            let base = format!("{}{below}", services.base(tls));
            let pair = Pair { base, steps, length: client.bulk(), certificates: &certificates };
            let began = Instant::now();
            let got = client.transcript(&pair);
            println!("{service} over {}: {} ms", scheme(tls), began.elapsed().as_millis());
            let expected = expected(&pair);
            if got.as_ref() != Ok(&expected) {
                let got = got.unwrap_or_else(|error| error);
                let _ = writeln!(failed, "{service} over {}:\n{got}expected:\n{expected}", scheme(tls));
            }
        }
    }
    let grown = services.weir.memory_kib("VmHWM").saturating_sub(before);
    println!("memory: {before} KiB + {grown} KiB");
    // Check before the gateway exits, since it may wait for connections of a failed pair.
    assert!(failed.is_empty(), "{failed}\n{}", services.weir.stderr());
    let ended = services.weir.stop();
    assert!(grown < GROWTH_KIB, "{before} KiB + {grown} KiB");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // A timeout is one of the steps, and a client may disconnect when it no longer needs an event stream or a rejected
    // body.
    let reasons: BTreeSet<&str> =
        ended.stderr.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    println!("{reasons:?}");
    assert!(
        reasons.iter().all(|reason| ["upstream_timeout", "client_closed"].contains(reason)),
        "{}",
        ended.stderr
    );
}

fn all_but(absent: &[&str]) -> Vec<&'static str> {
    SERVICES.into_iter().filter(|service| !absent.contains(service)).collect()
}

/// The transcript of the steps.
fn expected(pair: &Pair<'_>) -> String {
    let picture = site_file("picture.png");
    let size = picture.len();
    let [small, middle, echo, large] = [5, 70_000, 300_000, 1_000_000].map(|size| digest(&pattern(size)));
    match pair.steps {
        "site" => format!(
            "GET / 200 text/html {}\nGET /style.css 200 text/css {}\nGET /picture.png 200 image/png {}\n\
             etag 304 0\nlast-modified 304 0\nrange 206 bytes 10-19/{size} {}\nHEAD 200 {size} 0\nmissing 404\n",
            digest(&site_file("index.html")),
            digest(&site_file("style.css")),
            digest(&picture),
            digest(&picture[10..20]),
        ),
        "page" => "picture 16 x 9\ncolour rgb(1, 2, 3)\n".to_owned(),
        "api" => format!(
            "POST 201 /api/items/1 {{\"id\":1,\"name\":\"Zoë\"}}\nGET 200 {{\"id\":1,\"name\":\"Zoë\"}}\n\
             PUT 200 {{\"id\":1,\"name\":\"Ada\"}}\nDELETE 204\nGET 404 {{\"error\":\"no such item\"}}\n\
             POST 400 {{\"error\":\"invalid JSON\"}}\ngzip 200 gzip {}\necho 200 length {echo}\n",
            digest("All that glitters is not gold.\n".repeat(5000).as_bytes()),
        ),
        "chunked" => format!("echo 200 chunked {echo}\n"),
        "continued" => "continued 200 {\"bytes\":300000,\"asked\":true}\n".to_owned(),
        "refused" => "refused 413 {\"error\":\"too large\"}\n".to_owned(),
        "websocket" => format!(
            "open echo\ntext Zoë €\ntext \nbinary {small}\nbinary {middle}\nbinary {large}\nclose 1000\n"
        ),
        "events" => (1..=5).fold(String::new(), |lines, number| format!("{lines}event {number} 204\n")),
        "upload" | "download" => format!("{} {}\n", pair.steps, digest_of_pattern(pair.length)),
        "slow" => format!(
            "late 200 late\ntrickle 200 {}\nnever 504 504 Gateway Timeout: upstream_timeout\n",
            "drop ".repeat(20).trim()
        ),
        steps => panic!("no such steps: {steps}"),
    }
}

/// A body's length and SHA-256.
fn digest(body: &[u8]) -> String {
    let mut sum = Sum::default();
    sum.update(body);
    sum.line()
}

fn digest_of_pattern(length: u64) -> String {
    let mut sum = Sum::default();
    blocks(length).for_each(|block| sum.update(block));
    sum.line()
}

/// The length and SHA-256 of the bytes received so far.
struct Sum {
    context: Context,
    bytes: u64,
}

impl Default for Sum {
    fn default() -> Self {
        Self { context: Context::new(&SHA256), bytes: 0 }
    }
}

impl Sum {
    fn update(&mut self, block: &[u8]) {
        self.context.update(block);
        self.bytes += block.len() as u64;
    }

    fn line(self) -> String {
        let mut line = self.bytes.to_string();
        line.push(' ');
        for byte in self.context.finish().as_ref() {
            let _ = write!(line, "{byte:02x}");
        }
        line
    }
}

/// The body of this length that clients and services use: byte i is i mod 251.
fn pattern(length: u64) -> Vec<u8> {
    blocks(length).flatten().copied().collect()
}

/// The same in blocks.
fn blocks(length: u64) -> impl Iterator<Item = &'static [u8]> {
    static BLOCK: [u8; 251 * 256] = {
        let mut block = [0; 251 * 256];
        let mut at = 0;
        while at < block.len() {
            block[at] = (at % 251) as u8;
            at += 1;
        }
        block
    };
    let size = BLOCK.len() as u64;
    (0..length.div_ceil(size)).map(move |at| &BLOCK[..size.min(length - at * size) as usize])
}

fn scheme(tls: bool) -> &'static str {
    if tls { "https" } else { "http" }
}

/// A file in this directory.
fn adjacent(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pairings").join(name).canonicalize().unwrap()
}

fn site_file(name: &str) -> Vec<u8> {
    std::fs::read(adjacent("site").join(name)).unwrap()
}
