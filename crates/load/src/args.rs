//! The command line of a run: `weir load` and an experiment's `[load]` table use the same flags.

use crate::check::sha256;
use crate::options::{
    ArrivalKind, CHUNKS_EXPECTED, CONNECTIONS, Close, DEFAULT_CHUNK, Grpc, HttpVersions, Options,
    PerConnection, Phases, Policy, RateStep, RequestOptions, Route, SCHEDULE, Schedule, Server, TlsOptions,
    http,
};
use crate::request::file::requests_from_file;
use crate::request::{field, requests_of};
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
use weir_transport::Endpoint;

/// The arguments of a run.
#[derive(Args, Clone, Debug)]
pub struct LoadArgs {
    /// URL to request, http:// or https://; several URLs of one server are requested in turn
    #[arg(value_name = "URL", required = true)]
    urls: Vec<Target>,
    /// Relative frequency of each URL, such as 3,1
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = whole::<u32>(A_MILLION), help_heading = REQUESTS)]
    weights: Vec<u32>,
    /// File of requests, one JSON object per line: method, path, headers, body, chunked, weight, expect
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
    /// Send the body chunked, with chunks of SIZE bytes; needs --http 1.1 [default: 16KiB]
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, help_heading = REQUESTS)]
    chunked: Option<Option<String>>,
    /// Make each request a gRPC call, with --data as its message; the URL's path is /SERVICE/METHOD; needs --http 2
    #[arg(long, help_heading = REQUESTS, conflicts_with_all = ["method", "chunked", "expect_status", "expect_sha256", "expect_length"])]
    grpc: bool,
    /// Messages to send in each gRPC call [default: 1]
    #[arg(long, value_name = "N", requires = "grpc", value_parser = whole::<u32>("a whole number, 0 to 1000000"), help_heading = REQUESTS)]
    messages: Option<u32>,
    /// Expected messages in each gRPC response [default: 1]
    #[arg(long, value_name = "N", requires = "grpc", value_parser = whole::<u64>("a whole number from 0"), help_heading = REQUESTS)]
    expect_messages: Option<u64>,
    /// Expected status [default: 200 to 299]
    #[arg(long, value_name = "STATUS", value_parser = whole::<u16>("a whole number, 200 to 999"), help_heading = REQUESTS)]
    expect_status: Option<u16>,
    /// Expected SHA-256 of the body, 64 hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = sha256, help_heading = REQUESTS)]
    expect_sha256: Option<[u8; 32]>,
    /// Expected length of the body [default: N for a path /bytes/N, else as framed]
    #[arg(long, value_name = "BYTES", value_parser = whole::<u64>("a whole number of bytes"), help_heading = REQUESTS)]
    expect_length: Option<u64>,
    /// Timeout for a request, and for opening a connection
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time, help_heading = REQUESTS)]
    timeout: Duration,
    /// Percentage of requests that may fail without a response before the run is invalid; a wrong response always invalidates it
    #[arg(long, value_name = "PCT", default_value_t = 0.0, value_parser = percent, help_heading = REQUESTS)]
    error_budget: f64,

    /// Length of the measured window, such as 500ms, 5s or 2m [default: 10s, or the steps of --rate]
    #[arg(short, long, value_name = "TIME", value_parser = time, help_heading = SCHEDULE)]
    duration: Option<Duration>,
    #[command(flatten)]
    phases: Phases,
    /// Open loop at this many requests per second, on a fixed schedule; steps: 1000:10s,2000:10s
    #[arg(long, value_name = "R|R:TIME,..", value_parser = rate, help_heading = SCHEDULE)]
    rate: Option<Rate>,
    /// Distribution of inter-arrival times in an open loop
    #[arg(long, value_name = "KIND", default_value = "constant", requires = "rate", help_heading = SCHEDULE)]
    arrivals: ArrivalKind,
    /// Think time between a response and the connection's next request (closed loop)
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "rate", help_heading = SCHEDULE)]
    think: Option<Duration>,
    /// Print `open` on standard error once all connections are open, then start the warm-up at the time read from standard
    /// input (seconds since boot): engines with the same start measure the same window
    #[arg(long, help_heading = SCHEDULE)]
    rendezvous: bool,
    /// Seed for all random choices
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>("a whole number from 0"), help_heading = SCHEDULE)]
    seed: u64,

    /// Concurrent connections
    #[arg(short, long, value_name = "N", default_value_t = 64, value_parser = whole::<u32>(A_MILLION), help_heading = CONNECTIONS)]
    connections: u32,
    /// Version of HTTP, or both by the weight of their connections, such as 1.1=3,2=1 for three of four with HTTP/1.1;
    /// 2 is agreed by ALPN over TLS, and by prior knowledge in cleartext
    #[arg(long, value_name = "1.1|2|1.1=W,2=W", default_value = "1.1", help_heading = CONNECTIONS)]
    http: HttpVersions,
    /// Streams per connection with HTTP/2, each with one request at a time; needs --http 2 [default: 1]
    #[arg(short = 'm', long, value_name = "N", value_parser = whole::<u32>("a whole number, 1 to 10000"), help_heading = CONNECTIONS)]
    streams: Option<u32>,
    /// Receive window of a stream; needs --http 2 [default: 64KiB]
    #[arg(long, value_name = "SIZE", help_heading = CONNECTIONS)]
    stream_window: Option<String>,
    /// Worker threads; each speaks one version of HTTP [default: one per version]
    #[arg(short = 't', long, value_name = "N", value_parser = whole::<usize>("a whole number, 1 to 1024"), help_heading = CONNECTIONS)]
    workers: Option<usize>,
    /// Pin the workers to these cores, such as 0,2-3
    #[arg(long, value_name = "LIST", help_heading = CONNECTIONS)]
    cores: Option<Cores>,
    /// Open a new connection for each request; needs --http 1.1
    #[arg(long, group = "life", help_heading = CONNECTIONS)]
    new_connection: bool,
    /// Open a new connection after this many requests, or a random number from a range such as 5-10; needs
    /// --http 1.1
    #[arg(long, value_name = "N|MIN-MAX", group = "life", value_parser = range, help_heading = CONNECTIONS)]
    requests_per_connection: Option<(u64, u64)>,
    /// Send no requests: connect, handshake, close; needs --http 1.1
    #[arg(long, group = "life", help_heading = CONNECTIONS)]
    handshake_only: bool,
    /// Percentage of new TLS connections that resume a session; the rest do full handshakes; needs --http 1.1
    #[arg(long, value_name = "PCT", default_value_t = 0.0, requires = "life", value_parser = percent, help_heading = CONNECTIONS)]
    resume: f64,
    /// Local addresses to use in turn, such as 127.0.0.1-127.0.0.16
    #[arg(long, value_name = "LIST", help_heading = CONNECTIONS)]
    source: Option<Sources>,
    #[command(flatten)]
    route: Route,
    /// Resume TLS 1.2 sessions by ticket if the server issues them, or by ID only
    #[arg(long, value_name = "HOW", default_value = "ticket", help_heading = CONNECTIONS)]
    resume_by: ResumeWord,
    /// How to close connections: close_notify and FIN, FIN only, or RST
    #[arg(long, value_name = "HOW", default_value = "graceful", help_heading = CONNECTIONS)]
    close: Close,

    #[command(flatten)]
    tls: TlsOptions,

    /// Account the CPU of this process and its descendants; may be repeated
    #[arg(long, value_name = "[ROLE=]PID", value_parser = meter::process, help_heading = ACCOUNTS)]
    pid: Vec<Server>,
    /// Account the CPU of the cgroup in this directory; may be repeated
    #[arg(long, value_name = "[ROLE=]DIR", value_parser = meter::cgroup, help_heading = ACCOUNTS)]
    cgroup: Vec<Server>,
    /// Account CPU by a shell command that prints CPU seconds or a cgroup's cpu.stat, such as over ssh; may be repeated
    #[arg(long, value_name = "[ROLE=]COMMAND", value_parser = meter::command, help_heading = ACCOUNTS)]
    cpu_command: Vec<Server>,
    /// Ceilings from `weir calibrate` [default: this machine's, if any]
    #[arg(long, value_name = "FILE", help_heading = ACCOUNTS)]
    ceilings: Option<PathBuf>,
}

