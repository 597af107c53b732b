//! `weir advise`: recommended changes to a TLS service, with the evidence.

mod measured;
mod prove;

use super::outputs;
use super::run::chosen;
use crate::outcome::{Failure, Outcome};
use crate::parameters::roots;
use clap::Args;
use measured::Advised;
use prove::Proof;
use serde::Serialize;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_advice::{Advice, Finding, Product, Question, advise};
use weir_lab::findings::results::Results;
use weir_lab::instrument::gateway::Gateway;
use weir_lab::{LabError, RunOptions};
use weir_load::{Target, time};
use weir_reactor::limits;
use weir_report::model;
use weir_report::text::flow;

/// Advise on a TLS service: ranked findings with their numbers, or that no change is worthwhile.
///
/// Give at least one of URL, --pid and --config; each adds facts. Or give the result directory of `weir run --profile`:
/// each target is judged by its measurements, and report.html shows the advice. Or give the name of a target (`weir
/// targets`), which is measured and profiled first. With a URL, weir probes the server, sends requests on single
/// connections, waits up to 6.5 s for an idle connection to close, and runs two short loads of 8 connections: one with
/// keep-alive, one with a new connection per request. With --pid, it inspects the process's sockets, threads and
/// libraries, and samples its CPU with `perf`: under the process's existing load if there is any, else under the second
/// of those loads.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AdviseArgs {
    /// The service, http[s]://HOST[:PORT][/PATH], the directory of a result, or the name of a target
    #[arg(value_name = "URL|DIR|TARGET", value_parser = subject)]
    subject: Option<Subject>,
    /// Inspect this process of the service and its descendants
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Read the service's configuration: nginx.conf or haproxy.cfg, with included files
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name changes in the terms of weir, nginx, haproxy, node, java, go or generic [default: detected]
    #[arg(long, value_name = "NAME")]
    product: Option<Product>,
    /// Trusted CAs (PEM) [default: the system's]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// Skip certificate verification
    #[arg(short = 'k', long)]
    insecure: bool,
    /// Measured time of each load and of the profile
    #[arg(short, long, value_name = "TIME", default_value = "2s", value_parser = window)]
    duration: Duration,
    /// With a target: override a key of experiments/advise.toml, such as settings.keep_alive=own; may be repeated
    #[arg(long, value_name = "K=V")]
    set: Vec<String>,
    /// With a result or a target: run an experiment for each finding that a setting of its target can fix, and compare
    /// measured with predicted savings
    #[arg(long)]
    prove: bool,
    /// Blocks of each of these experiments; a verdict needs ten
    #[arg(long, value_name = "N", default_value_t = 12, requires = "prove")]
    #[arg(value_parser = clap::value_parser!(u32).range(5..=1000))]
    blocks: u32,
    /// Write findings, facts, probe and profile as JSON to a file; - prints only JSON on standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  weir advise https://127.0.0.1:8443/ -k --pid \"$(pidof -s nginx)\"
  weir advise https://api.internal/health --cacert ca.pem --product go
  weir advise http://127.0.0.1:8080/ --pid \"$(pidof -s node)\"   # its upstream has TLS
  weir advise --config nginx.conf                   # without sending anything
  weir advise out/outbound-20260101-120000 --prove  # each finding becomes an experiment
  weir advise nginx-current                         # a target, measured first
  weir advise https://127.0.0.1:8443/ -k --json - | jq '.findings[] | {id, saw, change}'

Exit codes:
  0  there is advice; that nothing is worth changing is advice too
  1  it could not run
  2  a flag, or the file it names, is invalid
  3  no evidence: no run of the target, or of any target of the result, is valid";

/// The experiment that measures a target.
const EXPERIMENT: &str = "advise";

/// The subject of the advice.
#[derive(Clone, Debug)]
enum Subject {
    Service(Target),
    Result(PathBuf),
    Target(String),
}

/// The JSON of advice on a result.
#[derive(Serialize)]
struct OfResult<'a> {
    schema: u32,
    targets: Vec<&'a Advice>,
    proofs: &'a [Proof],
}

pub(crate) fn run(args: AdviseArgs) -> Outcome {
    limits::raise_open_files().map_err(Failure::run)?;
    match args.subject.clone() {
        Some(Subject::Result(directory)) => of_result(&directory, &args),
        Some(Subject::Target(name)) => of_target(&name, &args),
        Some(Subject::Service(url)) => of_service(Some(url), args),
        None => of_service(None, args),
    }
}

/// Measures a target with the built-in experiment, and advises on the result.
fn of_target(name: &str, args: &AdviseArgs) -> Outcome {
    check_stored(args)?;
    let options = RunOptions { file: EXPERIMENT.into(), profile: true, ..RunOptions::default() };
    let list = format!("[{name:?}]");
    let own = [("target", list.clone()), ("baseline", list), ("aa", format!("{name:?}"))];
    let own = own.map(|(key, value)| (key.to_owned(), value));
    let options = chosen(options, &[], &args.set)?;
    let set = own.into_iter().chain(options.set.iter().cloned()).collect();
    let measured = weir_lab::run(&RunOptions { set, ..options })?;
    advise_on(&measured.directory, args)
}

