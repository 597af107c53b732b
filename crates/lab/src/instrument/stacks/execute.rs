//! Executes runners: a fresh process each, on given cores, with its scenario on its standard input.

use super::engine::{Description, Engine};
use super::key;
use super::output::Seen;
use super::together::{Ended, Staged, to_their_ends};
use super::values::{Described, Ran};
use crate::base::error::LabError;
use crate::experiment::Level;
use crate::planning::cell::{Cell, Levels};
use crate::running::guard::Guard;
use crate::running::interrupt::Interrupt;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use weir_profile::Unwind;
use weir_tls::issue::{Authority, KeyKind};

/// The timeout beyond the window, for the start, a warm-up with the slowest keys, and the output.
const GRACE: Duration = Duration::from_secs(60);

/// Starts runners.
#[derive(Debug)]
pub struct ProcessRunner {
    pub(super) engines: BTreeMap<String, Engine>,
    /// The directory of the results.
    pub(super) directory: PathBuf,
    pub(super) allowed: Vec<usize>,
    pub(super) interrupt: Interrupt,
    pub(super) guard: Guard,
}

impl ProcessRunner {
    /// Runs a runner with these scenario lines, under a tool if it has words.
    pub(super) fn made(&mut self, cell: &Cell, lines: &str, tool: &Tool) -> Result<Ran, LabError> {
        let ran = self.made_together(&[(cell, lines.to_owned())], tool)?.pop();
        ran.ok_or_else(|| LabError::Nothing("no runner was started".into()))
    }

    /// Runs several at the same time.
    pub(super) fn made_together(
        &mut self,
        runs: &[(&Cell, String)],
        tool: &Tool,
    ) -> Result<Vec<Ran>, LabError> {
        let work = self.directory.join("work");
        let mut staged = Vec::new();
        for (index, (cell, lines)) in runs.iter().enumerate() {
            let words = work.join(index.to_string());
            fs::create_dir_all(&words).map_err(LabError::file(&words, "cannot create"))?;
            let ran = self.staged(cell, lines, tool)?;
            // In front of the program, so that the stored command is complete.
            let env: &[String] = if ran.environment.is_empty() { &[] } else { &["env".to_owned()] };
            let command = [env, &ran.environment, &ran.command].concat();
            let threads = cell.levels.number("threads").unwrap_or(1) as usize;
            let cores = &self.allowed[..threads.clamp(1, self.allowed.len())];
            let deadline = Duration::from_millis(cell.levels.number("window_ms").unwrap_or(0)) + GRACE;
            staged.push(Staged { ran, words, command, cores, deadline });
        }
        let began = Instant::now();
        let ended = to_their_ends(&staged, &self.interrupt, &self.guard);
        let elapsed_ms = began.elapsed().as_millis() as u64;
        let mut all: Vec<Ran> = staged.into_iter().map(|staged| staged.ran).collect();
        match ended {
            Ok(ended) => {
                for (ran, ended) in all.iter_mut().zip(ended) {
                    ran.failure = parsed(ran, ended).err();
                }
            }
            Err(why) => all.iter_mut().for_each(|ran| ran.failure = Some(why.clone())),
        }
        all.iter_mut().for_each(|ran| ran.elapsed_ms = elapsed_ms);
        let _ = fs::remove_dir_all(&work);
        if self.interrupt.is_set() {
            return Err(LabError::Interrupted { directory: self.directory.clone() });
        }
        Ok(all)
    }

    /// The tool that samples a runner from start to end.
    pub(super) fn sampler(&self, cell: &Cell, data: &Path) -> Result<Tool, LabError> {
        let Description { language, profiled, .. } = &self.engine(cell)?.description;
        let words = weir_profile::sampler(data, Unwind::of_language(language));
        Ok(Tool { words, arguments: profiled.clone() })
    }

    fn engine(&self, cell: &Cell) -> Result<&Engine, LabError> {
        let engine = self.engines.get(&cell.subject);
        engine.ok_or_else(|| LabError::Nothing(format!("engine {} is no longer present", cell.subject)))
    }

