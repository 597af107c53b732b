//! `weir serve`, the gateway, and `weir relay`, which measures the minimum cost of a gateway.

use crate::outcome::{Failure, Outcome};
use crate::parameters::Parameters;
use clap::Args;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_gateway::document::{
    Bind, Certificate, Limits, Listener, ListenerTls, Route, Server, Service, ServiceTls,
};
use weir_gateway::{Checked, Config, Fault, Finding, Findings, GatewayError, Inherited, Timeouts};
use weir_reactor::cores::Cores;
use weir_tls::Offer;
use weir_transport::{Endpoint, Place};

/// Run the gateway: pass HTTP through, terminating and re-originating TLS as the two URLs ask.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir serve --config /etc/weir/weir.toml
  weir serve --listen http://0.0.0.0:8080 --to http://10.0.0.7:3000
  weir serve --listen https://0.0.0.0:8443 --cert chain.pem --key key.pem \\
             --to https://api.internal:443 --upstream-ca ca.pem --workers 2 --cores 0-1

`weir check --config FILE` validates a file. Without one, path and Host are forwarded unchanged.
X-Forwarded-For, -Proto and -Host are set from the client connection; the client's own values, and
Forwarded, are dropped.

SIGTERM or SIGINT drains: it stops accepting, finishes requests in flight and exits; a second
signal exits at once. SIGHUP reloads the configuration, certificates and keys. SIGUSR2 upgrades: the
program is started anew and takes over the sockets. SIGUSR1 writes the totals so far to stderr. Each
exchange that ends early is logged there with its reason. Sockets of systemd (LISTEN_FDS) are used.")]
pub(crate) struct ServeArgs {
    /// The configuration (TOML), in place of all flags
    #[arg(long, value_name = "FILE", exclusive = true)]
    config: Option<PathBuf>,
    #[command(flatten)]
    gateway: GatewayArgs,
    /// Speak HTTP/2 to the upstream: by ALPN over TLS, with prior knowledge in cleartext
    #[arg(long)]
    upstream_http2: bool,
    /// Maximum request body [default: no limit]
    #[arg(long, value_name = "BYTES")]
    max_body: Option<u64>,
    /// Maximum request or response head
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().head)]
    max_head: u64,
    /// Time for a client to send a complete request head
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    head_timeout: Duration,
    /// Keep-alive time of an idle client connection
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "75")]
    idle_timeout: Duration,
    /// Time without progress of a body
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "120")]
    stall_timeout: Duration,
    /// Time to connect to the upstream, and again for the TLS handshake
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

/// Relay bytes without parsing them: the minimum cost of a gateway on this event loop and TLS stack.
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
    #[arg(long, value_name = "URL")]
    listen: Vec<Endpoint>,
    /// Upstream: http://HOST:PORT or https://HOST:PORT, no path; or unix:PATH
    #[arg(long, value_name = "URL")]
    to: Option<Place>,
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

/// The name of the only service that flags configure.
const UPSTREAM: &str = "upstream";

pub(crate) fn run(args: ServeArgs) -> Outcome {
    weir_heap::return_early();
    let inherited = Inherited::take().map_err(Failure::run)?;
    let tell = inherited.teller();
    let outcome = match &args.config {
        Some(file) => run_file(file, inherited),
        None => run_flags(args, inherited),
    };
    if let Err(failure) = &outcome {
        tell(&failure.message);
    }
    outcome
}

fn run_flags(args: ServeArgs, inherited: Inherited) -> Outcome {
    let flags = args.gateway.flags();
    let mut config = args
        .gateway
        .config("missing --config FILE, or --listen URL and --to URL; `weir serve --help` has examples")?;
    if let Some(upstream) = config.services.get_mut(UPSTREAM) {
        upstream.http2 = args.upstream_http2;
    }
    config.limits.body = args.max_body;
    config.limits.head = args.max_head;
    config.timeouts = Timeouts {
        head: args.head_timeout,
        handshake: args.head_timeout,
        idle: args.idle_timeout,
        stall: args.stall_timeout,
        connect: args.connect_timeout,
        upstream_handshake: args.connect_timeout,
        response: args.response_timeout,
        pooled: args.pool_timeout,
        drain: args.drain_timeout,
        ..Timeouts::default()
    };
    let checked = flags.check(config.clone())?;
    let blaming = flags.clone();
    let again = move |active: &Checked| {
        Checked::after(config.clone(), Some(active)).map_err(|found| blaming.blame_all(&found))
    };
    weir_gateway::serve(checked, inherited, Box::new(again)).map_err(|error| flags.failure(error))
}

fn run_file(file: &Path, inherited: Inherited) -> Outcome {
    let checked = weir_gateway::read(file).map_err(|found| Failure::findings(found.faults_in_words()))?;
    for warning in checked.warnings() {
        warn(warning);
    }
    let in_words = checked.teller();
    let path = file.to_owned();
    let again = move |active: &Checked| {
        weir_gateway::read_after(&path, Some(active)).map_err(|found| found.faults_in_words())
    };
    weir_gateway::serve(checked, inherited, Box::new(again)).map_err(|error| match error {
        GatewayError::Config(fault) => Failure::findings(in_words(fault)),
        error => Failure::run(error),
    })
}

