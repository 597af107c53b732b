//! The command line of a run: the same words on `weir load` and in an experiment's `[load]` table.

use crate::digest::sha256;
use crate::options::{
    ArrivalKind, CHUNKS_ALLOWED, Close, DEFAULT_CHUNK, Options, PerConnection, Phases, RateStep,
    RequestOptions, Resolve, Route, Schedule, Server, Sni, TlsOptions,
};
use crate::request::requests_of;
use crate::request::{field, requests_from_file};
use crate::route::destination::host_port;
use crate::route::source::Sources;
use crate::target::Target;
use crate::usage::{Usage, percent, size, time, whole};
use crate::{ceiling, meter};
use clap::{Args, Command, FromArgMatches as _, ValueEnum};
use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;
use weir_reactor::cores::Cores;
use weir_tls::{Group, Signature, Suite, Version};
use weir_transport::Endpoint;

/// What a run is asked for, as words.
#[derive(Args, Clone, Debug)]
pub struct LoadArgs {
    /// What to ask for, http:// or https://; several of one server are sent in turn
    #[arg(value_name = "URL", required = true)]
    urls: Vec<Target>,
    /// How often each URL comes compared with the others, such as 3,1
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = whole::<u32>(A_MILLION), help_heading = REQUESTS)]
    weights: Vec<u32>,
    /// A file of requests, one JSON object a line: method, path, headers, body, chunked, weight, expect
    #[arg(long, value_name = "FILE", help_heading = REQUESTS, conflicts_with_all = ["weights", "method", "data", "chunked"])]
    requests: Option<PathBuf>,
    /// Method [default: GET, with --data POST]
    #[arg(short = 'X', long, value_name = "METHOD", help_heading = REQUESTS)]
    method: Option<String>,
    /// Header field, `Name: value`; may be repeated
    #[arg(short = 'H', long = "header", value_name = "FIELD", value_parser = field, help_heading = REQUESTS)]
    fields: Vec<(String, String)>,
    /// Request body: a file, a size such as 64KiB, or - for standard input
    #[arg(long, value_name = "FILE|SIZE|-", help_heading = REQUESTS)]
    data: Option<String>,
    /// Send the body in chunks, of SIZE bytes each [default: 16KiB], as if its length were not known
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, help_heading = REQUESTS)]
    chunked: Option<Option<String>>,
    /// The only status that is right [default: 200 to 299]
    #[arg(long, value_name = "STATUS", value_parser = whole::<u16>("a whole number, 200 to 999"), help_heading = REQUESTS)]
    expect_status: Option<u16>,
    /// The only SHA-256 of a body that is right, 64 hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = sha256, help_heading = REQUESTS)]
    expect_sha256: Option<[u8; 32]>,
    /// The only length of a body that is right, in bytes [default: N for a path /bytes/N, else as framed]
    #[arg(long, value_name = "BYTES", value_parser = whole::<u64>("a whole number of bytes"), help_heading = REQUESTS)]
    expect_length: Option<u64>,
    /// How long a request, or the making of a connection, may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time, help_heading = REQUESTS)]
    timeout: Duration,
    /// Share of the requests that may go without an answer before the run is invalid; a wrong answer never may
    #[arg(long, value_name = "PCT", default_value_t = 0.0, value_parser = percent, help_heading = REQUESTS)]
    error_budget: f64,

    /// Length of the measured window, such as 500ms, 5s or 2m [default: 10s, or the steps of --rate]
    #[arg(short, long, value_name = "TIME", value_parser = time, help_heading = SCHEDULE)]
    duration: Option<Duration>,
    /// What runs before the window and is not measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time, help_heading = SCHEDULE)]
    warmup: Duration,
    /// Between warm-up and window, at the window's rate: what the warm-up left waiting is worked off
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time, help_heading = SCHEDULE)]
    settle: Duration,
    /// Open loop: this many requests per second, planned before anything is sent; in steps as 1000:10s,2000:10s
    #[arg(long, value_name = "R|R:TIME,..", value_parser = rate, help_heading = SCHEDULE)]
    rate: Option<Rate>,
    /// How the gaps between the arrivals of an open loop are distributed
    #[arg(long, value_name = "KIND", default_value = "constant", requires = "rate", help_heading = SCHEDULE)]
    arrivals: ArrivalWord,
    /// Closed loop: the pause between an answer and the connection's next request
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "rate", help_heading = SCHEDULE)]
    think: Option<Duration>,
    /// What all random choices are drawn from
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>("a whole number from 0"), help_heading = SCHEDULE)]
    seed: u64,

    /// Connections held open; with new connections, at once at most
    #[arg(short, long, value_name = "N", default_value_t = 64, value_parser = whole::<u32>(A_MILLION), help_heading = CONNECTIONS)]
    connections: u32,
    /// Threads
    #[arg(short = 't', long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>("a whole number, 1 to 1024"), help_heading = CONNECTIONS)]
    workers: usize,
    /// Cores that the workers are put on, such as 0,2-3
    #[arg(long, value_name = "LIST", help_heading = CONNECTIONS)]
    cores: Option<Cores>,
    /// A new connection for each request
    #[arg(long, group = "life", help_heading = CONNECTIONS)]
    new_connection: bool,
    /// A new connection after this many requests, or a number drawn from a range such as 5-10
    #[arg(long, value_name = "N|MIN-MAX", group = "life", value_parser = range, help_heading = CONNECTIONS)]
    requests_per_connection: Option<(u64, u64)>,
    /// No requests: connect, shake hands, close
    #[arg(long, group = "life", help_heading = CONNECTIONS)]
    handshake_only: bool,
    /// Share of new TLS connections that resume a session, in percent; the others make full handshakes
    #[arg(long, value_name = "PCT", default_value_t = 0.0, requires = "life", value_parser = percent, help_heading = CONNECTIONS)]
    resume: f64,
    /// Local addresses used in turn, such as 127.0.0.1-127.0.0.16
    #[arg(long, value_name = "LIST", help_heading = CONNECTIONS)]
    source: Option<Sources>,
    /// The address of a host and port, instead of the resolver's; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDRESS", help_heading = CONNECTIONS)]
    resolve: Vec<Resolve>,
    /// Connect to another host and port than the URL's
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port, help_heading = CONNECTIONS)]
    connect_to: Option<(String, u16)>,
    /// Connect to a socket in the file system
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "resolve", "connect_to"], help_heading = CONNECTIONS)]
    unix_socket: Option<PathBuf>,
    /// What TLS 1.2 sessions are resumed by: tickets where the server gives them, or ids alone
    #[arg(long, value_name = "HOW", default_value = "ticket", help_heading = CONNECTIONS)]
    resume_by: ResumeWord,
    /// How connections are ended: close_notify and FIN, FIN alone, or RST
    #[arg(long, value_name = "HOW", default_value = "graceful", help_heading = CONNECTIONS)]
    close: CloseWord,

    /// TLS versions offered: 1.2, 1.3 or 1.2-1.3 [default: both]
    #[arg(long, value_name = "VERSION", value_parser = versions, help_heading = TLS)]
    tls: Option<Versions>,
    /// Cipher suites offered, most preferred first, such as aes128-gcm-sha256 [default: all]
    #[arg(long = "suite", value_name = "LIST", value_delimiter = ',', help_heading = TLS)]
    suites: Vec<Suite>,
    /// Groups offered, most preferred first, such as x25519,p256 [default: x25519, p256, p384]
    #[arg(long = "group", value_name = "LIST", value_delimiter = ',', help_heading = TLS)]
    groups: Vec<Group>,
    /// Signature schemes offered, most preferred first, such as rsa-pss-sha256 [default: all]
    #[arg(long = "signature", value_name = "LIST", value_delimiter = ',', help_heading = TLS)]
    signatures: Vec<Signature>,
    /// Application protocols offered: http/1.1, the only one that is spoken [default: none]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = TLS)]
    alpn: Vec<String>,
    /// The server's name, instead of the URL's host; none sends none
    #[arg(long, value_name = "NAME|none", help_heading = TLS)]
    sni: Option<String>,
    /// A HelloRetryRequest does not make the run invalid
    #[arg(long, help_heading = TLS)]
    allow_hello_retry: bool,
    /// Authorities to believe, PEM [default: the system's]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure", help_heading = TLS)]
    cacert: Option<PathBuf>,
    /// Believe any certificate
    #[arg(short = 'k', long, help_heading = TLS)]
    insecure: bool,
    /// Certificate chain to present, PEM
    #[arg(long, value_name = "FILE", requires = "key", help_heading = TLS)]
    cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = TLS)]
    key: Option<PathBuf>,
    /// Where the secrets of all connections are written, for Wireshark
    #[arg(long, value_name = "FILE", env = "SSLKEYLOGFILE", hide_env_values = true, help_heading = TLS)]
    key_log: Option<PathBuf>,

    /// A process whose CPU is accounted with that of its descendants; may be repeated
    #[arg(long, value_name = "[ROLE=]PID", value_parser = meter::process, help_heading = ACCOUNTS)]
    pid: Vec<Server>,
    /// A cgroup whose CPU is accounted: its directory; may be repeated
    #[arg(long, value_name = "[ROLE=]DIR", value_parser = meter::cgroup, help_heading = ACCOUNTS)]
    cgroup: Vec<Server>,
    /// A shell command that prints CPU seconds so far or a cgroup's cpu.stat, for another machine over ssh; may be repeated
    #[arg(long, value_name = "[ROLE=]COMMAND", value_parser = meter::command, help_heading = ACCOUNTS)]
    cpu_command: Vec<Server>,
    /// The ceilings of `weir calibrate` [default: those of this machine, where there are any]
    #[arg(long, value_name = "FILE", help_heading = ACCOUNTS)]
    ceilings: Option<PathBuf>,
}

