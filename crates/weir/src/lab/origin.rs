//! `weir origin`: the test server.

use crate::outcome::{Failure, Outcome, say};
use crate::parameters::Parameters;
use clap::Args;
use std::path::PathBuf;
use weir_origin::{HttpVersions, Origin, OriginError, Settings, cpu_time};
use weir_reactor::{cores::Cores, limits};
use weir_transport::Endpoint;

/// Run the test server: known responses, known delays, known cost.
///
/// /bytes/N returns N bytes, /echo returns the request body, /stats returns the counters.
/// gRPC calls: /weir.Echo/Unary, /weir.Echo/Server?messages=N, /weir.Echo/Client, /weir.Echo/Bidi.
/// ?delay_ms=D delays the response by D milliseconds, ?chunked=1 sends it without its length.
/// Clients speak HTTP/1.1, or HTTP/2: over TLS by ALPN, in cleartext with prior knowledge.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OriginArgs {
    /// Listen on this http:// or https:// URL; port 0 picks a free port; may be repeated
    #[arg(long, value_name = "URL", required = true)]
    listen: Vec<Endpoint>,
    /// Certificate chain (PEM) [default: generated; the path of its CA is printed]
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Worker threads [default: one per allowed core]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Pin the workers to these cores, such as 0,2-3
    #[arg(long, value_name = "LIST")]
    cores: Option<Cores>,
    /// Tickets to send after each TLS 1.3 handshake
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=16))]
    tickets: Option<u32>,
    /// Accept only this version of HTTP: 1.1 or 2 [default: both]
    #[arg(long, value_name = "VERSION")]
    http: Option<HttpVersions>,
    #[command(flatten)]
    parameters: Parameters,
    /// Send a canned 200 of this many bytes for every request, without parsing: weir calibrate's null server
    #[arg(long, value_name = "BYTES")]
    null: Option<u64>,
}

const EXAMPLES: &str = "\
Examples:
  weir origin --listen http://127.0.0.1:8080
  weir origin --listen http://127.0.0.1:0 --listen https://127.0.0.1:8443 --workers 1 --cores 0
  weir origin --listen https://127.0.0.1:8443 --tls 1.2 --group p256   # accepts nothing else
  weir origin --listen https://127.0.0.1:8443 --http 1.1                # ALPN without h2
  curl 'http://127.0.0.1:8080/bytes/1000?delay_ms=20'
  curl --http2-prior-knowledge http://127.0.0.1:8080/bytes/1000

SIGTERM or SIGINT drains, a second one ends it at once. SIGHUP, SIGUSR1 and SIGUSR2 do nothing, and
say so on stderr.";

pub(crate) fn run(args: OriginArgs) -> Outcome {
    let weir_tls::Offer { versions, suites, groups } = args.parameters.classical_offer();
    let settings = Settings {
        listen: args.listen,
        identity: args.cert.zip(args.key),
        workers: args.workers,
        cores: args.cores,
        tickets: args.tickets,
        versions,
        suites,
        groups,
        http: args.http.unwrap_or_default(),
        null: args.null,
    };
    let (cert, key) = settings.identity.as_ref().map(|(cert, key)| (&**cert, &**key)).unzip();
    let files = [("--cert", cert), ("--key", key)];
    let failure = |error: OriginError| Failure::blame(error.is_usage(), error, &files);
    limits::raise_open_files().map_err(Failure::run)?;
    let origin = Origin::bind(&settings).map_err(failure)?;
    origin.stop_on_signals().map_err(failure)?;
    if let Some(ca) = origin.ca_file() {
        say(format_args!("authority in {}\n", ca.display()))?;
    }
    for endpoint in origin.endpoints() {
        say(format_args!("listening on {endpoint}\n"))?;
    }
    let totals = origin.run().map_err(failure)?;
    let cpu_us = cpu_time().as_secs_f64() * 1e6;
    let each =
        if totals.requests == 0 { "-".into() } else { format!("{:.1}", cpu_us / totals.requests as f64) };
    say(format_args!(
        "served {} requests ({} answers complete, {} refused) on {} connections ({} failed), handshakes {} full \
         {} resumed, CPU {each} us per request\n",
        totals.requests,
        totals.answers,
        totals.refused,
        totals.connections,
        totals.failed,
        totals.handshakes_full,
        totals.handshakes_resumed(),
    ))
}
