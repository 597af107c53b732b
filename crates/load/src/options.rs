//! The engine's options.

mod grpc;
pub(crate) mod http;
mod tls;
mod versions;

pub use grpc::Grpc;
pub use http::HttpVersion;
pub use tls::TlsOptions;
pub use versions::HttpVersions;

use crate::check::Expect;
use crate::result::Role;
use crate::target::{Resolve, Target, host_port};
use crate::usage::{Usage, time};
use clap::{Args, ValueEnum};
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use weir_reactor::cores::Cores;
use weir_transport::Endpoint;

/// The engine's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Scheme, host and port of the server; also the default for `Host` and SNI.
    pub endpoint: Endpoint,
    /// Where connections actually go.
    pub route: Route,
    /// The requests.
    pub requests: Vec<RequestOptions>,
    /// Makes the requests gRPC calls; `None` sends them as they are.
    pub grpc: Option<Grpc>,
    /// Total connections, at least one per worker.
    pub connections: u32,
    /// The version of HTTP, or both by weight.
    pub http: HttpVersions,
    /// Streams per connection with HTTP/2: requests at once, 1 to 10000; 1 with HTTP/1.1 alone.
    pub streams: u32,
    /// The receive window of a stream in bytes, 1 to 2^31-1; ignored by HTTP/1.1.
    pub stream_window: u32,
    /// Warm-up, settling and window.
    pub phases: Phases,
    /// Worker threads.
    pub workers: usize,
    /// The cores to pin the workers to, in order.
    pub cores: Option<Cores>,
    /// When requests are sent.
    pub schedule: Schedule,
    /// How connections are opened, used and closed.
    pub policy: Policy,
    /// TLS parameters.
    pub tls: TlsOptions,
    /// Servers whose CPU is accounted.
    pub servers: Vec<Server>,
    /// Timeout for a request, and for opening a connection.
    pub timeout: Duration,
    /// Seed for all random choices: arrivals, requests per connection.
    pub seed: u64,
    /// Percentage of requests that may fail without a response before the run is invalid, 0 to 100. A wrong response
    /// always makes it invalid.
    pub error_budget: f64,
    /// Whether the warm-up starts when standard input says so, see [`crate::OPEN`].
    pub rendezvous: bool,
    /// The calibrated ceilings, if any.
    pub ceilings: Option<PathBuf>,
}

/// Destination and source addresses of connections.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = CONNECTIONS)]
pub struct Route {
    /// Local addresses, used in turn; the system chooses if empty.
    #[arg(skip)]
    pub sources: Vec<IpAddr>,
    /// Use this address for a host and port, instead of resolving it; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDRESS")]
    pub resolve: Vec<Resolve>,
    /// Connect to this host and port instead of the URL's
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    pub connect_to: Option<(String, u16)>,
    /// Connect to a Unix domain socket
    #[arg(long = "unix-socket", value_name = "FILE", conflicts_with_all = ["source", "resolve", "connect_to"])]
    pub unix: Option<PathBuf>,
}

/// One kind of request in the mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestOptions {
    /// Path and query; at least `/`.
    pub path: String,
    /// Relative frequency; at least 1.
    pub weight: u32,
    /// Method; `None` is GET, or POST with a body.
    pub method: Option<String>,
    /// Extra header fields. `Host` replaces the URL's.
    pub fields: Vec<(String, String)>,
    /// The request's body.
    pub body: Option<Vec<u8>>,
    /// Chunk size for a chunked body; `None` sends Content-Length.
    pub chunk: Option<u64>,
    /// The expected response.
    pub expect: Expect,
}

/// The phases around the window.
#[derive(Args, Clone, Copy, Debug, PartialEq, Eq)]
#[command(next_help_heading = SCHEDULE)]
pub struct Phases {
    // Caches, pools and just-in-time compilers fill.
    /// Warm-up before the window, not measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub warmup: Duration,
    /// Settling time after the warm-up, at the window's rate, to drain its backlog
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub settle: Duration,
    /// Length of the measured window.
    #[arg(skip)]
    pub window: Duration,
}

/// When requests are sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// Each connection sends its next request after its response and think time.
    Closed {
        /// The pause between a response and the next request.
        think: Duration,
    },
    /// Arrivals are planned before anything is sent.
    Open {
        /// Distribution of inter-arrival times.
        arrivals: ArrivalKind,
        /// Consecutive rates over the window; at least one. The last lasts until the window's end.
        steps: Vec<RateStep>,
    },
}

