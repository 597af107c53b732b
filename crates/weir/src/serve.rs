//! `weir serve`, the gateway, and `weir relay`, the floor under one.

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

/// Pass HTTP through, with TLS ended and begun anew as the two URLs say.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir serve --listen http://0.0.0.0:8080 --to http://10.0.0.7:3000
  weir serve --listen https://0.0.0.0:8443 --cert chain.pem --key key.pem \\
             --to https://api.internal:443 --upstream-ca ca.pem --workers 2 --cores 0-1

Requests keep their own path, and Host as the client sent it. X-Forwarded-For, -Proto and -Host
are set from the client's connection; what the client itself says in them, or in Forwarded, is
dropped. Via is added both ways.

SIGTERM or SIGINT drains: no new connections, requests are finished, then the process ends. A
second one ends it at once. SIGHUP, SIGUSR1 and SIGUSR2 do nothing, and say so on stderr. Why an
exchange ended early is written to stderr, one line each.")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    gateway: GatewayArgs,
    /// Largest request body in bytes [default: no limit]
    #[arg(long, value_name = "BYTES")]
    max_body: Option<u64>,
    /// Largest request or response head in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().head_bytes)]
    max_head: usize,
    /// Seconds for a client to complete its request head
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    head_timeout: Duration,
    /// Seconds that an idle client connection is kept
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "75")]
    idle_timeout: Duration,
    /// Seconds without any progress of a body
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "120")]
    stall_timeout: Duration,
    /// Seconds to connect to the upstream, TLS included
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "5")]
    connect_timeout: Duration,
    /// Seconds from the end of a request to the head of its answer
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    response_timeout: Duration,
    /// Seconds that an upstream connection waits in the pool; keep it below what the upstream allows
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "50")]
    pool_timeout: Duration,
    /// Seconds that a drain may take
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "30")]
    drain_timeout: Duration,
}

/// Relay bytes without looking at them: the least that a gateway on this loop and this TLS can cost.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  weir relay --listen http://127.0.0.1:8080 --to http://127.0.0.1:3000

SIGTERM or SIGINT ends it at once. SIGHUP, SIGUSR1 and SIGUSR2 do nothing, and say so on stderr.")]
pub(crate) struct RelayArgs {
    #[command(flatten)]
    gateway: GatewayArgs,
}

/// What `serve` and `relay` have in common.
#[derive(Args, Debug)]
struct GatewayArgs {
    /// Where clients come in: http://HOST:PORT or https://HOST:PORT; can be given more than once
    #[arg(long, value_name = "URL", required = true)]
    listen: Vec<Endpoint>,
    /// Where requests go: http://HOST:PORT or https://HOST:PORT, no path
    #[arg(long, value_name = "URL")]
    to: Endpoint,
    /// Certificate chain for https listeners (PEM, leaf first)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// TLS 1.3 tickets for each handshake with a client; 0 sends none
    #[arg(long, value_name = "N", default_value_t = 1)]
    tickets: u32,
    /// Require client certificates issued by the authorities in this file
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Authorities that the upstream's certificate must come from [default: those of the system]
    #[arg(long, value_name = "FILE")]
    upstream_ca: Option<PathBuf>,
    /// Skip verification of the upstream's certificate: whoever is in between can read and change everything
    #[arg(long, conflicts_with = "upstream_ca")]
    upstream_insecure: bool,
    /// Name to verify the upstream by and to send as SNI [default: the host of --to]
    #[arg(long, value_name = "NAME")]
    upstream_name: Option<String>,
    #[command(flatten)]
    parameters: Parameters,
    /// Worker threads [default: one for each core that this process may use]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Cores to pin the workers to, such as 0,2-3
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
    weir_gateway::serve(settings).map_err(|error| failure(error, &files))
}

pub(crate) fn relay(args: RelayArgs) -> Outcome {
    let files = args.gateway.files();
    weir_gateway::relay(&args.gateway.settings()).map_err(|error| failure(error, &files))
}

impl GatewayArgs {
    /// The files that flags name, with these.
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
            alpn: vec![HTTP_1_1.to_vec()],
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

/// Flags, and the files that they name.
type Files = [(&'static str, Option<PathBuf>); 4];

fn failure(error: GatewayError, files: &Files) -> Failure {
    let files = files.each_ref().map(|(flag, file)| (*flag, file.as_deref()));
    Failure::blame(error.is_usage(), error, &files)
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("write seconds, more than 0 and at most 86400".into()),
    }
}

/// RFC 7301 section 6.
const HTTP_1_1: &[u8] = b"http/1.1";