const REQUESTS: &str = "Requests";
const SCHEDULE: &str = "Schedule";
const CONNECTIONS: &str = "Connections";
const TLS: &str = "TLS";
const ACCOUNTS: &str = "Accounts";

const A_MILLION: &str = "a whole number, 1 to 1000000";

/// One rate for the whole window, or steps.
#[derive(Clone, Debug, PartialEq)]
enum Rate {
    Constant(f64),
    Steps(Vec<RateStep>),
}

/// What a range of versions stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Versions(Vec<Version>);

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ArrivalWord {
    Constant,
    Poisson,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ResumeWord {
    Ticket,
    Id,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CloseWord {
    Graceful,
    Fin,
    Rst,
}

impl LoadArgs {
    /// Reads words as `weir load` does: what an experiment's `[load]` table says is checked by this.
    ///
    /// # Errors
    /// The words of the first flag that is unknown or cannot be read.
    pub fn from_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let words = std::iter::once("weir load").chain(words);
        let matches = Self::augment_args(Command::new("weir load")).try_get_matches_from(words);
        let read = matches.and_then(|matches| Self::from_arg_matches(&matches));
        read.map_err(|error| error.render().to_string())
    }

    /// Reads the files that the words name, and forms the options.
    ///
    /// # Errors
    /// The first flag that cannot be followed.
    pub fn options(self) -> Result<Options, Usage> {
        let (rate, given) = (self.rate.clone(), self.duration);
        let window = match (&rate, given) {
            (Some(Rate::Steps(steps)), None) => {
                let sum = steps.iter().try_fold(Duration::ZERO, |sum, step| sum.checked_add(step.time));
                sum.ok_or_else(|| Usage::new("--rate", "its steps", "1ms to 24h in all"))?
            }
            (Some(Rate::Steps(_)), Some(time)) => {
                let text = format!("{}s", time.as_secs_f64());
                return Err(Usage::new(
                    "-d",
                    &text,
                    "no -d beside a --rate in steps, whose times add up to it",
                ));
            }
            (_, time) => time.unwrap_or(DEFAULT_WINDOW),
        };
        let Some(first) = self.urls.first().cloned() else {
            return Err(Usage::new("URL", "", "at least one"));
        };
        let mut options = Options::new(first);
        (options.endpoint, options.requests) = self.requests()?;
        options.connections = self.connections;
        options.phases = Phases { warmup: self.warmup, settle: self.settle, window };
        options.route = Route {
            resolve: self.resolve,
            connect_to: self.connect_to,
            unix: self.unix_socket,
            sources: self.source.map_or(Vec::new(), |sources| sources.0),
        };
        options.workers = self.workers;
        options.cores = self.cores;
        let kind = match self.arrivals {
            ArrivalWord::Constant => ArrivalKind::Constant,
            ArrivalWord::Poisson => ArrivalKind::Poisson,
        };
        options.schedule = match rate {
            None => Schedule::Closed { think: self.think.unwrap_or_default() },
            Some(Rate::Constant(rate)) => {
                Schedule::Open { arrivals: kind, steps: vec![RateStep { rate, time: window }] }
            }
            Some(Rate::Steps(steps)) => Schedule::Open { arrivals: kind, steps },
        };
        options.policy.per_connection = match (self.new_connection, self.requests_per_connection) {
            (true, _) => PerConnection::Requests { least: 1, most: 1 },
            (_, Some((least, most))) => PerConnection::Requests { least, most },
            _ if self.handshake_only => PerConnection::Handshake,
            _ => PerConnection::Unlimited,
        };
        options.policy.resume = self.resume;
        options.policy.close = match self.close {
            CloseWord::Graceful => Close::Graceful,
            CloseWord::Fin => Close::Fin,
            CloseWord::Rst => Close::Reset,
        };
        options.tls = TlsOptions {
            versions: self.tls.map_or(Vec::new(), |versions| versions.0),
            suites: self.suites,
            groups: self.groups,
            signatures: self.signatures,
            alpn: self.alpn,
            sni: match self.sni.as_deref() {
                None => Sni::Host,
                Some("none") => Sni::None,
                Some(name) => Sni::Name(name.to_owned()),
            },
            ids_only: matches!(self.resume_by, ResumeWord::Id),
            allow_hello_retry: self.allow_hello_retry,
            ca: self.cacert,
            insecure: self.insecure,
            identity: self.cert.zip(self.key),
            key_log: self.key_log,
        };
        options.servers = [self.pid, self.cgroup, self.cpu_command].concat();
        options.ceilings = self.ceilings.or_else(|| ceiling::default_file().filter(|file| file.exists()));
        options.timeout = self.timeout;
        options.seed = self.seed;
        options.error_budget = self.error_budget;
        options.check()?;
        Ok(options)
    }

    /// The files that are named, each with its flag, for an error that names one.
    pub fn files(&self) -> Vec<(&'static str, PathBuf)> {
        let files = [
            ("--cacert", &self.cacert),
            ("--cert", &self.cert),
            ("--key", &self.key),
            ("--key-log", &self.key_log),
            ("--requests", &self.requests),
            ("--ceilings", &self.ceilings),
        ];
        files.into_iter().filter_map(|(flag, file)| Some((flag, file.clone()?))).collect()
    }

    /// Every URL in turn, or what the file says; the other words hold for each of them.
    fn requests(&self) -> Result<(Endpoint, Vec<RequestOptions>), Usage> {
        let (endpoint, mut requests) = requests_of(&self.urls, &self.weights)?;
        if let Some(file) = &self.requests {
            if let Some(url) = self.urls.iter().find(|url| url.path != "/") {
                let allowed = "a URL without a path beside --requests, which has the paths";
                return Err(Usage::new("URL", &url.to_string(), allowed));
            }
            requests = requests_from_file(file)?;
        }
        let body = self.data.as_deref().map(body).transpose()?;
        let chunk = self.chunked.as_ref().map(|size| chunk(size.as_deref())).transpose()?;
        for request in &mut requests {
            request.method = request.method.take().or_else(|| self.method.clone());
            request.fields.extend(self.fields.iter().cloned());
            request.body = request.body.take().or_else(|| body.clone());
            request.chunk = request.chunk.or(chunk);
            let expect = &mut request.expect;
            expect.status = expect.status.or(self.expect_status);
            expect.length = expect.length.or(self.expect_length);
            expect.sha256 = expect.sha256.or(self.expect_sha256);
        }
        Ok((endpoint, requests))
    }
}

const DEFAULT_WINDOW: Duration = Duration::from_secs(10);

/// The largest body: it is held in memory.
const MAX_BODY: u64 = 1 << 30;

fn body(data: &str) -> Result<Vec<u8>, Usage> {
    let allowed = "a file that can be read, a size such as 1000 or 64KiB (up to 1 GiB), or -";
    let failed = |error: io::Error| Usage::new("--data", &format!("{data}: {error}"), allowed);
    if data == "-" {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map_err(failed)?;
        return Ok(bytes);
    }
    match size(data) {
        Some(bytes) if bytes <= MAX_BODY => Ok(vec![b'x'; bytes as usize]),
        Some(_) => Err(Usage::new("--data", data, allowed)),
        None => fs::read(data).map_err(failed),
    }
}

fn chunk(text: Option<&str>) -> Result<u64, Usage> {
    text.map_or(Some(DEFAULT_CHUNK), size)
        .ok_or_else(|| Usage::new("--chunked", text.unwrap_or_default(), CHUNKS_ALLOWED))
}

fn rate(text: &str) -> Result<Rate, String> {
    let wrong = || "write requests per second, such as 5000, or steps such as 1000:10s,2000:10s".to_string();
    if !text.contains(':') {
        return text.parse().map(Rate::Constant).map_err(|_| wrong());
    }
    let step = |text: &str| {
        let (rate, length) = text.split_once(':').ok_or_else(wrong)?;
        Ok(RateStep { rate: rate.parse().map_err(|_| wrong())?, time: time(length)? })
    };
    text.split(',').map(step).collect::<Result<_, String>>().map(Rate::Steps)
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let number = |text: &str| {
        text.parse::<u64>().map_err(|_| "write a number from 1, or a range such as 5-10".to_string())
    };
    match text.split_once('-') {
        None => number(text).map(|number| (number, number)),
        Some((least, most)) => Ok((number(least)?, number(most)?)),
    }
}

fn versions(text: &str) -> Result<Versions, String> {
    let version = |text: &str| text.parse::<Version>().map_err(|error| error.to_string());
    let (least, most) = match text.split_once('-') {
        None => (version(text)?, version(text)?),
        Some((least, most)) => (version(least)?, version(most)?),
    };
    let within = Version::ALL.into_iter().filter(|version| (least..=most).contains(version));
    Some(within.collect::<Vec<_>>())
        .filter(|versions| !versions.is_empty())
        .map(Versions)
        .ok_or_else(|| "the range has no version: write the lower one first, such as 1.2-1.3".to_string())
}

#[cfg(test)]
mod tests;