/// Distribution of inter-arrival times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ArrivalKind {
    /// All equal.
    #[default]
    #[value(help = None)]
    Constant,
    /// Exponential, as from many independent users.
    #[value(help = None)]
    Poisson,
}

/// A rate and its duration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStep {
    /// Total arrivals per second.
    pub rate: f64,
    /// Duration.
    pub time: Duration,
}

/// How connections are opened, used and closed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Policy {
    /// The use of a connection.
    pub per_connection: PerConnection,
    /// Percentage of new TLS connections that resume a session, 0 to 100; the rest do full handshakes.
    pub resume: f64,
    /// How the engine closes a connection.
    pub close: Close,
}

/// The use of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PerConnection {
    /// All requests.
    #[default]
    Unlimited,
    /// A random number of requests from this range, then a new connection.
    Requests {
        /// At least 1.
        least: u64,
        /// At least `least`.
        most: u64,
    },
    /// No request: only the handshake is measured.
    Handshake,
}

/// How the engine closes a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Close {
    /// With TLS close_notify, then FIN (RFC 8446 section 6.1).
    #[default]
    #[value(help = None)]
    Graceful,
    /// FIN only.
    #[value(help = None)]
    Fin,
    /// RST: neither side keeps the port in TIME_WAIT; data in flight is lost.
    #[value(name = "rst", help = None)]
    Reset,
}

/// A server whose CPU is accounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its role in the system under test.
    pub role: Role,
    /// The source of its CPU time.
    pub meter: Meter,
}

/// The source of a server's CPU time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meter {
    /// A local process with its descendants.
    Process(u32),
    /// The directory of a local cgroup.
    Cgroup(PathBuf),
    /// A shell command that prints CPU seconds so far, or a cgroup's `cpu.stat`. For remote servers, over ssh.
    Command(String),
}

/// Help headings.
pub(crate) const SCHEDULE: &str = "Schedule";
pub(crate) const CONNECTIONS: &str = "Connections";

/// Chunk sizes: at most the maximum body.
pub(crate) const CHUNKS: RangeInclusive<u64> = 1..=1 << 30;
pub(crate) const CHUNKS_EXPECTED: &str = "1 to 1GiB, such as 4096 or 4KiB";

/// Default chunk size: programs that stream typically read 4 to 64 KiB at once, and a TLS record
/// holds this much (RFC 8446 section 5.1).
pub(crate) const DEFAULT_CHUNK: u64 = 16 * 1024;

impl Options {
    /// The defaults for a URL: GET, 64 keep-alive connections, a window of 10 s after a warm-up of 1 s, 1 worker,
    /// closed loop.
    pub fn new(target: Target) -> Self {
        let request = RequestOptions::new(target.path);
        Self {
            endpoint: target.endpoint,
            route: Route::default(),
            requests: vec![request],
            grpc: None,
            connections: 64,
            http: HttpVersions::One(HttpVersion::Http1),
            streams: 1,
            stream_window: http::DEFAULT_STREAM_WINDOW,
            phases: Phases {
                warmup: Duration::from_secs(1),
                settle: Duration::ZERO,
                window: Duration::from_secs(10),
            },
            workers: 1,
            cores: None,
            schedule: Schedule::Closed { think: Duration::ZERO },
            policy: Policy::default(),
            tls: TlsOptions::default(),
            servers: Vec::new(),
            timeout: Duration::from_secs(10),
            seed: 1,
            error_budget: 0.0,
            rendezvous: false,
            ceilings: None,
        }
    }

    /// The first URL.
    pub fn url(&self) -> String {
        let path = self.requests.first().map_or("/", |request| &request.path);
        format!("{}{path}", self.endpoint)
    }