    /// The parts of a run that are known before it starts.
    fn staged(&self, cell: &Cell, lines: &str, tool: &Tool) -> Result<Ran, LabError> {
        let engine = self.engine(cell)?;
        let scenario = lines.to_owned() + &self.files(&cell.levels)?;
        let mask = key::mask(cell.levels.word("mask"));
        let environment = mask.into_iter().map(|mask| mask.variable.to_owned()).collect();
        let target = engine.target(&engine.variant(&cell.levels));
        let mut run = engine.words(&engine.description.run, &target);
        run.splice(1..1, tool.arguments.iter().cloned());
        let command = [tool.words.as_slice(), &run].concat();
        let Description { version, crypto, .. } = engine.description.clone();
        let described = Some(Described { version, crypto });
        Ok(Ran {
            folder: engine.directory.clone(),
            command,
            environment,
            scenario,
            described,
            ..Ran::default()
        })
    }

    /// The scenario lines that name files: sessions have a certificate chain, signature operations only a key.
    fn files(&self, scenario: &Levels) -> Result<String, LabError> {
        let operation = scenario.word("operation");
        let signed = operation.strip_suffix("-sign").or_else(|| operation.strip_suffix("-verify"));
        let certificate = scenario.get("certificate").map(Level::as_str);
        let Some(kind) = certificate.or(signed) else { return Ok(String::new()) };
        let files = self.directory.join("tls").join(kind);
        issue(kind, &files)?;
        let line = |(key, name): (&str, &str)| format!("{key} {}\n", files.join(name).display());
        let lines = [("chain", "cert.pem"), ("ca", "ca.pem"), ("key", "key.pem")];
        let needed = if certificate.is_some() { &lines[..] } else { &lines[2..] };
        Ok(needed.iter().copied().map(line).collect())
    }
}

/// A program that runs a runner.
#[derive(Clone, Debug, Default)]
pub(super) struct Tool {
    /// The words before the runner's command.
    pub(super) words: Vec<String>,
    /// Arguments after the runner's program.
    pub(super) arguments: Vec<String>,
}

/// Parses the output of a runner. An error is the reason why the run is invalid.
fn parsed(ran: &mut Ran, ended: Ended) -> Result<(), String> {
    let Ended { process, exit, taken, cut_short } = ended;
    ran.foreign_cpu = taken.map(|taken| taken.foreign);
    ran.stolen_cpu = taken.map(|taken| taken.stolen);
    ran.exit = exit.status.clone();
    ran.stderr = process.last_words();
    let output = process.output().map_err(|error| format!("cannot read its output: {error}"))?;
    if let Some(why) = cut_short {
        return Err(why);
    }
    ran.seen = Seen::read(&output).map_err(|why| format!("invalid output: {why}"))?;
    // Its own error messages are more precise than its exit status.
    if exit.code == Some(0) || !ran.seen.errors.is_empty() {
        return Ok(());
    }
    let last = ran.stderr.lines().last().unwrap_or_default();
    Err(format!("runner: {}: {last}", ran.exit))
}

/// Issues a certificate with this type of key, unless the directory has one: a chain with an intermediate CA, as is
/// usual for servers.
fn issue(kind: &str, directory: &Path) -> Result<(), LabError> {
    if directory.join("ca.pem").is_file() {
        return Ok(());
    }
    fs::create_dir_all(directory).map_err(LabError::file(directory, "cannot create"))?;
    let kind = match kind {
        "rsa-2048" => KeyKind::Rsa2048,
        "ecdsa-p384" => KeyKind::EcdsaP384,
        _ => KeyKind::EcdsaP256,
    };
    let written = Authority::with_keys(kind)
        .and_then(|root| root.intermediate()?.issue(&["localhost"], kind)?.write_to(directory));
    written.map(drop).map_err(|error| LabError::Certificate(error.to_string()))
}
