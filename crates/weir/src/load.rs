//! `weir load URL`: the load engine.

use crate::words::{blame, say};
use crate::{Failure, Outcome};
use clap::Args;
use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_load::result::Role;
use weir_load::{
    Expect, LoadError, Meter, Options, PerConnection, Phase, Progress, Schedule, Server, Target, TlsOptions,
    field, size, table, time,
};
use weir_reactor::{cores::Cores, limits};
use weir_tls::{Group, Suite, Version};

/// The load engine: sends requests, checks every answer, and accounts the cost of both sides.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// What to ask for, http:// or https://
    url: Target,
    /// Connections held open
    #[arg(short, long, value_name = "N", default_value_t = 64)]
    connections: u32,
    /// Length of the measured window, such as 500ms, 5s or 2m
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = time)]
    duration: Duration,
    /// What runs before the window and is not measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    warmup: Duration,
    /// Threads
    #[arg(short = 't', long, value_name = "N", default_value_t = 1)]
    workers: usize,
    /// Cores that the workers are put on, such as 0,2-3
    #[arg(long, value_name = "LIST")]
    cores: Option<Cores>,
    /// Open loop: this many requests per second at constant intervals, latency from the planned instant
    #[arg(long, value_name = "R")]
    rate: Option<f64>,
    /// Method [default: GET, with --data POST]
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<String>,
    /// Header field, `Name: value`; may be repeated
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = field)]
    fields: Vec<(String, String)>,
    /// Request body: a file, a size such as 64KiB, or - for standard input
    #[arg(long, value_name = "FILE|SIZE|-")]
    data: Option<String>,
    /// A new connection for each request
    #[arg(long, conflicts_with = "requests_per_connection")]
    new_connection: bool,
    /// A new connection after this many requests
    #[arg(long, value_name = "N")]
    requests_per_connection: Option<u64>,
    /// Share of new TLS connections that offer to resume a session, in percent: 0 or 100
    #[arg(long, value_name = "PCT", default_value = "0", value_parser = ["0", "100"])]
    resume: String,
    /// The only TLS version offered: 1.2 or 1.3
    #[arg(long, value_name = "VERSION")]
    tls: Option<Version>,
    /// The only cipher suite offered
    #[arg(long, value_name = "SUITE")]
    suite: Option<Suite>,
    /// The only group offered
    #[arg(long, value_name = "GROUP")]
    group: Option<Group>,
    /// Authorities to believe, PEM [default: the system's]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// Believe any certificate
    #[arg(short = 'k', long)]
    insecure: bool,
    /// Certificate chain to present, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// A process whose CPU is accounted with that of its descendants; may be repeated
    #[arg(long = "pid", value_name = "PID")]
    pids: Vec<u32>,
    /// The only status that is right [default: 200 to 299]
    #[arg(long, value_name = "STATUS")]
    expect_status: Option<u16>,
    /// The only length of a body that is right, in bytes [default: N for a path /bytes/N, else as framed]
    #[arg(long, value_name = "BYTES")]
    expect_length: Option<u64>,
    /// How long a request, or the making of a connection, may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    timeout: Duration,
    /// Write the result as JSON to a file; with - to standard output, and nothing else there
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  weir load http://127.0.0.1:8080/bytes/1000
  weir load https://127.0.0.1:8443/ -c 256 -d 30s --cacert ca.pem --tls 1.3 --pid $(pidof -s nginx)
  weir load http://127.0.0.1:8080/ --rate 5000       open loop, latency from the planned instant
  weir load https://127.0.0.1:8443/ --new-connection --group x25519 -k     full handshakes
  weir load http://127.0.0.1:8080/echo --data 64KiB -H 'X-Run: 1' --json result.json";