    /// Checks what the types cannot express.
    ///
    /// # Errors
    /// The first invalid flag.
    pub fn check(&self) -> Result<(), Usage> {
        let range = |flag, value: &dyn fmt::Display, ok: bool, expected| match ok {
            true => Ok(()),
            false => Err(Usage::new(flag, &value.to_string(), expected)),
        };
        let workers = self.workers;
        range("-t", &workers, (1..=1024).contains(&workers), "1 to 1024")?;
        let connections = self.connections;
        range("-c", &connections, (1..=1_000_000).contains(&connections), "1 to 1000000")?;
        range(
            "-c",
            &connections,
            connections as usize >= workers,
            "at least as many connections as workers (-t)",
        )?;
        let seconds = |time: Duration| time.as_secs_f64();
        let Phases { warmup, settle, window } = self.phases;
        let (window, warmup, settle) = (seconds(window), seconds(warmup), seconds(settle));
        range("-d", &window, (0.001..=86_400.0).contains(&window), "1ms to 24h")?;
        range("--warmup", &warmup, warmup <= 3600.0, "0s to 1h")?;
        range("--settle", &settle, settle <= 3600.0, "0s to 1h")?;
        let timeout = seconds(self.timeout);
        range("--timeout", &timeout, (0.001..=3600.0).contains(&timeout), "1ms to 1h")?;
        match &self.schedule {
            Schedule::Closed { think } => {
                let think = seconds(*think);
                range("--think", &think, think <= 3600.0, "0s to 1h")?;
            }
            Schedule::Open { steps, .. } => {
                let none = "at least one rate";
                range("--rate", &"", !steps.is_empty(), none)?;
                for RateStep { rate, time } in steps {
                    let expected = "0.001 to 10000000 requests per second";
                    range("--rate", rate, (0.001..=1e7).contains(rate), expected)?;
                    range("--rate", &seconds(*time), !time.is_zero(), "steps longer than 0")?;
                }
            }
        }
        if let PerConnection::Requests { least, most } = self.policy.per_connection {
            let text = if least == most { least.to_string() } else { format!("{least}-{most}") };
            let expected = "a number from 1, or a range such as 5-10";
            range("--requests-per-connection", &text, least >= 1 && least <= most, expected)?;
        }
        let resume = self.policy.resume;
        range("--resume", &resume, (0.0..=100.0).contains(&resume), "0 to 100 percent")?;
        if !self.endpoint.tls {
            let cleartext = "an https URL";
            range("--resume", &resume, resume == 0.0, cleartext)?;
            let handshakes = self.policy.per_connection == PerConnection::Handshake;
            range("--handshake-only", &self.url(), !handshakes, cleartext)?;
        }
        if resume > 0.0 {
            let expected = "--new-connection, --requests-per-connection or --handshake-only as well: \
                           connections that are kept make no handshakes";
            range("--resume", &resume, !self.policy.per_connection.keeps(), expected)?;
        }
        grpc::check(self)?;
        http::check(self)?;
        let budget = self.error_budget;
        range("--error-budget", &budget, (0.0..=100.0).contains(&budget), "0 to 100 percent")?;
        for request in &self.requests {
            if let Some(chunk) = request.chunk {
                range("--chunked", &chunk, CHUNKS.contains(&chunk), CHUNKS_EXPECTED)?;
                let expected = "--data as well: without a body there is nothing to send in chunks";
                range("--chunked", &chunk, request.body.is_some(), expected)?;
            }
            if let Some(status) = request.expect.status {
                let expected = "a final status, 200 to 999";
                range("--expect-status", &status, (200..=999).contains(&status), expected)?;
            }
        }
        Ok(())
    }
}

impl RequestOptions {
    /// GET, no body, any 2xx response.
    pub fn new(path: String) -> Self {
        Self {
            path,
            weight: 1,
            method: None,
            fields: Vec::new(),
            body: None,
            chunk: None,
            expect: Expect::default(),
        }
    }
}

impl PerConnection {
    /// Whether connections are kept alive for all requests.
    pub fn keeps(self) -> bool {
        self == Self::Unlimited
    }

    /// Whether no connection takes a second request.
    pub fn is_single(self) -> bool {
        matches!(self, Self::Requests { most: 1, .. } | Self::Handshake)
    }
}

impl Schedule {
    /// An open loop at one constant rate.
    pub fn constant(rate: f64, time: Duration) -> Self {
        Self::Open { arrivals: ArrivalKind::Constant, steps: vec![RateStep { rate, time }] }
    }

    /// The first rate; `None` in a closed loop.
    pub fn rate(&self) -> Option<f64> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { steps, .. } => steps.first().map(|step| step.rate),
        }
    }
}

#[cfg(test)]
mod tests;
