//! Machine-readable outputs of a subcommand: files, or one of them on standard output instead of the text.

use crate::outcome::{Failure, Outcome, say};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use weir_http::is_hidden;
use weir_lab::findings::evidence::Regressions;

/// Export formats.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct Exports {
    /// Write the values as CSV to a file; - prints only CSV on standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) csv: Option<PathBuf>,
    /// Write labels and tables as Markdown to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write one JUnit XML test case per finding to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub(crate) junit: Option<PathBuf>,
}

/// Exit codes of subcommands that run an experiment.
pub(crate) const RUN_CODES: &str = "

Exit codes:
  0  measured, whatever the outcome
  1  it could not run
  2  usage or configuration
  3  no evidence: a cell or a comparison has no valid run (--strict: any run was invalid), or
     --fail-on is undecided
  4  --fail-on found what it names";

/// Exit codes of subcommands that read results.
pub(crate) const RESULT_CODES: &str = "

Exit codes:
  0  done; with --fail-on: no regression found
  1  a file could not be read or written
  2  usage, or results that cannot be compared
  3  --fail-on is undecided: too few valid runs
  4  --fail-on found what it names";

/// The findings that fail a subcommand although it ran to completion.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Exit code")]
pub(crate) struct FailPolicy {
    /// Exit with 4 on this finding, and with 3 if too few valid runs leave it undecided
    #[arg(long, value_name = "WHAT")]
    pub(crate) fail_on: Option<FailOn>,
    /// Exit with 0 instead of 3 when there is no evidence
    #[arg(long)]
    pub(crate) allow_invalid: bool,
}

/// Findings that mean exit code 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// A metric got significantly worse
    Regression,
}

/// A flag and the file it names, if given.
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

/// Rejects two outputs on standard output, and files that cannot be written.
pub(crate) fn check(outputs: &[Output<'_>]) -> Outcome {
    let mut standard = outputs.iter().filter(|(_, file)| is_standard(*file));
    if let (Some((first, _)), Some((second, _))) = (standard.next(), standard.next()) {
        return Err(Failure::usage(format!(
            "{second}: invalid value `-`: expected a file, as {first} uses standard output"
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

/// Writes each output, and `text` to standard output unless an output uses it. One failure does not stop the others.
pub(crate) fn write<const N: usize>(
    text: String,
    outputs: [Output<'_>; N],
    contents: [String; N],
) -> Outcome {
    let is_taken = outputs.iter().any(|(_, file)| is_standard(*file));
    let mut written = if is_taken { Ok(()) } else { say(text) };
    for ((flag, file), text) in outputs.into_iter().zip(contents) {
        written = written.and(match file {
            None => Ok(()),
            Some(_) if is_standard(file) => say(text),
            Some(file) => fs::write(file, text).map_err(|error| unwritable(flag, file, &error)),
        });
    }
    written
}

/// Formats a result as JSON with a final newline. Escapes characters from a peer that a terminal would interpret.
pub(crate) fn json(result: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(result).map_err(Failure::run)?;
    // Outside strings, line feeds are the only control characters.
    let is_hidden = |char| is_hidden(char) && char != '\n';
    let escaped = text.split_inclusive(is_hidden).map(|part| match part.chars().next_back() {
        Some(last) if is_hidden(last) => {
            format!("{}\\u{:04x}", &part[..part.len() - last.len_utf8()], u32::from(last))
        }
        _ => part.to_owned(),
    });
    Ok(escaped.collect::<String>() + "\n")
}

impl FailPolicy {
    /// Fails with `--fail-on regression`: exit code 4 for a regression, 3 if it is undecided.
    pub(crate) fn judge(self, regressions: &Regressions) -> Outcome {
        let Regressions { shown, undecided } = regressions;
        match self.fail_on {
            Some(FailOn::Regression) if !shown.is_empty() => {
                Err(Failure::condition(format!("regression: {}", shown.join("\nweir: regression: "))))
            }
            Some(FailOn::Regression) => self.need_evidence(
                "it is undecided whether there is a regression",
                undecided,
                "more blocks may decide it: weir run --continue DIR --blocks N",
            ),
            None => Ok(()),
        }
    }

    /// Fails with exit code 3 if something was not measured; `missing` names it.
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
        Err(Failure::no_evidence(format!("{text}\n  next: {next}; --allow-invalid exits with 0")))
    }
}

/// The maximum number of listed lines; the report contains all.
const MOST_LINES: usize = 8;

fn unwritable(flag: &str, file: &Path, error: &io::Error) -> Failure {
    Failure::run(format!("{flag}: cannot write {}: {error}", file.display()))
}

fn is_standard(file: Option<&Path>) -> bool {
    file == Some(Path::new("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression test: a certificate's subject could reverse the direction of the text around it on the terminal.
    #[test]
    fn json_does_not_act_on_terminals() {
        let name = "CN=\u{202e}gro.elpmaxe\u{2069}\u{9b}2J\u{7f}\u{61c}, O=\u{fc}\n";
        let text = json(&[name]).ok().unwrap();
        assert_eq!(text, "[\n  \"CN=\\u202egro.elpmaxe\\u2069\\u009b2J\\u007f\\u061c, O=\u{fc}\\n\"\n]\n");
        assert_eq!(serde_json::from_str::<[String; 1]>(&text).unwrap(), [name]);
    }
}