pub(crate) fn run(args: LoadArgs) -> Outcome {
    limits::raise_open_files().map_err(Failure::run)?;
    let json = args.json.clone();
    let options = options(args)?;
    options.check().map_err(Failure::usage)?;
    let mut line = ProgressLine::new();
    let result = weir_load::run(&options, |progress| line.show(progress)).map_err(|error: LoadError| {
        if !error.is_usage() {
            return Failure::run(error);
        }
        let (cert, key) = options.tls.identity.as_ref().map(|(cert, key)| (&**cert, &**key)).unzip();
        let files = [("--cacert", options.tls.ca.as_deref()), ("--cert", cert), ("--key", key)];
        Failure::usage(blame(error, &files))
    });
    line.clear();
    let result = result?;
    let text = serde_json::to_string_pretty(&result).map_err(Failure::run)?;
    match json.as_deref() {
        Some(file) if file == Path::new("-") => say(text + "\n"),
        Some(file) => {
            let failed = |error| Failure::run(format!("--json: cannot write {}: {error}", file.display()));
            fs::write(file, text + "\n").map_err(failed)?;
            say(table(&result))
        }
        None => say(table(&result)),
    }
}

fn options(args: LoadArgs) -> Result<Options, Failure> {
    let body = args.data.as_deref().map(body).transpose()?;
    let mut options = Options::new(args.url);
    options.connections = args.connections;
    options.phases.window = args.duration;
    options.phases.warmup = args.warmup;
    options.workers = args.workers;
    options.cores = args.cores;
    if let Some(rate) = args.rate {
        options.schedule = Schedule::constant(rate, args.duration);
    }
    let per_connection = if args.new_connection { Some(1) } else { args.requests_per_connection };
    if let Some(number) = per_connection {
        options.policy.per_connection = PerConnection::Requests { least: number, most: number };
    }
    options.policy.resume = if args.resume == "100" { 100.0 } else { 0.0 };
    options.tls = TlsOptions {
        versions: args.tls.into_iter().collect(),
        suites: args.suite.into_iter().collect(),
        groups: args.group.into_iter().collect(),
        ca: args.cacert,
        insecure: args.insecure,
        identity: args.cert.zip(args.key),
        ..TlsOptions::default()
    };
    let process = |pid| Server { role: Role::Gateway, meter: Meter::Process(pid) };
    options.servers = args.pids.into_iter().map(process).collect();
    options.timeout = args.timeout;
    let request = &mut options.requests[0];
    request.method = args.method;
    request.fields = args.fields;
    request.body = body;
    request.expect = Expect { status: args.expect_status, length: args.expect_length, ..Expect::default() };
    Ok(options)
}

/// The largest body: it is held in memory.
const MAX_BODY: u64 = 1 << 30;

fn body(data: &str) -> Result<Vec<u8>, Failure> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        let allowed = "allowed: a file that can be read, a size such as 1000 or 64KiB, or -";
        Failure::usage(format!("--data: {what}: {error}; {allowed}"))
    };
    if data == "-" {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map_err(|error| failed("standard input", &error))?;
        return Ok(bytes);
    }
    match size(data) {
        Some(bytes) if bytes <= MAX_BODY => Ok(vec![b'x'; bytes as usize]),
        Some(_) => Err(failed(&format!("`{data}`"), &"more than 1 GiB")),
        None => fs::read(data).map_err(|error| failed(&format!("`{data}`"), &error)),
    }
}

/// A line on standard error that is written over, if that is a terminal.
struct ProgressLine {
    shown: bool,
    terminal: bool,
}

impl ProgressLine {
    fn new() -> Self {
        Self { shown: false, terminal: io::stderr().is_terminal() }
    }

    fn show(&mut self, progress: &Progress) {
        if !self.terminal {
            return;
        }
        let left = progress.left.as_secs_f64().ceil();
        let what = match progress.phase {
            Phase::Opening => "opening connections".to_string(),
            Phase::WarmUp => format!("warm-up, {left} s left"),
            Phase::Window => format!("measuring, {left} s left"),
            Phase::Drain => "waiting for the last answers".to_string(),
        };
        // Whether the line can be written is of no matter to the measurement.
        let _ = write!(io::stderr(), "\r\x1b[K{what}, {} answers", progress.answered);
        self.shown = true;
    }

    fn clear(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
