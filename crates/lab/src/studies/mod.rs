//! The studies that the project started from: each of their statements, its claim, and what was measured about it.

mod record;
mod text;

pub use record::{Judged, Measurement};
pub use text::{markdown, terminal};

use crate::base::error::{ConfigError, LabError};
use crate::entry::dispatch::{of_experiment, of_instrument, of_result};
use crate::experiment::options::RunOptions;
use crate::experiment::{Claim, Grammar, Levels, reader};
use crate::findings::claims::{ClaimVerdict, Finding};
use crate::found;
use record::Record;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

/// A published study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Study {
    /// The `source` of its claims.
    pub source: &'static str,
    /// Its subject.
    pub title: &'static str,
    /// The original's address.
    pub original: &'static str,
}

/// All of them.
pub const STUDIES: [Study; 4] = [
    Study {
        source: "S1",
        title: "TLS 1.3 of rustls at high concurrency",
        original: "https://github.com/rustls/rustls/issues/1751",
    },
    Study {
        source: "S2",
        title: "full handshakes of a rustls server, and AVX-512",
        original: "https://github.com/rustls/rustls/issues/1830",
    },
    Study {
        source: "S3",
        title: "HTTP pass-through of two Ballerina versions",
        original: "https://github.com/ballerina-platform/ballerina-lang/issues/44149",
    },
    Study {
        source: "S4",
        title: "outbound TLS in Node.js",
        original: "https://medium.com/paypal-tech/outbound-ssl-performance-in-node-js-df69ad7dcef0",
    },
];

impl Study {
    /// The one of this source, such as `S4`.
    pub fn of(source: &str) -> Option<Self> {
        STUDIES.into_iter().find(|study| study.source.eq_ignore_ascii_case(source))
    }

    /// The names of the experiments with testable claims of it.
    ///
    /// # Errors
    /// An experiment's file that is not valid.
    pub fn experiments(&self) -> Result<Vec<&'static str>, LabError> {
        let mut names = Vec::new();
        for name in found::experiments() {
            let is_own = |claim: &Claim| claim.source == self.source && claim.not_testable.is_none();
            if claims(name)?.iter().any(is_own) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Whether a claim checks a statement of one of them.
    pub(crate) fn has(claim: &Claim) -> bool {
        STUDIES.iter().any(|study| study.source == claim.source)
    }
}

/// A statement of a study.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The experiment that checks it.
    pub experiment: String,
    /// The claim in its file.
    pub claim: Claim,
    /// The newest verdict on it, with its result.
    pub measured: Option<(Judged, Measurement)>,
}

/// All statements of the studies in the experiments of the current directory or of the program, with the stored verdicts
/// of `docs/studies`; the verdicts of `results` replace them.
///
/// # Errors
/// A path that is no result of an experiment with such statements; a file that is not valid.
pub fn statements<P: AsRef<Path>>(results: &[P]) -> Result<Vec<Statement>, LabError> {
    let mut records = record::stored()?;
    for result in results {
        record::add(&mut records, measured(result.as_ref())?);
    }
    let mut statements = Vec::new();
    for name in found::experiments() {
        let record = records.iter().find(|record| record.experiment == name);
        for claim in claims(name)?.into_iter().filter(Study::has) {
            let measured = record.and_then(|record| record.get(&claim.id));
            statements.push(Statement { experiment: name.to_owned(), claim, measured });
        }
    }
    Ok(statements)
}

/// Stores the verdicts of these results in a folder, a file for each experiment, in place of its older verdicts on the same
/// claims.
///
/// # Errors
/// As [`statements`], and a folder that cannot be written.
pub fn keep(results: &[impl AsRef<Path>], folder: &Path) -> Result<(), LabError> {
    let mut records = record::in_folder(folder)?;
    for result in results {
        record::add(&mut records, measured(result.as_ref())?);
    }
    records.iter().try_for_each(|record: &Record| record.write(folder))
}