fn of_result(directory: &Path, args: &AdviseArgs) -> Outcome {
    check_stored(args)?;
    if !args.set.is_empty() {
        return Err(Failure::usage("--set: a result is as it was measured; expected the name of a target"));
    }
    advise_on(directory, args)
}

fn check_stored(args: &AdviseArgs) -> Outcome {
    if args.pid.is_some() || args.config.is_some() {
        return Err(Failure::usage(
            "--pid and --config are of a running service; expected a URL, not a result or a target",
        ));
    }
    outputs::check(&[("--json", args.json.as_deref())])
}

fn advise_on(directory: &Path, args: &AdviseArgs) -> Outcome {
    let outputs = [("--json", args.json.as_deref())];
    let results = measured::read(directory)?;
    let (advised, unjudged) = measured::advise(&results);
    if advised.is_empty() {
        return Err(Failure::no_evidence(unjudged.join("; ")));
    }
    let proofs = if args.prove { prove::prove(&results, &advised, args.blocks)? } else { Vec::new() };
    let kept = keep(&results, &advised, &proofs);
    let mut text: String = advised.iter().map(|one| one.advice.text() + "\n").collect();
    for line in &unjudged {
        flow(&mut text, line, 0, 2);
    }
    for proof in &proofs {
        flow(&mut text, &proof.words(), 0, 2);
    }
    if let Some(accuracy) = args.prove.then(prove::accuracy_text).flatten() {
        flow(&mut text, &accuracy, 0, 2);
    }
    text += &match kept {
        Ok(()) => format!("Report: {}\n", directory.join("report.html").display()),
        // The advice is useful even if the report cannot show it.
        Err(error) => format!("The report does not show it: {error}.\n"),
    };
    let targets = advised.iter().map(|one| &one.advice).collect();
    outputs::write(text, outputs, [outputs::json(&OfResult { schema: 1, targets, proofs: &proofs })?])
}

/// Adds the advice to the result's report. Findings without a new proof keep their earlier one.
fn keep(results: &Results<Gateway>, advised: &[Advised], proofs: &[Proof]) -> Result<(), LabError> {
    let before = results.advised.iter().flat_map(|advised| &advised.findings);
    let all = advised.iter().flat_map(|one| one.advice.findings.iter().map(move |finding| (one, finding)));
    let finding = |(one, finding): (&Advised, &Finding)| {
        let subject = one.cell.to_string();
        let now = proofs.iter().find(|proof| proof.is_of(&subject, &finding.id)).map(Proof::shown);
        let earlier = before.clone().find(|earlier| earlier.subject == subject && earlier.rule == finding.id);
        model::Advice {
            rule: finding.id.clone(),
            saw: finding.saw.clone(),
            change: finding.change.clone(),
            predicted: finding.gain.map(|gain| [gain.low, gain.high]),
            proof: now.or_else(|| earlier.and_then(|earlier| earlier.proof.clone())),
            subject,
        }
    };
    let findings = all.map(finding).collect();
    results.keep_advice(&model::Advised { schema: 1, findings, accuracy: prove::accuracy() })?;
    weir_lab::report(&results.directory).map(drop)
}

fn of_service(url: Option<Target>, args: AdviseArgs) -> Outcome {
    let AdviseArgs { pid, config, product, cacert, insecure, duration, json, prove, set, .. } = args;
    if prove {
        return Err(Failure::usage(
            "--prove: expected a target or the directory of a result: these have settings to change",
        ));
    }
    if !set.is_empty() {
        return Err(Failure::usage("--set: expected the name of a target"));
    }
    let outputs = [("--json", json.as_deref())];
    outputs::check(&outputs)?;
    let roots = roots(cacert.clone(), insecure);
    let question = Question { url, pid, config, product, roots, window: duration };
    let stop = weir_load::stop_on_signals().map_err(Failure::run)?;
    let measure = |options: &_| weir_load::run(options, &stop, |_| ());
    let tell = |what: &str| drop(writeln!(io::stderr(), "weir: {what}"));
    let advice = advise(&question, measure, tell)
        .map_err(|error| Failure::blame(error.is_usage(), error, &[("--cacert", cacert.as_deref())]))?;
    outputs::write(advice.text(), outputs, [outputs::json(&advice)?])
}

/// Parses the subject: a directory is a result, a plain name a target; anything else must be a URL.
fn subject(text: &str) -> Result<Subject, String> {
    let is_name = !text.is_empty() && !text.contains(['/', ':']);
    match (Path::new(text).is_dir(), is_name) {
        (true, _) => Ok(Subject::Result(text.into())),
        (false, true) => Ok(Subject::Target(text.to_owned())),
        (false, false) => text.parse().map(Subject::Service),
    }
}

/// Parses a window's length, 100 ms to an hour: a shorter window yields no median and few samples.
fn window(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(100)..=Duration::from_secs(3600);
    time(text).and_then(|time| match range.contains(&time) {
        true => Ok(time),
        false => Err("expected 100ms to 1h".to_owned()),
    })
}
