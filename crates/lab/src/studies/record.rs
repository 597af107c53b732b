//! The stored verdicts on an experiment's claims: a file in `docs/studies` for each experiment.

use super::Study;
use crate::base::error::LabError;
use crate::experiment::{Claim, Layout};
use crate::findings::claims::{ClaimVerdict, Finding};
use crate::findings::judge::Judge;
use crate::findings::results::Results;
use crate::found;
use crate::store;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The version of the files' schema.
const SCHEMA: u32 = 1;

/// The folder of the files.
pub(super) const FOLDER: &str = "docs/studies";

/// An experiment's verdicts, from one result or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    schema: u32,
    /// The experiment's name.
    pub(super) experiment: String,
    results: Vec<Measured>,
}

/// A result's verdicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    on: Measurement,
    claims: Vec<Judged>,
}

/// Where a verdict comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The command.
    pub command: String,
    /// Whether two subjects ran at a time.
    pub layout: Layout,
    /// The start, in seconds since 1970.
    pub started_unix: u64,
    /// The processor.
    pub cpu: String,
    /// The number of cores.
    pub cores: usize,
    /// The versions of the subjects.
    pub versions: BTreeMap<String, String>,
    /// Whether it is one of the given results, not a stored one.
    #[serde(skip)]
    pub is_given: bool,
}

/// A claim as it was measured, with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// The verdict.
    pub finding: Finding,
}

impl Judged {
    /// Whether the verdict is on this claim: the same predicate on the same cells. Levels that all cells of a result have
    /// in common are not in its claims.
    pub(super) fn is_of(&self, claim: &Claim) -> bool {
        let asked =
            |claim: &Claim| (claim.metric, claim.share_of.clone(), claim.expect, claim.against.clone());
        asked(&self.claim) == asked(claim)
            && self.claim.cell.iter().all(|(key, level)| claim.cell.get(key) == Some(level))
    }
}

impl Record {
    /// The verdicts of a result on statements of the studies, as far as it measured them.
    pub(super) fn of<I: Judge>(results: &Results<I>) -> Self {
        let Results { plan, machine, summary, .. } = results;
        let judged = plan.experiment.claims.iter().zip(&summary.claims);
        let is_own = |claim: &Claim, found: &Finding| {
            let is_of_cpu = claim.not_testable.is_none() && found.verdict == ClaimVerdict::NotTestable;
            Study::has(claim) && (is_of_cpu || !found.cells.is_empty())
        };
        let judged = judged.filter(|(claim, found)| is_own(claim, found));
        let command = ["weir run".to_owned(), plan.experiment.name.clone()];
        let on = Measurement {
            command: command.into_iter().chain(plan.options_without(None)).collect::<Vec<_>>().join(" "),
            layout: plan.experiment.layout,
            started_unix: machine.started_unix,
            cpu: machine.hardware.cpu.clone(),
            cores: machine.cores.len(),
            versions: machine.versions.clone(),
            is_given: true,
        };
        let claims = judged.map(|(claim, finding)| Judged { claim: claim.clone(), finding: finding.clone() });
        let results = vec![Measured { on, claims: claims.collect() }];
        Self { schema: SCHEMA, experiment: plan.experiment.name.clone(), results }
    }

    /// The verdict on a claim.
    pub(super) fn get(&self, id: &str) -> Option<(Judged, Measurement)> {
        let of_result = |measured: &Measured| {
            let judged = measured.claims.iter().find(|judged| judged.claim.id == id)?;
            Some((judged.clone(), measured.on.clone()))
        };
        self.results.iter().find_map(of_result)
    }

    /// Writes its file.
    /// Errors: a folder that cannot be written.
    pub(super) fn write(&self, folder: &Path) -> Result<(), LabError> {
        let path = folder.join(format!("{}.json", self.experiment));
        let text =
            serde_json::to_string_pretty(self).map_err(|error| store::stored(&path, error.to_string()))?;
        fs::create_dir_all(folder).map_err(LabError::file(folder, "cannot be created"))?;
        fs::write(&path, text + "\n").map_err(LabError::file(&path, "cannot be written"))
    }
}

/// The verdicts of a result.
/// Errors: a path that is no result, or one of an experiment that measured no statement of a study.
pub(crate) fn measured<I: Judge>(directory: &Path) -> Result<Record, LabError> {
    let record = Record::of(&Results::<I>::read(directory)?);
    match record.results.iter().any(|measured| !measured.claims.is_empty()) {
        true => Ok(record),
        false => Err(LabError::NoResult {
            path: directory.to_owned(),
            why: "it measured no statement of a study; expected a result of an experiment that `weir studies` names",
        }),
    }
}

/// Puts the verdicts of a result in place of older ones on the same claims. A CPU that cannot test a claim leaves the verdict
/// of another.
pub(super) fn add(records: &mut Vec<Record>, mut newer: Record) {
    let Some(record) = records.iter_mut().find(|record| record.experiment == newer.experiment) else {
        records.push(newer);
        return;
    };
    for measured in &mut newer.results {
        let is_known = |judged: &Judged| record.get(&judged.claim.id).is_some();
        let is_news =
            |judged: &Judged| judged.finding.verdict != ClaimVerdict::NotTestable || !is_known(judged);
        measured.claims.retain(is_news);
    }
    newer.results.retain(|measured| !measured.claims.is_empty());
    let judged = newer.results.iter().flat_map(|measured| &measured.claims);
    let again: BTreeSet<String> = judged.map(|judged| judged.claim.id.clone()).collect();
    for measured in &mut record.results {
        measured.claims.retain(|judged| !again.contains(&judged.claim.id));
    }
    record.results.retain(|measured| !measured.claims.is_empty());
    record.results.extend(newer.results);
}

/// The records of the current directory, and the built-in ones of other experiments.
/// Errors: a file that is not valid.
pub(super) fn stored() -> Result<Vec<Record>, LabError> {
    let mut records = in_folder(Path::new(FOLDER))?;
    for (name, text) in found::texts(FOLDER).filter(|(name, _)| name.ends_with(".json")) {
        let record = parse(Path::new(name), text)?;
        if !records.iter().any(|own| own.experiment == record.experiment) {
            records.push(record);
        }
    }
    Ok(records)
}

/// The records of a folder, which need not exist.
/// Errors: a file that is not valid.
pub(super) fn in_folder(folder: &Path) -> Result<Vec<Record>, LabError> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).map_err(LabError::file(path, "cannot be read"))?;
        parse(path, &text)
    };
    paths.iter().map(read).collect()
}

fn parse(path: &Path, text: &str) -> Result<Record, LabError> {
    let value: Value = serde_json::from_str(text).map_err(|error| store::stored(path, error.to_string()))?;
    store::check_layout("schema", &value["schema"], SCHEMA)
        .map_err(|message| store::stored(path, message))?;
    serde_json::from_value(value).map_err(|error| store::stored(path, error.to_string()))
}
