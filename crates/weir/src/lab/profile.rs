//! `weir profile`: where the CPU time of a process goes.

use super::outputs;
use crate::outcome::{Failure, Outcome};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_advice::Process;
use weir_lab::running::interrupt::Interrupt;
use weir_load::time;
use weir_profile::{Difference, Profile, ProfileError, Recording, Rules, Stacks, Unwind, flame};

/// Show where the CPU time of a process goes: key exchange, record encryption, the kernel's TCP, and so on.
///
/// Samples the process with `perf`, or reads a perf.data file or folded stacks. Put load on the process while it is
/// sampled; Ctrl-C ends sampling early.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ProfileArgs {
    /// Sample this process and its descendants; repeatable
    #[arg(long = "pid", value_name = "PID", required_unless_present = "data", conflicts_with = "data")]
    pids: Vec<u32>,
    /// Read samples from a perf.data file, or from folded stacks
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Compare with the samples in this file: perf.data or folded stacks
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Sample for this long
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// Samples per second of CPU time
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 499)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    frequency: u32,
    /// Unwind stacks by the modules' unwind tables, or by frame pointers [default: as suits the process]
    #[arg(long, value_name = "HOW")]
    call_graph: Option<CallGraph>,
    /// Write the shares as JSON to a file; - prints only JSON on standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write the samples as folded stacks, for --data, --against and other tools
    #[arg(long, value_name = "FILE|-")]
    folded: Option<PathBuf>,
    /// Write the flame graph as SVG; with --against, of the difference
    #[arg(long, value_name = "FILE|-")]
    svg: Option<PathBuf>,
    /// Write a report: shares and flame graph in one HTML file
    #[arg(long, value_name = "FILE|-")]
    html: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  weir profile --pid $(pidof -s nginx) -d 30s --html nginx.html
  weir profile --pid 4711 --folded before.txt       # then change a setting, and
  weir profile --pid 4712 --against before.txt      # see what it changed
  weir profile --data perf.data --json - | jq '.categories[] | {category, share: .self.share}'
Node.js names its functions if started with --perf-basic-prof; a JVM (17 or later) when asked by jcmd,
which is done for you.";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CallGraph {
    /// Accurate for all code with unwind tables, at some cost
    Dwarf,
    /// Cheap; accurate for Go, a JVM with -XX:+PreserveFramePointer, and programs built with frame pointers
    Fp,
}

/// The JSON of a profile.
#[derive(Serialize)]
struct Output<'a> {
    schema: u32,
    headline: &'a str,
    notes: &'a [String],
    #[serde(flatten)]
    profile: &'a Profile,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<&'a Difference>,
}

/// The stacks of a profile, with the texts that describe their source.
struct Sampled {
    title: String,
    headline: String,
    stacks: Stacks,
    notes: Vec<String>,
}

pub(crate) fn run(args: ProfileArgs) -> Outcome {
    let outputs = [
        ("--json", args.json.as_deref()),
        ("--folded", args.folded.as_deref()),
        ("--svg", args.svg.as_deref()),
        ("--html", args.html.as_deref()),
    ];
    outputs::check(&outputs)?;
    if args.data.is_none() {
        weir_profile::check().map_err(|error| blame(error, "--pid"))?;
    }
    let before = args.against.as_deref().map(|file| read(file, "--against")).transpose()?;
    let Sampled { title, headline, stacks, notes } = match &args.data {
        Some(file) => Sampled {
            title: file.display().to_string(),
            headline: file.display().to_string(),
            stacks: read(file, "--data")?,
            notes: Vec::new(),
        },
        None => sample(&args)?,
    };
    let rules = Rules::built_in();
    let profile = Profile::new(&stacks, &rules);
    let difference = before.as_ref().map(|before| {
        let before = Profile::new(before, &rules);
        Difference::new(&before, &profile, [100.0, 100.0])
    });
    let graph = match &before {
        Some(before) => flame::difference(&title, before, &stacks),
        None => flame::graph(&title, &stacks),
    };
    let graph = graph.map_err(Failure::run)?;
    let mut text = weir_profile::text(&headline, &profile);
    if let (Some(difference), Some(file)) = (&difference, &args.against) {
        let against = format!("Compared with {}, in percent of all samples:", file.display());
        text = format!("{text}\n{}", weir_profile::text_of_difference(&against, difference, "%"));
    }
    for note in &notes {
        text.push_str(&format!("\n{note}\n"));
    }
    let output = Output {
        schema: 1,
        headline: &headline,
        notes: &notes,
        profile: &profile,
        difference: difference.as_ref(),
    };
    let page = weir_profile::page(&title, &headline, &profile, &notes, &graph);
    outputs::write(text, outputs, [outputs::json(&output)?, stacks.folded(), graph, page])
}

fn sample(args: &ProfileArgs) -> Result<Sampled, Failure> {
    let interrupt = Interrupt::on_signals()?;
    let recording = Recording {
        pids: args.pids.clone(),
        duration: args.duration,
        frequency: args.frequency,
        unwind: args.call_graph.map(|how| match how {
            CallGraph::Dwarf => Unwind::Dwarf,
            CallGraph::Fp => Unwind::FramePointers,
        }),
    };
    let names: Vec<String> = args.pids.iter().map(|pid| Process { pid: *pid }.name()).collect();
    let title = names.join(", ");
    let _ = writeln!(io::stderr(), "weir: sampling {title} for {} s", args.duration.as_secs_f64());
    let recorded =
        weir_profile::record(&recording, &|| interrupt.is_set()).map_err(|error| blame(error, "--pid"))?;
    let cores = recorded.cpu_seconds / recorded.seconds;
    let headline = format!("{title}: {cores:.2} cores for {:.1} s", recorded.seconds);
    Ok(Sampled { title, headline, stacks: recorded.stacks, notes: recorded.notes })
}

fn read(file: &Path, flag: &str) -> Result<Stacks, Failure> {
    weir_profile::read(file).map_err(|error| blame(error, flag))
}

fn blame(error: ProfileError, flag: &str) -> Failure {
    match error {
        ProfileError::NoSamples { .. } => Failure::no_evidence(error),
        error if error.is_usage() => Failure::usage(format!("{flag}: {error}")),
        error => Failure::run(error),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(100)..=Duration::from_secs(3600);
    time(text).and_then(|time| match range.contains(&time) {
        true => Ok(time),
        false => Err("expected 100ms to 1h".to_owned()),
    })
}
