//! What the gateway takes besides CPU time, with the program as it is released: the time to load a large configuration, memory
//! for each route, certificate and idle connection, and system calls for each request.
//!
//! `cargo bench -p weir --bench gateway` measures all, `-- scale`, `-- idle` or `-- calls` one of them. It fails where
//! a figure is above its limit. docs/decisions/0023-scale-and-idle-memory.md has what it showed.
#![allow(clippy::print_stdout, dead_code)]

#[path = "../../../tests/common/mod.rs"]
#[allow(unused_imports)]
mod common;

use common::{Certificates, Client, Ended, MODES, Mode, Stream, Weir, origin, serve};
use socket2::{Domain, Socket, Type};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use weir_reactor::limits::raise_open_files;
use weir_tls::issue::{Authority, KeyKind};

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let wants = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    let mut above = 0;
    if wants("scale") {
        above += scale();
    }
    if wants("idle") {
        above += idle(MODES[0], 0.6) + idle(MODES[1], 8.0);
    }
    if wants("calls") {
        above += calls();
    }
    if above == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints a figure; 1 if it is above its limit.
fn within(what: &str, value: f64, limit: f64, unit: &str) -> u32 {
    let is_above = value > limit;
    println!("{what}: {value:.3} {unit}, limit {limit} {unit}{}", if is_above { "  TOO MUCH" } else { "" });
    u32::from(is_above)
}

const ROUTES: usize = 10_000;
const CERTIFICATES: usize = 1000;
/// Keys of RSA take long to make: a tenth, from which the rest follows.
const RSA: usize = CERTIFICATES / 10;

fn scale() -> u32 {
    let folder = tempfile::tempdir().unwrap();
    let one = Loaded::of(folder.path(), &routes(1));
    let many = Loaded::of(folder.path(), &routes(ROUTES));
    let mut above = within("check of 10 000 routes", many.check.as_secs_f64(), 1.0, "s");
    above += within("start with 10 000 routes", many.start.as_secs_f64(), 1.0, "s");
    println!("each route: {:.0} bytes", many.bytes_beyond(&one) / (ROUTES - 1) as f64);
    for (kind, count) in [(KeyKind::EcdsaP256, CERTIFICATES), (KeyKind::Rsa2048, RSA)] {
        let written = write_certificates(folder.path(), kind, count);
        let one = Loaded::of(folder.path(), &certificates(&written[..1]));
        let many = Loaded::of(folder.path(), &certificates(&written));
        let for_all = |many: Duration, one: Duration| {
            let each = many.saturating_sub(one).as_secs_f64() / (count - 1) as f64;
            one.as_secs_f64() + each * (CERTIFICATES - 1) as f64
        };
        let check = format!("check of 1000 certificates, {kind:?}, of which {count} were loaded");
        above += within(&check, for_all(many.check, one.check), 1.0, "s");
        above += within("start with them", for_all(many.start, one.start), 1.0, "s");
        println!("each certificate: {:.0} bytes", many.bytes_beyond(&one) / (count - 1) as f64);
    }
    above
}

/// What loading a configuration took, and what a worker with it has in memory.
struct Loaded {
    check: Duration,
    start: Duration,
    rss_kib: u64,
}

impl Loaded {
    /// The fastest of five.
    fn of(folder: &Path, config: &str) -> Self {
        let file = folder.join("weir.toml");
        fs::write(&file, config).unwrap();
        let check = || {
            let begin = Instant::now();
            let Ended { code, stderr, .. } = Weir::run(&["check", "--config", file.to_str().unwrap()]);
            assert_eq!(code, Some(0), "{stderr}");
            begin.elapsed()
        };
        let start = || {
            let begin = Instant::now();
            let weir = Weir::configured(config, 1);
            (begin.elapsed(), weir.memory_kib("RssAnon"))
        };
        let (start, rss_kib) = (0..5).map(|_| start()).min().unwrap();
        Self { check: (0..5).map(|_| check()).min().unwrap(), start, rss_kib }
    }

    fn bytes_beyond(&self, other: &Self) -> f64 {
        1024.0 * (self.rss_kib as f64 - other.rss_kib as f64)
    }
}

/// So many routes to one service, five for each host.
fn routes(count: usize) -> String {
    let route = |n: usize| {
        let (host, path) = (n / 5, n % 5);
        format!("[[route]]\nhost = 'h{host}.example.org'\npath = '/p{path}/*'\nservice = 'app'\n")
    };
    format!("{BASE}{}", (0..count).map(route).collect::<String>())
}

const BASE: &str = "workers = 1
[listener.web]
bind = '127.0.0.1:0'
[service.app]
servers = 'http://127.0.0.1:1'
";