/// The verdicts of a result on the statements.
/// Errors: a path that is no result, or a result without such a verdict.
fn measured(directory: &Path) -> Result<Record, LabError> {
    of_instrument!(of_result(directory)?, record::measured(directory))
}

/// The options of an experiment with `only` those of its subjects that a study's claims name, if each claim names one.
///
/// # Errors
/// An invalid experiment.
pub fn chosen(study: &Study, options: &RunOptions) -> Result<RunOptions, LabError> {
    let only = of_instrument!(of_experiment(&options.file)?, self::named(study, options))?;
    Ok(RunOptions { only, may_be_absent: true, ..options.clone() })
}

/// As [`chosen`], for an experiment of one instrument.
fn named<I: Grammar>(study: &Study, options: &RunOptions) -> Result<Vec<(String, String)>, LabError> {
    let file = found::experiment(&options.file)?.path;
    let located = RunOptions { file, quick: false, ..options.clone() };
    let (experiment, _) = reader::load::<I>(&located)?;
    let own = experiment.claims.iter().filter(|claim| claim.source == study.source && claim.metric.is_some());
    let mut names = BTreeSet::new();
    for claim in own {
        let of = |levels: &Levels| levels.get(I::SUBJECT).map(|level| level.as_str().to_owned());
        let Some(name) = of(&claim.cell) else { return Ok(Vec::new()) };
        names.extend([name].into_iter().chain(claim.against.as_ref().and_then(of)));
    }
    let run = names.into_iter().filter(|name| experiment.has_subject(name));
    Ok(run.map(|name| (I::SUBJECT.to_owned(), name)).collect())
}

/// An experiment's file, of which only the claims matter here.
#[derive(Deserialize)]
struct Stated {
    #[serde(default)]
    claims: Vec<Claim>,
}

fn claims(experiment: &str) -> Result<Vec<Claim>, LabError> {
    let path = found::experiment(Path::new(experiment))?.path;
    let text = fs::read_to_string(&path).map_err(LabError::file(&path, "cannot be read"))?;
    let stated: Stated =
        toml::from_str(&text).map_err(|error| ConfigError::toml(path.display(), &text, &error))?;
    Ok(stated.claims)
}

impl Statement {
    /// The finding on it: the stored one, if that is on the claim as it is now.
    pub fn finding(&self) -> Option<&Finding> {
        let (judged, _) = self.measured.as_ref()?;
        judged.is_of(&self.claim).then_some(&judged.finding)
    }

    /// The result that the finding comes from.
    pub(super) fn measurement(&self) -> Option<&Measurement> {
        self.finding().and(self.measured.as_ref()).map(|(_, on)| on)
    }

    /// Whether one of the given results judged it.
    pub(super) fn is_given(&self) -> bool {
        self.measurement().is_some_and(|on| on.is_given)
    }

    /// The verdict, in words, and its reason.
    pub fn verdict(&self) -> (Verdict, String, String) {
        let words = |verdict: Verdict, why: &str| (verdict, verdict.to_string(), why.to_owned());
        match (&self.claim.not_testable, self.finding(), &self.measured) {
            (Some(why), ..) => words(Verdict::Judged(ClaimVerdict::NotTestable), why),
            (None, Some(finding), _) => {
                (Verdict::Judged(finding.verdict), finding.verdict_text(), finding.why.clone())
            }
            (None, None, Some(_)) => {
                words(Verdict::NotMeasured, "the claim has changed since: run its experiment again")
            }
            (None, None, None) => words(Verdict::NotMeasured, "no result is stored"),
        }
    }
}

/// What is known about a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The verdict of a result, or that none can have one.
    Judged(ClaimVerdict),
    /// No stored result has one.
    NotMeasured,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Judged(verdict) => verdict.fmt(formatter),
            Self::NotMeasured => formatter.pad("not measured"),
        }
    }
}

#[cfg(test)]
mod tests;
