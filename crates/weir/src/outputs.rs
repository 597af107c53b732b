//! What a subcommand writes beside its text: files, or one of them in the text's place on standard output.

use crate::words::say;
use crate::{Failure, Outcome};
use clap::{Args, ValueEnum};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

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

/// What makes a subcommand that ran to its end fail with exit code 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Something is shown to have become worse
    Regression,
}

/// Refuses two outputs on standard output, and files that cannot be written.
pub(crate) fn check(outputs: &[(&str, Option<&Path>)]) -> Outcome {
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

/// Writes the outputs, and `text` to standard output unless one of them takes that. What can be written is, whatever
/// cannot.
pub(crate) fn tell(text: String, outputs: &[(&str, Option<&Path>, String)]) -> Outcome {
    let is_taken = outputs.iter().any(|(_, file, _)| is_standard(*file));
    let mut told = if is_taken { Ok(()) } else { say(text) };
    for (flag, file, text) in outputs {
        told = told.and(match file {
            None => Ok(()),
            Some(_) if is_standard(*file) => say(text),
            Some(file) => fs::write(file, text).map_err(|error| unwritable(flag, file, &error)),
        });
    }
    told
}

/// Exit code 4 if there is a regression and that is to be a failure.
pub(crate) fn fail_on(regressions: &[String], fail_on: Option<FailOn>) -> Outcome {
    match fail_on {
        Some(FailOn::Regression) if !regressions.is_empty() => {
            Err(Failure::condition(format!("regression: {}", regressions.join("\nweir: regression: "))))
        }
        _ => Ok(()),
    }
}

fn unwritable(flag: &str, file: &Path, error: &io::Error) -> Failure {
    Failure::run(format!("{flag}: cannot write {}: {error}", file.display()))
}

fn is_standard(file: Option<&Path>) -> bool {
    file == Some(Path::new("-"))
}
