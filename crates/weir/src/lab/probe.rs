//! `weir probe HOST`: what a TLS server offers and negotiates.

use super::outputs;
use crate::outcome::{Failure, Outcome};
use crate::parameters::roots;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use weir_load::time;
use weir_probe::{Options, ProbeError, Sni, text};
use weir_transport::Endpoint;

/// Show what a TLS server offers and negotiates, before you load it.
///
/// Opens about 60 to 200 connections, one at a time, and sends no request. An untrusted certificate is a
/// finding, not an error.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ProbeArgs {
    /// HOST, HOST:PORT or https://HOST[:PORT]; an IPv6 address in brackets [port: 443]
    #[arg(value_name = "HOST", value_parser = weir_probe::server)]
    server: Endpoint,
    /// Trusted CAs (PEM) [default: the system's]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// Skip certificate verification
    #[arg(short = 'k', long)]
    insecure: bool,
    /// Client certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Name to send as SNI and to verify; none sends no SNI [default: HOST]
    #[arg(long, value_name = "NAME|none")]
    sni: Option<String>,
    /// Attempts per kind of resumption
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    tries: u32,
    /// Timeout per connection
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = patience)]
    timeout: Duration,
    /// Write the result as JSON to a file; - prints only JSON on standard output
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
    let ProbeArgs { server, cacert, insecure, cert, key, sni, tries, timeout, json } = args;
    let outputs = [("--json", json.as_deref())];
    outputs::check(&outputs)?;
    let options = Options {
        server,
        sni: match sni {
            None => Sni::Host,
            Some(name) if name == "none" => Sni::None,
            Some(name) => Sni::Name(name),
        },
        roots: roots(cacert.clone(), insecure),
        identity: cert.clone().zip(key.clone()),
        tries,
        timeout,
    };
    let mut report = weir_probe::probe(&options).map_err(|error| match (&error, &options.sni) {
        (ProbeError::Name(_), Sni::Name(_)) => Failure::usage(format!("--sni: {error}")),
        _ => {
            let files = [("--cacert", &cacert), ("--cert", &cert), ("--key", &key)];
            let files = files.map(|(flag, file)| (flag, file.as_deref()));
            Failure::blame(error.is_usage(), error, &files)
        }
    })?;
    report.advice.extend(weir_advice::costs(&report));
    outputs::write(text(&report), outputs, [outputs::json(&report)?])
}

fn patience(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(1)..=Duration::from_secs(3600);
    time(text).and_then(|time| match range.contains(&time) {
        true => Ok(time),
        false => Err("expected 1ms to 1h".to_owned()),
    })
}
