//! `weir cost URL`: the cost of TLS for a service.

use super::outputs;
use crate::outcome::{Failure, Outcome};
use crate::parameters::roots;
use clap::Args;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;
use weir_lab::cost::{Question, cost};
use weir_load::{Server, Target, meter, time};
use weir_reactor::limits;

/// Show the cost of TLS for a service in five lines: handshakes, resumption and keep-alive against cleartext.
///
/// Probes the server, then sends GET requests in 5 rounds over new connections with full handshakes, new connections
/// that resume, keep-alive connections, and new and keep-alive connections in cleartext. Every status must be 200 to
/// 299. The result is an estimate, in about 30 seconds; a verdict needs an experiment (weir run).
///
/// At most -c connections are open at once, with one request at a time on each. With the defaults, a service that
/// responds in 5 ms gets at most 20000 requests, 3 of 5 on a new connection, and one that responds in 50 us gets two
/// million. Before that, the probe opens at most 530 connections, one at a time, without a request.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CostArgs {
    /// The service over TLS, https://HOST[:PORT][/PATH]
    url: Target,
    /// The same service in cleartext [default: port 80 if it responds and URL is on port 443]; default path: URL's
    #[arg(long, value_name = "URL")]
    plain: Option<Target>,
    /// Account the CPU of this process of the service and its descendants; may be repeated
    #[arg(long, value_name = "PID", value_parser = meter::process)]
    pid: Vec<Server>,
    /// Trusted CAs (PEM) [default: the system's]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// Skip certificate verification
    #[arg(short = 'k', long)]
    insecure: bool,
    /// Measured time per case (5 cases), over all rounds; warm-up adds a quarter
    #[arg(short, long, value_name = "TIME", default_value = "4s", value_parser = window)]
    duration: Duration,
    /// Concurrent connections
    #[arg(short, long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Write findings, probe and load results as JSON to a file; - prints only JSON on standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  weir cost https://example.org/                        # beside its port 80, if that answers
  weir cost https://127.0.0.1:8443/ --plain http://127.0.0.1:8080 -k --pid \"$(pidof -s nginx)\"
  weir cost https://api.internal/health --cacert ca.pem -c 1 -d 2s
  weir cost https://127.0.0.1:8443/ -k --json - | jq .findings

Exit codes:
  0  every requested case was measured
  1  it could not run
  2  a flag, or the file it names, is invalid
  3  a case was not measured: errors, wrong responses or too few; the other lines are printed";

pub(crate) fn run(args: CostArgs) -> Outcome {
    limits::raise_open_files().map_err(Failure::run)?;
    let CostArgs { url, plain, pid, cacert, insecure, duration, connections, json } = args;
    let outputs = [("--json", json.as_deref())];
    outputs::check(&outputs)?;
    let roots = roots(cacert.clone(), insecure);
    let question = Question { url, plain, roots, servers: pid, window: duration, connections };
    let stop = weir_load::stop_on_signals().map_err(Failure::run)?;
    let measure = |options: &_| weir_load::run(options, &stop, |_| ());
    let tell = |what: &str| drop(writeln!(io::stderr(), "weir: {what}"));
    let cost = cost(&question, measure, tell)
        .map_err(|error| Failure::blame(error.is_usage(), error, &[("--cacert", cacert.as_deref())]))?;
    outputs::write(cost.text(), outputs, [outputs::json(&cost)?])?;
    match &cost.invalid()[..] {
        [] => Ok(()),
        invalid => {
            Err(Failure::no_evidence(format!("not measured: {}", invalid.join("\nweir: not measured: "))))
        }
    }
}

/// Parses the time of a case, 250 ms to an hour. The rounds share it, and each must take longer than reading a
/// process's CPU times.
fn window(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(250)..=Duration::from_secs(3600);
    time(text).and_then(|time| match range.contains(&time) {
        true => Ok(time),
        false => Err("expected 250ms to 1h".to_owned()),
    })
}