const REQUESTS: &str = "Requests";
const ACCOUNTS: &str = "Accounts";

const A_MILLION: &str = "a whole number, 1 to 1000000";

/// A constant rate, or steps.
#[derive(Clone, Debug, PartialEq)]
enum Rate {
    Constant(f64),
    Steps(Vec<RateStep>),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ResumeWord {
    Ticket,
    Id,
}

impl LoadArgs {
    /// Parses arguments as `weir load` does; also checks an experiment's `[load]` table.
    ///
    /// # Errors
    /// The message for the first unknown or invalid flag.
    pub fn from_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let words = std::iter::once("weir load").chain(words);
        let matches = Self::augment_args(Command::new("weir load")).try_get_matches_from(words);
        let read = matches.and_then(|matches| Self::from_arg_matches(&matches));
        read.map_err(|error| error.render().to_string())
    }

    /// Reads the files that the arguments name, and builds the options.
    ///
    /// # Errors
    /// The first invalid flag.
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
                    "no -d with a --rate in steps, whose times add up to the window",
                ));
            }
            (_, time) => time.unwrap_or(DEFAULT_WINDOW),
        };
        if self.rendezvous && self.data.as_deref() == Some("-") {
            return Err(Usage::new("--data", "-", "another source, as --rendezvous reads standard input"));
        }
        let Some(first) = self.urls.first().cloned() else {
            return Err(Usage::new("URL", "", "at least one"));
        };
        let mut options = Options::new(first);
        (options.endpoint, options.requests) = self.requests()?;
        let unary = Grpc::default();
        options.grpc = self.grpc.then_some(Grpc {
            messages: self.messages.unwrap_or(unary.messages),
            expect_messages: self.expect_messages.unwrap_or(unary.expect_messages),
        });
        options.connections = self.connections;
        options.http = self.http;
        options.streams = http::streams(self.http, self.streams)?;
        options.stream_window = http::stream_window(self.http, self.stream_window.as_deref())?;
        options.phases = Phases { window, ..self.phases };
        options.route = Route { sources: self.source.map_or(Vec::new(), |sources| sources.0), ..self.route };
        options.workers = self.workers.unwrap_or(self.http.count());
        options.cores = self.cores;
        let arrivals = self.arrivals;
        options.schedule = match rate {
            None => Schedule::Closed { think: self.think.unwrap_or_default() },
            Some(Rate::Constant(rate)) => {
                Schedule::Open { arrivals, steps: vec![RateStep { rate, time: window }] }
            }
            Some(Rate::Steps(steps)) => Schedule::Open { arrivals, steps },
        };
        let per_connection = match (self.new_connection, self.requests_per_connection) {
            (true, _) => PerConnection::Requests { least: 1, most: 1 },
            (_, Some((least, most))) => PerConnection::Requests { least, most },
            _ if self.handshake_only => PerConnection::Handshake,
            _ => PerConnection::Unlimited,
        };
        options.policy = Policy { per_connection, resume: self.resume, close: self.close };
        options.tls = TlsOptions { ids_only: matches!(self.resume_by, ResumeWord::Id), ..self.tls };
        options.servers = [self.pid, self.cgroup, self.cpu_command].concat();
        options.ceilings = self.ceilings.or_else(|| ceiling::default_file().filter(|file| file.exists()));
        options.timeout = self.timeout;
        options.rendezvous = self.rendezvous;
        options.seed = self.seed;
        options.error_budget = self.error_budget;
        options.check()?;
        Ok(options)
    }

    /// The files given, with their flags, for error messages.
    pub fn files(&self) -> Vec<(&'static str, PathBuf)> {
        let files = [
            ("--cacert", &self.tls.ca),
            ("--cert", &self.tls.cert),
            ("--key", &self.tls.key),
            ("--key-log", &self.tls.key_log),
            ("--requests", &self.requests),
            ("--ceilings", &self.ceilings),
        ];
        files.into_iter().filter_map(|(flag, file)| Some((flag, file.clone()?))).collect()
    }

    /// Every URL in turn, or the requests of the file; the other flags apply to all of them.
    fn requests(&self) -> Result<(Endpoint, Vec<RequestOptions>), Usage> {
        let (endpoint, mut requests) = requests_of(&self.urls, &self.weights)?;
        if let Some(file) = &self.requests {
            if let Some(url) = self.urls.iter().find(|url| url.path != "/") {
                let expected = "a URL without a path, as --requests has the paths";
                return Err(Usage::new("URL", &url.to_string(), expected));
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

/// Maximum body: it is held in memory.
const MAX_BODY: u64 = 1 << 30;

fn body(data: &str) -> Result<Vec<u8>, Usage> {
    let expected = "a readable file, a size such as 1000 or 64KiB (up to 1 GiB), or -";
    let failed = |error: io::Error| Usage::new("--data", &format!("{data}: {error}"), expected);
    if data == "-" {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map_err(failed)?;
        return Ok(bytes);
    }
    match size(data) {
        Some(bytes) if bytes <= MAX_BODY => Ok(vec![b'x'; bytes as usize]),
        Some(_) => Err(Usage::new("--data", data, expected)),
        None => fs::read(data).map_err(failed),
    }
}

fn chunk(text: Option<&str>) -> Result<u64, Usage> {
    text.map_or(Some(DEFAULT_CHUNK), size)
        .ok_or_else(|| Usage::new("--chunked", text.unwrap_or_default(), CHUNKS_EXPECTED))
}

fn rate(text: &str) -> Result<Rate, String> {
    let wrong =
        || "expected requests per second, such as 5000, or steps such as 1000:10s,2000:10s".to_string();
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
        text.parse::<u64>().map_err(|_| "expected a number from 1, or a range such as 5-10".to_string())
    };
    match text.split_once('-') {
        None => number(text).map(|number| (number, number)),
        Some((least, most)) => Ok((number(least)?, number(most)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::HttpVersion;
    use crate::result::Role;

    fn options(words: &str) -> Result<Options, String> {
        LoadArgs::from_words(words.split_whitespace())?.options().map_err(|error| error.to_string())
    }

    #[test]
    fn words_become_options() {
        let o = options("http://a/x http://a/y -d 5s --settle 1s --think 20ms --seed 9").unwrap();
        let paths: Vec<&str> = o.requests.iter().map(|request| request.path.as_str()).collect();
        assert_eq!((paths, o.seed), (vec!["/x", "/y"], 9));
        assert_eq!(o.schedule, Schedule::Closed { think: Duration::from_millis(20) });
        let o = options("http://a/ --rate 100:2s,200:3s --arrivals poisson").unwrap();
        assert_eq!(o.phases.window, Duration::from_secs(5));
        assert!(
            matches!(o.schedule, Schedule::Open { arrivals: ArrivalKind::Poisson, steps } if steps.len() == 2)
        );
        let o = options("https://a/ --requests-per-connection 5-10 --resume 30 --resume-by id --close rst")
            .unwrap();
        assert_eq!(o.policy.per_connection, PerConnection::Requests { least: 5, most: 10 });
        assert_eq!((o.policy.resume, o.policy.close, o.tls.ids_only), (30.0, Close::Reset, true));
        let o = options("https://a/ --tls 1.2-1.3 --group p256,x25519 --sni none --alpn http/1.1").unwrap();
        assert_eq!((o.tls.versions.unwrap().len(), o.tls.groups.len(), o.tls.alpn.len()), (2, 2, 1));
        assert_eq!(o.tls.sni.as_deref(), Some("none"));
        let o = options("http://a/x http://a/y --weights 3,1 --source 127.0.0.1-127.0.0.3").unwrap();
        assert_eq!((o.requests[0].weight, o.requests[1].weight, o.route.sources.len()), (3, 1, 3));
        let o = options("http://a/ --resolve a:80:127.0.0.9 --connect-to b:81").unwrap();
        assert_eq!((o.route.resolve.len(), o.route.connect_to), (1, Some(("b".to_owned(), 81))));
        let o = options("http://a/ --http 2 -m 8 --stream-window 1MiB").unwrap();
        assert_eq!((o.http, o.streams, o.stream_window), (HttpVersion::Http2.into(), 8, 1 << 20));
        let o = options("https://a/ --http 1=3,2=1 -m 8 -c 16 --stream-window 1MiB").unwrap();
        assert_eq!((o.http.to_string().as_str(), o.streams, o.workers), ("1.1=3,2=1", 8, 2));
        assert_eq!(options("http://a/ --http 1.1=3,2=1 -t 3").unwrap().workers, 3);
        assert_eq!(options("http://a/ --http 2").unwrap().workers, 1);
        let o = options("https://a/ --http 2 --alpn h2").unwrap();
        assert_eq!((o.streams, o.stream_window), (1, 64 * 1024));
        let chunk = |words: &str| {
            let o = options(&format!("http://a/ {words}")).unwrap();
            (o.requests[0].chunk, o.requests[0].body.as_ref().map(Vec::len))
        };
        assert_eq!(chunk("--data 5"), (None, Some(5)));
        assert_eq!(chunk("--chunked --data 5"), (Some(16 * 1024), Some(5)));
        assert_eq!(chunk("--data 0 --chunked=4KiB"), (Some(4096), Some(0)));
        let o = options("http://a/ --error-budget 0.1").unwrap();
        assert_eq!((o.error_budget, options("http://a/").unwrap().error_budget), (0.1, 0.0));
        let grpc = |words: &str| options(&format!("http://a/s/m --http 2 {words}")).unwrap().grpc;
        assert_eq!((grpc(""), grpc("--grpc --data 5")), (None, Some(Grpc::default())));
        let streaming = Some(Grpc { messages: 3, expect_messages: 0 });
        assert_eq!(grpc("--grpc --messages 3 --expect-messages 0"), streaming);
        assert_eq!(options("http://a/ --pid origin=7").unwrap().servers[0].role, Role::Origin);
    }

    #[test]
    fn options_that_http_2_rejects_say_so_in_the_help() {
        let command = LoadArgs::augment_args(Command::new("weir load"));
        for (id, words) in [
            ("chunked", "--data 5 --chunked"),
            ("new_connection", "--new-connection"),
            ("requests_per_connection", "--requests-per-connection 5"),
            ("handshake_only", "--handshake-only"),
            ("resume", "--new-connection --resume 50"),
        ] {
            assert!(options(&format!("https://a/ {words}")).is_ok(), "{words}");
            assert!(options(&format!("https://a/ --http 2 {words}")).is_err(), "{words}");
            let option = command.get_arguments().find(|option| option.get_id() == id).unwrap();
            let help = option.get_help().unwrap().to_string();
            assert!(help.contains("needs --http 1.1"), "{help}");
        }
    }

    #[test]
    fn invalid_arguments_say_what_is_expected() {
        for (words, why) in [
            ("http://a/ --rate x", "1000:10s"),
            ("http://a/ --rate 10:5s -d 3s", "no -d with a --rate in steps"),
            ("http://a/ --rate 1:10000000000000000000s,1:10000000000000000000s", "24h in all"),
            ("http://a/ --rate 10:5s,20:0s", "longer than 0"),
            ("http://a/ --rate 5 --think 1s", "cannot be used with"),
            ("http://a/ --arrivals poisson", "--rate"),
            ("http://a/ --new-connection --resume 5", "an https URL"),
            ("http://a/ --handshake-only", "an https URL"),
            ("https://a/ --resume 5", "--new-connection"),
            ("https://a/ --new-connection --resume 101", "0 to 100 percent"),
            ("https://a/ --requests-per-connection 9-5", "a range such as 5-10"),
            ("https://a/ --tls 1.3-1.2", "expected the lower version first"),
            ("https://a/ --tls 1.1", "1.2, 1.3"),
            ("https://a/ --suite aes", "aes128-gcm-sha256"),
            (
                "https://a/ --alpn h2",
                "--alpn: invalid value `h2`: expected http/1.1, the protocol of --http 1.1",
            ),
            ("https://a/ --http 2 --alpn http/1.1", "expected h2, the protocol of --http 2"),
            (
                "http://a/ --http 3",
                "invalid value '3' for '--http <1.1|2|1.1=W,2=W>': expected 1.1, 2, or the weights of both, 1 to \
                 1000000, such as 1.1=3,2=1",
            ),
            ("http://a/ --http 1.1=3", "expected 1.1, 2, or the weights of both"),
            ("http://a/ --http 1.1=0,2=1", "expected 1.1, 2, or the weights of both"),
            (
                "http://a/ --http 1=3,2=1 -t 1",
                "-t: invalid value `1`: expected at least 2 with both versions",
            ),
            (
                "http://a/ --http 1=1000,2=1",
                "-c: invalid value `64`: expected more connections: with --http 1.1=1000,2=1 none of them speaks HTTP/2",
            ),
            ("http://a/ --http 1=1,2=1000 -c 9", "none of them speaks HTTP/1.1"),
            (
                "http://a/ --http 1=1,2=1 -c 1",
                "-c: invalid value `1`: expected at least as many connections as",
            ),
            (
                "https://a/ --http 1=3,2=1 --alpn h2",
                "--alpn: invalid value `h2`: expected no --alpn with --http 1.1=3,2=1, whose connections offer",
            ),
            (
                "http://a/s/m --http 1=3,2=1 --grpc",
                "--grpc: invalid value `http://a/s/m`: expected --http 2 as well, for all connections",
            ),
            ("http://a/ --http 1=3,2=1 --messages 2", "--grpc"),
            (
                "http://a/ --http 1=3,2=1 --new-connection",
                "expected --http 1.1: connections with HTTP/2 are kept",
            ),
            ("https://a/ --http 1=3,2=1 --handshake-only", "--handshake-only"),
            ("http://a/ --http 1=3,2=1 --requests-per-connection 5", "--requests-per-connection"),
            (
                "http://a/ --http 1=3,2=1 --data 5 --chunked",
                "--chunked: invalid value `16384`: expected --http 1.1",
            ),
            ("http://a/ --http 1=1,2=1 -m 10000 -c 2002", "at most 10000000 requests at once"),
            ("http://a/ -m 1", "--streams: invalid value `1`: expected --http 2 as well"),
            ("http://a/ --http 2 -m 0", "--streams: invalid value `0`: expected 1 to 10000"),
            ("http://a/ --http 2 -m x", "expected a whole number, 1 to 10000"),
            ("http://a/ --http 2 -m 10000 -c 1001", "at most 10000000 requests at once"),
            ("http://a/ --stream-window 5", "--stream-window: invalid value `5`: expected --http 2 as well"),
            ("http://a/ --http 2 --stream-window 0", "`0`: expected a size such as 65535 or 1MiB"),
            (
                "http://a/ --http 2 --stream-window 2GiB",
                "`2147483648`: expected a size such as 65535 or 1MiB",
            ),
            (
                "http://a/ --http 2 --new-connection",
                "--new-connection: invalid value `http://a/`: expected --http 1.1",
            ),
            (
                "http://a/ --http 2 --requests-per-connection 5-9",
                "--requests-per-connection: invalid value `9`",
            ),
            ("https://a/ --http 2 --handshake-only", "--handshake-only"),
            (
                "http://a/ --http 2 --data 5 --chunked",
                "--chunked: invalid value `16384`: expected --http 1.1",
            ),
            ("http://a/s/m --grpc", "--grpc: invalid value `http://a/s/m`: expected --http 2 as well"),
            ("http://a/ --http 2 --grpc --expect-length 5", "cannot be used with"),
            ("http://a/ --http 2 --grpc -X PUT", "cannot be used with"),
            ("http://a/ --http 2 --grpc --expect-status 200", "cannot be used with"),
            ("http://a/ --http 2 --messages 5", "--grpc"),
            ("http://a/ --http 2 --expect-messages 5", "--grpc"),
            ("http://a/ --http 2 --grpc --messages 1000001", "`1000001`: expected 0 to 1000000"),
            ("http://a/ --http 2 --grpc --messages x", "expected a whole number, 0 to 1000000"),
            (
                "http://a/ --http 2 --grpc --data 1MiB --messages 1024",
                "--messages: invalid value `1024`: expected at most 1 GiB per call",
            ),
            ("https://a/ --alpn http/1.1,h3", "--alpn: invalid value `h3`"),
            ("https://a/ --alpn http/1.0", "--alpn: invalid value `http/1.0`"),
            ("https://a/ --alpn=", "--alpn: missing value"),
            ("https://a/ --group p-512", "x25519mlkem768"),
            ("https://a/ --signature rsa", "rsa-pss-sha256"),
            ("http://a/ --pid server=5", "origin=PID"),
            ("http://a/ --data /no/such/file", "/no/such/file"),
            ("http://a/ --chunked", "--chunked: invalid value `16384`: expected --data as well"),
            ("http://a/ --data 5 --chunked=much", "--chunked: invalid value `much`: expected 1 to 1GiB"),
            ("http://a/ --data 5 --chunked=0", "--chunked: invalid value `0`: expected 1 to 1GiB"),
            ("http://a/ --requests f --chunked", "cannot be used with"),
            ("http://a/ -c many", "'many' for '--connections <N>': expected a whole number, 1 to 1000000"),
            ("http://a/ -c 1.5", "expected a whole number, 1 to 1000000"),
            ("http://a/ -c=-1", "expected a whole number, 1 to 1000000"),
            ("http://a/ -t 99999999999999999999", "expected a whole number, 1 to 1024"),
            ("http://a/ --weights 1,x", "'x' for '--weights <LIST>': expected a whole number, 1 to 1000000"),
            ("http://a/ --seed x", "expected a whole number from 0"),
            ("http://a/ --expect-status OK", "expected a whole number, 200 to 999"),
            ("http://a/ --expect-length 1KiB", "expected a whole number of bytes"),
            ("https://a/ --new-connection --resume all", "expected 0 to 100 percent"),
            ("http://a/ --error-budget few", "expected 0 to 100 percent"),
            ("http://a/ --error-budget 101", "0 to 100 percent"),
            ("http://a/ --error-budget=-1", "0 to 100 percent"),
            ("http://a/x http://b/y", "http://b"),
            ("http://a/x http://a/y --weights 3", "--weights"),
            ("http://a/ --requests /no/such/file", "/no/such/file"),
            ("http://a/ --source 127.0.0.9-127.0.0.1", "--source"),
            ("http://a/ --resolve a", "--resolve"),
            ("http://a/ --expect-sha256 00", "64"),
            ("http://a/ --unix-socket /x --source 127.0.0.1", "cannot be used with"),
            ("http://a/ --new-connection --handshake-only", "cannot be used with"),
        ] {
            let error = options(words).unwrap_err();
            assert!(error.contains(why), "{words}: {error}");
        }
    }
}
