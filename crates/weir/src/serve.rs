//! `weir serve`, the gateway, and `weir relay`, the floor target.

use crate::outcome::{Failure, Outcome};
use crate::parameters::{Parameters, roots};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use weir_gateway::{GatewayError, Settings, Timeouts, UpstreamTls};
use weir_http1::Limits;
use weir_reactor::cores::Cores;
use weir_tls::{ClientSettings, Identity, ServerSettings};
use weir_transport::Endpoint;

/// Run the gateway: pass HTTP through, terminating and re-originating TLS as the two URLs ask.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir serve --listen http://0.0.0.0:8080 --to http://10.0.0.7:3000
  weir serve --listen https://0.0.0.0:8443 --cert chain.pem --key key.pem \\
             --to https://api.internal:443 --upstream-ca ca.pem --workers 2 --cores 0-1

Path and Host are forwarded unchanged. X-Forwarded-For, -Proto and -Host are set from the client
connection; the client's own values, and Forwarded, are dropped. Via is added both ways.

SIGTERM or SIGINT drains: it stops accepting, finishes requests in flight and exits; a second
signal exits at once. SIGUSR1 writes the totals so far to stderr. SIGHUP and SIGUSR2 are ignored
with a message there. Each exchange that ends early is logged to stderr with its reason.")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    gateway: GatewayArgs,
    /// Maximum request body [default: no limit]
    #[arg(long, value_name = "BYTES")]
    max_body: Option<u64>,
    /// Maximum request or response head
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().head_bytes)]
    max_head: usize,
    /// Time for a client to send a complete request head
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    head_timeout: Duration,
    /// Keep-alive time of an idle client connection
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "75")]
    idle_timeout: Duration,
    /// Time without progress of a body
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "120")]
    stall_timeout: Duration,
    /// Time to connect to the upstream, TLS handshake included
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "5")]
    connect_timeout: Duration,
    /// Time from the end of a request to the response head
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    response_timeout: Duration,
    /// Keep-alive time of a pooled upstream connection; keep it below the upstream's own
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "50")]
    pool_timeout: Duration,
    /// Time for a drain
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "30")]
    drain_timeout: Duration,
}

/// Relay bytes without parsing them: the least a gateway on this event loop and TLS stack can cost.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  weir relay --listen http://127.0.0.1:8080 --to http://127.0.0.1:3000

SIGTERM or SIGINT drains: it stops accepting, ends connections that carry nothing for half a
second, and exits when all are gone, at the latest after 30 seconds; a second signal exits at once.
SIGUSR1 writes the totals so far to stderr; SIGHUP and SIGUSR2 are ignored with a message there.")]
pub(crate) struct RelayArgs {
    #[command(flatten)]
    gateway: GatewayArgs,
}

/// Options of both `serve` and `relay`.
#[derive(Args, Debug)]
struct GatewayArgs {
    /// Listen on http://HOST:PORT or https://HOST:PORT; may be repeated
    #[arg(long, value_name = "URL", required = true)]
    listen: Vec<Endpoint>,
    /// Upstream: http://HOST:PORT or https://HOST:PORT, no path
    #[arg(long, value_name = "URL")]
    to: Endpoint,
    /// Certificate chain for https listeners (PEM, leaf first)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Tickets to send after each TLS 1.3 handshake with a client; 0 sends none
    #[arg(long, value_name = "N", default_value_t = 1)]
    tickets: u32,
    /// Require client certificates issued by the CAs in this file (PEM)
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Trusted CAs for the upstream (PEM) [default: the system's]
    #[arg(long, value_name = "FILE")]
    upstream_ca: Option<PathBuf>,
    /// Skip verification of the upstream's certificate; a man in the middle can read and change everything
    #[arg(long, conflicts_with = "upstream_ca")]
    upstream_insecure: bool,
    /// Server name to verify and to send as SNI [default: the host of --to]
    #[arg(long, value_name = "NAME")]
    upstream_name: Option<String>,
    #[command(flatten)]
    parameters: Parameters,
    /// Worker threads [default: one per allowed core]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Pin the workers to these cores, such as 0,2-3
    #[arg(long, value_name = "LIST")]
    cores: Option<Cores>,
}

pub(crate) fn run(args: ServeArgs) -> Outcome {
    let files = args.gateway.files();
    let mut settings = args.gateway.settings();
    settings.max_body = args.max_body;
    settings.limits.head_bytes = args.max_head;
    settings.timeouts = Timeouts {
        head: args.head_timeout,
        handshake: args.head_timeout,
        idle: args.idle_timeout,
        stall: args.stall_timeout,
        connect: args.connect_timeout,
        response: args.response_timeout,
        pooled: args.pool_timeout,
        drain: args.drain_timeout,
        ..Timeouts::default()
    };
    weir_gateway::serve(&settings).map_err(|error| failure(error, &files))
}

pub(crate) fn relay(args: RelayArgs) -> Outcome {
    let files = args.gateway.files();
    weir_gateway::relay(&args.gateway.settings()).map_err(|error| failure(error, &files))
}

impl GatewayArgs {
    /// The flags that name files, and the files.
    fn files(&self) -> Files {
        [
            ("--cert", self.cert.clone()),
            ("--key", self.key.clone()),
            ("--client-ca", self.client_ca.clone()),
            ("--upstream-ca", self.upstream_ca.clone()),
        ]
    }

    fn settings(self) -> Settings {
        let (versions, suites, groups) = self.parameters.complete();
        let server_tls = self.cert.zip(self.key).map(|(cert, key)| ServerSettings {
            versions: versions.clone(),
            suites: suites.clone(),
            groups: groups.clone(),
            alpn: vec![HTTP_1_1.to_vec(), HTTP_1_0.to_vec()],
            tickets: self.tickets,
            client_roots: self.client_ca,
            ..ServerSettings::new(Identity::files(cert, key))
        });
        let client = ClientSettings {
            roots: roots(self.upstream_ca, self.upstream_insecure),
            versions,
            suites,
            groups,
            alpn: vec![HTTP_1_1.to_vec()],
            ..ClientSettings::default()
        };
        Settings {
            listen: self.listen,
            server_tls,
            to: self.to,
            upstream_tls: UpstreamTls { client, name: self.upstream_name },
            workers: self.workers,
            cores: self.cores,
            limits: Limits::default(),
            max_body: None,
            timeouts: Timeouts::default(),
        }
    }
}

/// Flags and the files they name.
type Files = [(&'static str, Option<PathBuf>); 4];

fn failure(error: GatewayError, files: &Files) -> Failure {
    let files = files.each_ref().map(|(flag, file)| (*flag, file.as_deref()));
    Failure::blame(error.is_usage(), error, &files)
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected seconds, more than 0 and at most 86400".into()),
    }
}

/// RFC 7301 section 6.
const HTTP_1_1: &[u8] = b"http/1.1";
/// Clients that speak it may offer nothing else.
const HTTP_1_0: &[u8] = b"http/1.0";
