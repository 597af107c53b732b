//! `weir load`.

use crate::words::{blame, say};
use crate::{Failure, Outcome};
use clap::Args;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use weir_load::{LoadArgs, LoadError, Phase, Progress, table};
use weir_reactor::limits;

/// The load engine: sends requests, checks every answer and handshake, and accounts the cost of both sides.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    load: LoadArgs,
    /// Write the result as JSON to a file; with - to standard output, and nothing else there
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    json: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  weir load http://127.0.0.1:8080/bytes/1000
  weir load https://127.0.0.1:8443/ -c 256 -d 30s --cacert ca.pem --tls 1.3 --pid $(pidof -s nginx)
  weir load http://127.0.0.1:8080/ --rate 5000       open loop, latency from the planned instant
  weir load https://127.0.0.1:8443/ --new-connection --group x25519 -k     full handshakes
  weir load http://127.0.0.1:8080/echo --data 64KiB -H 'X-Run: 1' --json result.json";

pub(crate) fn run(arguments: Arguments) -> Outcome {
    limits::raise_open_files().map_err(Failure::run)?;
    let Arguments { load, json } = arguments;
    let files = load.files();
    let files: Vec<(&str, Option<&Path>)> =
        files.iter().map(|(flag, file)| (*flag, Some(file.as_path()))).collect();
    let options = load.options().map_err(Failure::usage)?;
    let stop = weir_load::stop_on_signals().map_err(Failure::run)?;
    let mut line = ProgressLine::new();
    let result = weir_load::run(&options, &stop, |progress| line.show(progress));
    line.clear();
    let result = result.map_err(|error: LoadError| match error.is_usage() {
        true => Failure::usage(blame(error, &files)),
        false => Failure::run(error),
    })?;
    let text = serde_json::to_string_pretty(&result).map_err(Failure::run)?;
    match json.as_deref() {
        Some(file) if file == Path::new("-") => say(text + "\n")?,
        Some(file) => {
            let failed = |error| Failure::run(format!("--json: cannot write {}: {error}", file.display()));
            fs::write(file, text + "\n").map_err(failed)?;
            say(table(&result))?;
        }
        None => say(table(&result))?,
    }
    if result.requests == 0 {
        let counted: Vec<String> =
            result.errors.iter().map(|(class, count)| format!("{count} {class}")).collect();
        let counted = if counted.is_empty() { "no errors either".into() } else { counted.join(", ") };
        return Err(Failure::run(format!("nothing was answered rightly within the window ({counted})")));
    }
    Ok(())
}

/// A line on standard error that is written over, if that is a terminal.
struct ProgressLine {
    shown: bool,
    terminal: bool,
}

impl ProgressLine {
    fn new() -> Self {
        Self { shown: false, terminal: io::stderr().is_terminal() }
    }

    fn show(&mut self, progress: &Progress) {
        if !self.terminal {
            return;
        }
        let left = progress.left.as_secs_f64().ceil();
        let what = match progress.phase {
            Phase::Opening => "opening connections".to_string(),
            Phase::WarmUp => format!("warm-up, {left} s left"),
            Phase::Settle => format!("settling, {left} s left"),
            Phase::Window => format!("measuring, {left} s left"),
            Phase::Drain => "waiting for the last answers".to_string(),
        };
        // Whether the line can be written is of no matter to the measurement.
        let _ = write!(io::stderr(), "\r\x1b[K{what}, {} answers", progress.answered);
        self.shown = true;
    }

    fn clear(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