pub(crate) fn relay(args: RelayArgs) -> Outcome {
    let flags = args.gateway.flags();
    let mut config = args.gateway.config("missing --listen URL and --to URL")?;
    for listener in config.listeners.values_mut() {
        // The server may speak HTTP/1.1 or any other protocol, so ALPN must not select HTTP/2.
        listener.http2 = false;
    }
    let checked = flags.check(config)?;
    weir_gateway::relay(checked).map_err(|error| flags.failure(error))
}

impl GatewayArgs {
    /// The keys of the configuration that flags set, each with its flag; the first matching prefix applies.
    fn flags(&self) -> Flags {
        let keys = [
            ("workers", "--workers"),
            ("cores", "--cores"),
            ("limits.head", "--max-head"),
            ("listener", "--listen"),
            ("service.upstream.servers", "--to"),
            ("service.upstream.tls.insecure", "--upstream-insecure"),
            ("service.upstream.http2", "--upstream-http2"),
        ];
        let files = [
            ("--cert", self.cert.clone()),
            ("--key", self.key.clone()),
            ("--client-ca", self.client_ca.clone()),
            ("--upstream-ca", self.upstream_ca.clone()),
        ];
        Flags { keys, files }
    }

    /// Returns the configuration for these flags: one service, and a route for all requests. `missing` is the error if
    /// there is no upstream or no listener.
    fn config(self, missing: &str) -> Result<Config, Failure> {
        let Some(to) = self.to.filter(|_| !self.listen.is_empty()) else {
            return Err(Failure::usage(missing));
        };
        if self.upstream_insecure && !to.tls() {
            return Err(Failure::usage(format!(
                "--upstream-insecure: --to {to} is not https, so there is no certificate to verify"
            )));
        }
        let Offer { versions, suites, groups } = self.parameters.offer();
        let certificates: Vec<_> = self
            .cert
            .zip(self.key)
            .map(|(chain, key)| Certificate { name: None, chain, key, ocsp: None })
            .into_iter()
            .collect();
        let tls = ListenerTls {
            versions: versions.clone(),
            suites: suites.clone(),
            groups: groups.clone(),
            tickets: Some(self.tickets),
            client_ca: self.client_ca,
            ..ListenerTls::default()
        };
        let mut listeners = BTreeMap::new();
        for (index, endpoint) in self.listen.into_iter().enumerate() {
            if endpoint.tls && certificates.is_empty() {
                let why = format!("--listen {endpoint} needs a certificate: give --cert FILE and --key FILE");
                return Err(Failure::usage(why));
            }
            let bind = vec![Bind::Tcp { host: endpoint.host, port: endpoint.port }];
            let tls = endpoint.tls.then(|| tls.clone());
            // Names in this form sort in the order of the flags, in which the listeners are bound.
            listeners.insert(format!("{index:04}"), Listener { tls, ..Listener::new(bind) });
        }
        let tls = match to.tls() {
            true => ServiceTls {
                ca: self.upstream_ca,
                insecure: self.upstream_insecure,
                name: self.upstream_name,
                versions,
                suites,
                groups,
                ..ServiceTls::default()
            },
            false => ServiceTls::default(),
        };
        let service = Service { tls, ..Service::new(vec![Server::new(to)]) };
        Ok(Config {
            workers: self.workers,
            cores: self.cores,
            listeners,
            certificates,
            services: [(UPSTREAM.to_owned(), service)].into(),
            routes: vec![Route { service: Some(UPSTREAM.into()), ..Route::default() }],
            ..Config::default()
        })
    }
}

/// The flags that set keys of the configuration, and the files that flags name.
#[derive(Clone)]
struct Flags {
    keys: [(&'static str, &'static str); 7],
    files: [(&'static str, Option<PathBuf>); 4],
}

impl Flags {
    /// The flag that sets this key.
    fn of(&self, key: &str) -> Option<&'static str> {
        self.keys.iter().find(|(prefix, _)| key.starts_with(prefix)).map(|(_, flag)| *flag)
    }

    /// Checks the configuration, and prints its warnings.
    fn check(&self, config: Config) -> Result<Checked, Failure> {
        let checked = Checked::new(config).map_err(|found| Failure::findings(self.blame_all(&found)))?;
        for warning in checked.warnings() {
            let key = self.of(&warning.key).map_or_else(|| warning.key.clone(), str::to_owned);
            warn(&Finding { key, ..warning.clone() });
        }
        Ok(checked)
    }

    fn failure(&self, error: GatewayError) -> Failure {
        match error {
            GatewayError::Config(Fault { key, message }) => self.blame(&key, &message),
            error => Failure::run(error),
        }
    }

    /// The faults, one per line.
    fn blame_all(&self, found: &Findings) -> String {
        let lines: Vec<_> =
            found.faults().map(|fault| self.blame(&fault.key, &fault.in_short()).message).collect();
        lines.join("\n")
    }

    /// Attributes an error to its flag, or to the flag whose file is at fault.
    fn blame(&self, key: &str, message: &str) -> Failure {
        let files = self.files.each_ref().map(|(flag, file)| (*flag, file.as_deref()));
        let of_file = Failure::blame(true, message, &files);
        match self.of(key) {
            Some(flag) if of_file.message == message => {
                let words = message.split('`').map(|word| self.of(word).unwrap_or(word));
                Failure::usage(format!("{flag}: {}", words.collect::<Vec<_>>().join("`")))
            }
            _ => of_file,
        }
    }
}

fn warn(warning: &Finding) {
    // A closed stderr must not stop the gateway.
    let _ = writeln!(io::stderr(), "weir: {warning}");
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected seconds, more than 0 and at most 86400".into()),
    }
}