/// The directories of certificates with a name of their own.
fn write_certificates(folder: &Path, kind: KeyKind, count: usize) -> Vec<String> {
    let authority = Authority::new().unwrap();
    let write = |n: usize| {
        let place = folder.join(format!("{kind:?}-{n}"));
        fs::create_dir(&place).unwrap();
        let issued = authority.issue(&[&format!("c{n}.example.org")], kind).unwrap();
        let files = issued.write_to(&place).unwrap();
        format!("[[certificate]]\nchain = {:?}\nkey = {:?}\n", files.certificates, files.key)
    };
    (0..count).map(write).collect()
}

fn certificates(written: &[String]) -> String {
    let tls = BASE.replace("[service", "tls = {}\n[service");
    format!("{tls}[[route]]\nservice = 'app'\n{}", written.concat())
}

const IDLE: usize = 10_000;

/// Memory of idle connections that have had one answer each.
fn idle(mode: Mode, limit_kib: f64) -> u32 {
    let most = raise_open_files().unwrap().unwrap_or(u64::MAX);
    if most < IDLE as u64 + 500 {
        println!("skipped: {} idle connections need more than {most} open files", IDLE);
        return 0;
    }
    let certificates = Certificates::new();
    let origin = origin(mode.upstream_tls, &certificates);
    let weir = serve(mode, &certificates, origin.address(), &["--idle-timeout", "600"]);
    let tls = certificates.client().core();
    let name = "127.0.0.1".parse().unwrap();
    let connect = |index: usize| {
        // A source address has fewer ports than there are clients.
        let tcp = connect_from([127, 0, 0, 2 + (index % 4) as u8], weir.address());
        let session = mode.client_tls.then(|| tls.connect_full(&name));
        let mut client = Client { stream: Stream::over(tcp.into(), session).unwrap() };
        assert_eq!(client.ask("GET /bytes/1000 HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
        client
    };
    let first = connect(0);
    let before = weir.memory_kib("RssAnon");
    let others: Vec<_> = (1..=IDLE).map(connect).collect();
    let each = (weir.memory_kib("RssAnon") - before) as f64 / IDLE as f64;
    drop((first, others));
    within(&format!("each of {IDLE} idle connections, {}", mode.name), each, limit_kib, "KiB")
}

fn connect_from(source: [u8; 4], to: SocketAddr) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((source, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket
}

/// System calls of a request at saturation: 64 connections, each with its next request once it has an answer.
fn calls() -> u32 {
    let certificates = Certificates::new();
    let origin = origin(false, &certificates);
    let weir = serve(MODES[0], &certificates, origin.address(), &["--cores", "0"]);
    let Some(count) = Counting::begin(weir.pid()) else {
        println!("skipped: neither perf nor strace counts system calls here");
        return 0;
    };
    let url = format!("{}/bytes/1000", weir.urls[0]);
    let load = Weir::run(&["load", &url, "-c", "64", "-d", "2s", "--warmup", "0s", "--json", "-"]);
    assert_eq!(load.code, Some(0), "{}", load.stderr);
    let load: serde_json::Value = serde_json::from_str(&load.stdout).unwrap();
    let requests = load["answered_in_all"].as_u64().unwrap();
    let calls = count.end();
    println!("{calls} system calls, {requests} requests");
    within("system calls of a request, h1c-h1c", calls as f64 / requests as f64, 4.5, "calls")
}

/// A count of the system calls of a process.
struct Counting {
    child: Child,
    output: tempfile::NamedTempFile,
    is_perf: bool,
}

impl Counting {
    /// By perf, which slows nothing down; by strace where perf may not count.
    fn begin(pid: u32) -> Option<Self> {
        let perf = ["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter"];
        let can = Command::new(perf[0]).args(&perf[1..]).arg("true").output();
        let is_perf = can.is_ok_and(|output| output.status.success());
        let output = tempfile::NamedTempFile::new().unwrap();
        let words = if is_perf { &perf[..] } else { &["strace", "-c", "-f"] };
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("-p").arg(pid.to_string()).arg("-o").arg(output.path());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        // It says nowhere when it begins. What comes before it is missing, and so the ratio a little too small.
        std::thread::sleep(Duration::from_millis(500));
        Some(Self { child, output, is_perf })
    }

    fn end(mut self) -> u64 {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.child.wait().unwrap();
        let text = fs::read_to_string(self.output.path()).unwrap();
        let number = match self.is_perf {
            true => text.lines().find_map(|line| line.split_once(",,raw_syscalls")?.0.parse().ok()),
            // % time, seconds, usecs/call, calls
            false => text
                .lines()
                .find(|line| line.ends_with(" total"))
                .and_then(|line| line.split_whitespace().nth(3)?.parse().ok()),
        };
        number.unwrap_or_else(|| panic!("no number of calls: {text}"))
    }
}
