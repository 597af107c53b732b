//! `weir probe HOST`: what a TLS server offers and negotiates.

use crate::words::{blame, say};
use crate::{Failure, Outcome};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_load::time;
use weir_probe::{Options, ProbeError, Sni, text};
use weir_tls::Roots;
use weir_transport::Endpoint;

/// What a TLS server offers and negotiates: the check before a load run.
///
/// Makes some 60 to 200 connections, one after the other, and sends no request. A certificate that is not to
/// be believed is a finding, not an error.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ProbeArgs {
    /// HOST, HOST:PORT or https://HOST[:PORT]; an IPv6 address in brackets [port: 443]
    #[arg(value_name = "HOST", value_parser = weir_probe::server)]
    server: Endpoint,
    /// Authorities to believe, PEM [default: the system's]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// Do not check the certificate
    #[arg(short = 'k', long)]
    insecure: bool,
    /// Certificate chain to present, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// The name to send, and that the certificate must have; none sends no name [default: HOST]
    #[arg(long, value_name = "NAME|none")]
    sni: Option<String>,
    /// Tries for each kind of resumption
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    tries: u32,
    /// How long a connection may take
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = patience)]
    timeout: Duration,
    /// Write the result as JSON to a file; with - to standard output, and nothing else there
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  weir probe example.org
  weir probe https://127.0.0.1:8443 --cacert ca.pem --sni localhost
  weir probe 10.0.0.7:443 -k --tries 50             # do all workers resume what one of them gave?
  weir probe example.org --json - | jq '.versions[] | select(.offered) | .suites[].name'";

pub(crate) fn run(args: ProbeArgs) -> Outcome {
    if args.timeout.is_zero() {
        return Err(Failure::usage("--timeout: 0 leaves no time for an answer; allowed: more than that"));
    }
    let (json, options) = (args.json.clone(), options(args));
    let report = weir_probe::probe(&options).map_err(|error| {
        if !error.is_usage() {
            return Failure::run(error);
        }
        if let (ProbeError::Name { .. }, Sni::Name(_)) = (&error, &options.sni) {
            return Failure::usage(format!("--sni: {error}"));
        }
        let ca = match &options.roots {
            Roots::File(file) => Some(&**file),
            Roots::Native | Roots::DangerouslyNone => None,
        };
        let (cert, key) = options.identity.as_ref().map(|(cert, key)| (&**cert, &**key)).unzip();
        Failure::usage(blame(error, &[("--cacert", ca), ("--cert", cert), ("--key", key)]))
    })?;
    let result = serde_json::to_string_pretty(&report).map_err(Failure::run)?;
    match json.as_deref() {
        Some(file) if file == Path::new("-") => say(result + "\n"),
        Some(file) => {
            let failed = |error| Failure::run(format!("--json: cannot write {}: {error}", file.display()));
            fs::write(file, result + "\n").map_err(failed)?;
            say(text(&report))
        }
        None => say(text(&report)),
    }
}

fn options(args: ProbeArgs) -> Options {
    Options {
        server: args.server,
        sni: match args.sni {
            None => Sni::Host,
            Some(name) if name == "none" => Sni::None,
            Some(name) => Sni::Name(name),
        },
        roots: match args.cacert {
            Some(file) => Roots::File(file),
            None if args.insecure => Roots::DangerouslyNone,
            None => Roots::Native,
        },
        identity: args.cert.zip(args.key),
        tries: args.tries,
        timeout: args.timeout,
    }
}

fn patience(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(1)..=Duration::from_secs(3600);
    time(text).and_then(|time| match range.contains(&time) {
        true => Ok(time),
        false => Err("from 1ms to 1h".to_owned()),
    })
}
