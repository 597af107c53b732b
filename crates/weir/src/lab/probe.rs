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
    let report = weir_probe::probe(&options).map_err(|error| match (&error, &options.sni) {
        (ProbeError::Name(_), Sni::Name(_)) => Failure::usage(format!("--sni: {error}")),
        _ => {
            let files = [("--cacert", &cacert), ("--cert", &cert), ("--key", &key)];
            let files = files.map(|(flag, file)| (flag, file.as_deref()));
            Failure::blame(error.is_usage(), error, &files)
        }
    })?;
    outputs::tell(text(&report), outputs, [outputs::json(&report)?])
}

fn patience(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(1)..=Duration::from_secs(3600);
    time(text).and_then(|time| match range.contains(&time) {
        true => Ok(time),
        false => Err("from 1ms to 1h".to_owned()),
    })
}
