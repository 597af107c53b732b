//! `weir load`: generates load, and prints the result.

use super::outputs;
use crate::outcome::{Failure, Outcome};
use clap::Args;
use std::path::{Path, PathBuf};
use weir_load::live::View;
use weir_load::{Assertion, LoadArgs, LoadError, check_all, csv, table};
use weir_reactor::limits;

/// Generate load, check every response and handshake, and account CPU on both sides.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    load: LoadArgs,
    /// Write the result as JSON to a file; - prints only JSON on standard output
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Write one CSV row per second of the window to a file, or - for standard output
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    csv: Option<PathBuf>,
    /// Exit with 4 unless this holds, such as 'p99_us<5000'; may be repeated
    #[arg(long = "assert", value_name = "CONDITION", value_delimiter = ',', help_heading = "Output")]
    assertions: Vec<Assertion>,
    /// Do not exit with 3 for an invalid result
    #[arg(long, help_heading = "Output")]
    allow_invalid: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir load http://127.0.0.1:8080/bytes/1000
  weir load https://127.0.0.1:8443/ -c 256 -d 30s --cacert ca.pem --pid \"$(pidof -s nginx)\"
  weir load http://127.0.0.1:8080/ --rate 5000       # open loop, latency from the planned instant
  weir load https://127.0.0.1:8443/ --new-connection --group x25519 -k     # full handshakes
  weir load https://127.0.0.1:8443/ --http 2 -c 8 -m 16 -k                 # HTTP/2, 8 x 16 streams
  weir load https://127.0.0.1:8443/ --http 1.1=3,2=1 -c 64 -m 16 -k        # 48 HTTP/1.1, 16 HTTP/2
  weir load http://127.0.0.1:8080/echo --data 64KiB -H 'X-Run: 1' --json result.json

Exit codes:
  0  measured
  1  it could not run: connection refused, certificate not trusted, a file cannot be written
  2  a flag, or the file it names, is invalid
  3  the result is invalid: errors, failed resumption, a missed rate; the reasons are in the result
     (validity) and on standard error
  4  an --assert failed; an invalid result exits with 3 instead";

pub(crate) fn run(arguments: Arguments) -> Outcome {
    limits::raise_open_files().map_err(Failure::run)?;
    let Arguments { load, json, csv, assertions, allow_invalid } = arguments;
    // Fail before the run, not after it.
    let outputs = [("--json", json.as_deref()), ("--csv", csv.as_deref())];
    outputs::check(&outputs)?;
    let files = load.files();
    let files: Vec<(&str, Option<&Path>)> =
        files.iter().map(|(flag, file)| (*flag, Some(file.as_path()))).collect();
    let options = load.options().map_err(Failure::usage)?;
    let stop = weir_load::stop_on_signals().map_err(Failure::run)?;
    let mut view = View::new();
    let result = weir_load::run(&options, &stop, |progress| view.show(progress));
    drop(view);
    let result = result.map_err(|error: LoadError| Failure::blame(error.is_usage(), error, &files))?;
    outputs::write(table(&result), outputs, [outputs::json(&result)?, csv::seconds(&result)])?;
    let broken: Vec<String> = check_all(&assertions, &result).iter().map(ToString::to_string).collect();
    let missing = result.invalid().map(|reason| format!("the result is invalid: {reason}")).or_else(|| {
        let (measured, asked) = (result.window_s, options.phases.window.as_secs_f64());
        result.partial.then(|| format!("a signal ended the window after {measured:.1} of {asked:.1} s"))
    });
    match missing.filter(|_| !allow_invalid) {
        Some(missing) => {
            let said = [vec![missing], broken].concat();
            Err(Failure::no_evidence(said.join("\nweir: ")))
        }
        None if broken.is_empty() => Ok(()),
        None => Err(Failure::condition(broken.join("\nweir: "))),
    }
}
