//! `weir calibrate`: the load engine's ceiling on this machine.

use super::outputs;
use crate::outcome::{Failure, Outcome, say};
use clap::Args;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};
use weir_load::calibrate::{CalibrateError, Settings, Step, calibrate};
use weir_load::ceiling::{Ceilings, default_file};
use weir_load::time;
use weir_reactor::{cores, cores::Cores, limits};

/// Measure the load engine's maximum rate on this machine, for weir load to check against.
///
/// The engine runs against a null server, a separate process that sends a canned response to every request. A weir load
/// run above 80 % of the ceiling of the closest cell is reported as limited by load.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CalibrateArgs {
    /// Cores for the engine, one worker each [default: the last allowed core]
    #[arg(long, value_name = "LIST")]
    cores: Option<Cores>,
    /// Cores for the null server, one worker each [default: the first two the engine does not use]
    #[arg(long, value_name = "LIST")]
    server_cores: Option<Cores>,
    /// Length of each measured window, 3 per cell for 9 cells [default: 2s, with --quick 100ms]
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,
    /// Where to store the ceilings [default: weir/ceilings.json in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// With -, also print the ceilings as JSON, and nothing else, on standard output
    #[arg(long, value_name = "-", value_parser = ["-"])]
    json: Option<String>,
    /// Smoke test with tiny windows; stores nothing without --out
    #[arg(long)]
    quick: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir calibrate
  weir calibrate --cores 3 --server-cores 0-1 -d 5s
  weir calibrate --quick --json -";

/// The number of windows per cell: enough for a median, and their spread shows how reliable it is.
const REPEATS: u32 = 3;

pub(crate) fn run(args: CalibrateArgs) -> Outcome {
    limits::raise_open_files().map_err(Failure::run)?;
    let out = match (&args.out, args.quick) {
        (Some(file), _) => Some(file.clone()),
        (None, true) => None,
        (None, false) => {
            let none = "--out: expected a file, as neither XDG_STATE_HOME nor HOME is set";
            Some(default_file().ok_or_else(|| Failure::usage(none))?)
        }
    };
    let settings = settings(&args)?;
    let unwritable = |error| match &out {
        Some(file) => Failure::run(format!("--out: cannot write {}: {error}", file.display())),
        None => Failure::run(error),
    };
    // Fail now rather than after a minute of measuring.
    out.as_deref().map_or(Ok(()), check_writable).map_err(unwritable)?;
    let stop = weir_load::stop_on_signals().map_err(Failure::run)?;
    let terminal = io::stderr().is_terminal();
    let show = |text: &str| {
        if terminal {
            // A progress line that cannot be written does not affect the measurement.
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
        }
    };
    let ceilings = calibrate(&settings, &stop, |Step { cell, done, all }| {
        show(&format!("{} of {all}: {cell}", done + 1));
    });
    show("");
    let ceilings = ceilings.map_err(|error| match &error {
        CalibrateError::Load { error: load, .. } if load.is_usage() => Failure::usage(error),
        _ => Failure::run(error),
    })?;
    if ceilings.cells.is_empty() {
        return Err(Failure::run(format!("no cell has a ceiling:\n{}", table(&ceilings))));
    }
    let json = outputs::json(&ceilings)?;
    if let Some(file) = &out {
        write(file, &json).map_err(unwritable)?;
    }
    if args.json.is_some() {
        return say(json);
    }
    let kept = out.map_or("not stored (--quick)\n".into(), |file| format!("stored in {}\n", file.display()));
    say(table(&ceilings) + &kept)
}

fn settings(args: &CalibrateArgs) -> Result<Settings, Failure> {
    let allowed = cores::allowed().map_err(Failure::run)?;
    let engine = args.cores.clone().unwrap_or_else(|| Cores(allowed.0.last().copied().into_iter().collect()));
    let server = args.server_cores.clone().unwrap_or_else(|| {
        let free: Vec<usize> =
            allowed.0.iter().filter(|core| !engine.0.contains(core)).take(2).copied().collect();
        // On a single core, engine and null server share it, and the ceilings are extrapolated.
        if free.is_empty() { engine.clone() } else { Cores(free) }
    });
    for (flag, cores) in [("--cores", &engine), ("--server-cores", &server)] {
        cores.check().map_err(|error| Failure::usage(format!("{flag}: {error}")))?;
    }
    let usual = Duration::from_millis(if args.quick { 100 } else { 2000 });
    let window = args.duration.unwrap_or(usual);
    if !(Duration::from_millis(1)..=Duration::from_secs(3600)).contains(&window) {
        return Err(Failure::usage(format!("-d: invalid value `{window:?}`: expected 1ms to 1h")));
    }
    Ok(Settings {
        program: env::current_exe().map_err(Failure::run)?,
        cores: engine,
        server_cores: server,
        window,
        warmup: (window / 4).min(Duration::from_secs(1)),
        repeats: REPEATS,
    })
}

fn check_writable(file: &Path) -> io::Result<()> {
    if let Some(directory) = file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(directory)?;
    }
    let new = beside(file);
    fs::write(&new, "")?;
    fs::remove_file(new)
}

/// Writes a new file and renames it, so that no reader sees an incomplete one.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let new = beside(file);
    fs::write(&new, text)?;
    fs::rename(new, file)
}

fn beside(file: &Path) -> PathBuf {
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    new.into()
}

fn table(ceilings: &Ceilings) -> String {
    let cores = |cores: &[usize]| Cores(cores.to_vec()).to_string();
    let mut out = format!(
        "{}\nengine on core {}, null server on core {}; median of {} windows of {} s\n",
        ceilings.machine,
        cores(&ceilings.engine_cores),
        cores(&ceilings.server_cores),
        ceilings.repeats,
        ceilings.window_s
    );
    let _ = writeln!(
        out,
        "  {:<26} {:>10}  {:>19}  {:>10}  {:>10}  limit",
        "cell", "per worker", "smallest to largest", "engine CPU", "server CPU"
    );
    for cell in &ceilings.cells {
        let rate = &cell.per_worker;
        let extrapolated = if cell.extrapolated { ", extrapolated" } else { "" };
        let _ = writeln!(
            out,
            "  {:<26} {:>8.0}/s  {:>19}  {:>7.1} us  {:>7.1} us  {}{extrapolated}",
            cell.kind.cell,
            rate.median,
            format!("{:.0} to {:.0}", rate.min, rate.max),
            cell.cpu_us.median,
            cell.server_cpu_us.median,
            cell.limit
        );
    }
    for failed in &ceilings.failed {
        let _ = writeln!(out, "  {:<26} no ceiling: {}", failed.cell, failed.why);
    }
    out
}
