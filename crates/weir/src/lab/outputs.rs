//! What a subcommand writes beside its text: files, or one of them in the text's place on standard output.

use crate::outcome::{Failure, Outcome, say};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use weir_lab::evidence::Regressions;

/// The forms in which results are written beside the text.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct Exports {
    /// Write the values as CSV to a file, or with - to standard output and nothing else there
    #[arg(long, value_name = "FILE|-")]
    pub(crate) csv: Option<PathBuf>,
    /// Write labels and tables as Markdown to a file, or with - to standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write a test case for each finding as JUnit's XML to a file, or with - to standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) junit: Option<PathBuf>,
}

/// The exit codes of a subcommand that runs an experiment, for the end of its `--help`.
pub(crate) const RUN_CODES: &str = "

Exit codes:
  0  what was asked was measured, whatever it came to
  1  it could not run
  2  usage or configuration
  3  no evidence: a cell or a comparison has no valid run (--strict: any run was invalid), or
     --fail-on is not decided
  4  what --fail-on names was found";

/// The exit codes of a subcommand that reads results.
pub(crate) const RESULT_CODES: &str = "

Exit codes:
  0  it was told; with --fail-on: nothing was shown to have become worse
  1  it could not be read or written
  2  usage, or results that do not belong together
  3  --fail-on is not decided: too few valid runs
  4  what --fail-on names was found";

/// What a subcommand that ran to its end makes of what it found.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Exit code")]
pub(crate) struct Gate {
    /// End with 4 when something is shown to be for the worse, and with 3 when too few valid runs leave that open
    #[arg(long, value_name = "WHAT")]
    pub(crate) fail_on: Option<FailOn>,
    /// End with 0 where there is no evidence for what was asked
    #[arg(long)]
    pub(crate) allow_invalid: bool,
}

/// What makes a subcommand that ran to its end fail with exit code 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Something is shown to have become worse
    Regression,
}

/// A flag, and the file that it names if it is given.
pub(crate) type Output<'a> = (&'static str, Option<&'a Path>);

impl Exports {
    pub(crate) fn outputs(&self) -> [Output<'_>; 3] {
        [
            ("--csv", self.csv.as_deref()),
            ("--markdown", self.markdown.as_deref()),
            ("--junit", self.junit.as_deref()),
        ]
    }
}

/// Refuses two outputs on standard output, and files that cannot be written.
pub(crate) fn check(outputs: &[Output<'_>]) -> Outcome {
    let mut standard = outputs.iter().filter(|(_, file)| is_standard(*file));
    if let (Some((first, _)), Some((second, _))) = (standard.next(), standard.next()) {
        return Err(Failure::usage(format!(
            "{second}: `-` cannot be used beside {first} -; allowed: a file"
        )));
    }
    for (flag, file) in outputs {
        if let Some(file) = file.filter(|file| !is_standard(Some(file))) {
            let failed = |error| unwritable(flag, file, &error);
            OpenOptions::new().append(true).create(true).open(file).map_err(failed)?;
        }
    }
    Ok(())
}

/// Writes to each output what belongs to it, and `text` to standard output unless one of them takes that. What can be
/// written is, whatever cannot.
pub(crate) fn tell<const N: usize>(text: String, outputs: [Output<'_>; N], contents: [String; N]) -> Outcome {
    let is_taken = outputs.iter().any(|(_, file)| is_standard(*file));
    let mut told = if is_taken { Ok(()) } else { say(text) };
    for ((flag, file), text) in outputs.into_iter().zip(contents) {
        told = told.and(match file {
            None => Ok(()),
            Some(_) if is_standard(file) => say(text),
            Some(file) => fs::write(file, text).map_err(|error| unwritable(flag, file, &error)),
        });
    }
    told
}

/// A result as JSON, a line of its own at its end.
pub(crate) fn json(result: &impl Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(result).map_err(Failure::run)? + "\n")
}

impl Gate {
    /// Exit code 4 if there is a regression and that is to be a failure, 3 if it cannot be told whether there is one.
    pub(crate) fn judge(self, regressions: &Regressions) -> Outcome {
        let Regressions { shown, undecided } = regressions;
        match self.fail_on {
            Some(FailOn::Regression) if !shown.is_empty() => {
                Err(Failure::condition(format!("regression: {}", shown.join("\nweir: regression: "))))
            }
            Some(FailOn::Regression) => self.need_evidence(
                "whether there is a regression is not decided",
                undecided,
                "more blocks may decide it: weir run --continue DIR --blocks N",
            ),
            None => Ok(()),
        }
    }

    /// Exit code 3 if a part of what was asked was not measured: these lines say which.
    pub(crate) fn need_evidence(self, what: &str, missing: &[String], next: &str) -> Outcome {
        if missing.is_empty() || self.allow_invalid {
            return Ok(());
        }
        let mut text = format!("no evidence: {what}");
        for line in missing.iter().take(MOST_LINES) {
            text.push_str(&format!("\n  {line}"));
        }
        if missing.len() > MOST_LINES {
            text.push_str(&format!("\n  and {} more", missing.len() - MOST_LINES));
        }
        Err(Failure::no_evidence(format!("{text}\n  next: {next}; --allow-invalid ends with 0")))
    }
}

/// The report has the rest.
const MOST_LINES: usize = 8;

fn unwritable(flag: &str, file: &Path, error: &io::Error) -> Failure {
    Failure::run(format!("{flag}: cannot write {}: {error}", file.display()))
}

fn is_standard(file: Option<&Path>) -> bool {
    file == Some(Path::new("-"))
}
