//! Proofs: for each finding of a result, an experiment that checks the predicted saving.

use super::measured::Advised;
use crate::outcome::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use weir_advice::{Finding, Gain};
use weir_lab::experiment::metric::Metric;
use weir_lab::findings::results::Results;
use weir_lab::instrument::gateway::{Fix, Fixes, Gateway, proof};
use weir_lab::planning::cell::Cell;
use weir_lab::stats::verdict::{Ratio, Verdict};
use weir_report::model::{self, Accuracy};
use weir_report::text::percent_range;

/// The outcome of an experiment on a finding.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Proof {
    /// The name of the rule that made the finding.
    rule: String,
    /// The target with its settings.
    subject: String,
    /// The cell, since several cells may have the same target.
    #[serde(default)]
    cell: String,
    /// The changed setting, such as `keep_alive: off -> own`.
    change: String,
    /// The predicted saving as a share of CPU time, 0 to 1.
    predicted: Option<[f64; 2]>,
    /// CPU time per request after the change, divided by that before, as text.
    ratio: String,
    /// The confidence interval of the measured saving, as a share of CPU time.
    saved: Option<[f64; 2]>,
    /// Whether the experiment confirms the finding.
    outcome: Outcome,
    /// The result directory of the experiment.
    directory: PathBuf,
}

/// The verdict of an experiment with the changed setting on a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    /// CPU time per request fell significantly.
    Proved,
    /// CPU time per request did not change significantly.
    NotProved,
    /// CPU time per request rose significantly.
    Contradicted,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::NotProved => "not proved",
            Self::Contradicted => "contradicted",
        }
    }
}

/// Runs an experiment for each finding that a setting of its target can fix; stores each under `proofs`.
pub(super) fn prove(
    results: &Results<Gateway>,
    advised: &[Advised],
    blocks: u32,
) -> Result<Vec<Proof>, Failure> {
    let fixes = Fixes::of(results)?;
    let mut proofs = Vec::new();
    for Advised { cell, advice } in advised {
        for finding in &advice.findings {
            let Some(fix) = fixes.find(cell, &finding.id) else { continue };
            let name = format!("{}-{cell}", finding.id).replace(['+', '='], "-");
            let out = results.directory.join("proofs").join(name);
            let done = weir_lab::run(&proof(&results.plan, cell, &fix, blocks, &out))?;
            let proof = judged(cell, finding, &fix, &Results::<Gateway>::read(&done.directory)?);
            keep(&proof);
            proofs.push(proof);
        }
    }
    Ok(proofs)
}

fn judged(cell: &Cell, finding: &Finding, fix: &Fix, proof: &Results<Gateway>) -> Proof {
    let compared = proof.summary.comparisons.iter();
    let ratio =
        compared.filter(|one| !one.aa && one.metric == Metric::CpuUsPerRequest).map(|one| &one.ratio).next();
    Proof {
        rule: finding.id.clone(),
        subject: cell.name.clone(),
        cell: cell.to_string(),
        change: format!("{}: {} -> {}", fix.setting, fix.today, fix.value),
        predicted: finding.gain.map(|Gain { low, high }| [low, high]),
        ratio: ratio.map_or_else(|| "none".to_owned(), Ratio::text),
        saved: ratio.and_then(|ratio| Some([1.0 - ratio.high?, 1.0 - ratio.low?])),
        outcome: ratio.map_or(Outcome::NotProved, outcome),
        directory: proof.directory.clone(),
    }
}

fn outcome(ratio: &Ratio) -> Outcome {
    match (ratio.verdict, ratio.value) {
        (Verdict::Different, Some(value)) if value < 1.0 => Outcome::Proved,
        (Verdict::Different, Some(_)) => Outcome::Contradicted,
        _ => Outcome::NotProved,
    }
}

impl Proof {
    /// Whether this proof is for this rule in this cell.
    pub(super) fn is_of(&self, cell: &str, rule: &str) -> bool {
        self.cell == cell && self.rule == rule
    }

    /// Converts the proof for the report.
    pub(super) fn shown(&self) -> model::Proof {
        let outcome = self.outcome.name().to_owned();
        model::Proof { outcome, ratio: self.ratio.clone(), saved: self.saved }
    }

    /// Describes the proof in a sentence.
    pub(super) fn words(&self) -> String {
        let Self { subject, change, ratio, directory, .. } = self;
        let outcome = self.outcome.name();
        let predicted = self.predicted.map_or_else(
            || "nothing was predicted".to_owned(),
            |predicted| format!("predicted were {}", percent_range(predicted)),
        );
        let saved =
            self.saved.map_or_else(String::new, |saved| format!(", which saves {}", percent_range(saved)));
        format!(
            "{} of {subject} ({change}): {outcome}. CPU per request is {ratio} times as much{saved}; {predicted}{}. {}",
            self.rule,
            match self.is_within() {
                Some(true) => ", as measured",
                Some(false) => ", so the rule is off",
                None => "",
            },
            directory.display()
        )
    }

    /// Whether the predicted range overlaps the measured interval; `None` if either is missing.
    fn is_within(&self) -> Option<bool> {
        let ([low, high], [least, most]) = (self.predicted?, self.saved?);
        Some(least <= high && low <= most)
    }
}

/// The accuracy of each rule's predictions so far on this machine.
pub(super) fn accuracy() -> Vec<Accuracy> {
    let text = file().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    let mut rules: BTreeMap<String, Accuracy> = BTreeMap::new();
    for proof in text.lines().filter_map(|line| serde_json::from_str::<Proof>(line).ok()) {
        let of = rules.entry(proof.rule.clone()).or_default();
        of.rule = proof.rule.clone();
        of.proofs += 1;
        of.proved += u32::from(proof.outcome == Outcome::Proved);
        of.predicted += u32::from(proof.is_within().is_some());
        of.held += u32::from(proof.is_within() == Some(true));
    }
    rules.into_values().collect()
}

/// Returns the accuracy of earlier predictions as a sentence; `None` if there are none.
pub(super) fn accuracy_text() -> Option<String> {
    let all = accuracy();
    let sum = |of: fn(&Accuracy) -> u32| all.iter().map(of).sum::<u32>();
    let proofs = sum(|one| one.proofs);
    (proofs > 0).then(|| {
        format!(
            "Of {} on this machine so far {} were proved, and {} of {} predictions held.",
            weir_load::plural(proofs.into(), "proof"),
            sum(|one| one.proved),
            sum(|one| one.held),
            sum(|one| one.predicted)
        )
    })
}

/// Appends a proof to this machine's history. Ignores failures, so that the proof itself is not lost.
fn keep(proof: &Proof) {
    let line = serde_json::to_string(proof).unwrap_or_default();
    let Some(file) = file() else { return };
    let _ = file.parent().map(fs::create_dir_all);
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let _ = opened.and_then(|mut file| writeln!(file, "{line}"));
}

/// The file of this machine's proofs, `weir/predictions.jsonl` in `$XDG_STATE_HOME` or else in `~/.local/state`.
fn file() -> Option<PathBuf> {
    let own = env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let state = own.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".local/state")))?;
    Some(state.join("weir/predictions.jsonl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(predicted: [f64; 2], saved: [f64; 2]) -> Proof {
        Proof {
            rule: "upstream-keep-alive".into(),
            subject: "node-26".into(),
            cell: "request.h1c-h1.node-26".into(),
            change: "keep_alive: off -> own".into(),
            predicted: Some(predicted),
            ratio: "0.06 [0.05, 0.07]".into(),
            saved: Some(saved),
            outcome: Outcome::Proved,
            directory: "out/proofs/a".into(),
        }
    }

    #[test]
    fn a_prediction_holds_if_it_overlaps_with_what_was_saved() {
        assert_eq!(proof([0.5, 0.9], [0.85, 0.95]).is_within(), Some(true));
        assert_eq!(proof([0.5, 0.8], [0.85, 0.95]).is_within(), Some(false));
        let words = proof([0.5, 0.9], [0.93, 0.95]).words();
        assert!(words.contains("proved. CPU per request is 0.06 [0.05, 0.07] times as much"), "{words}");
        assert!(words.contains("saves 93 to 95 %; predicted were 50 to 90 %, so the rule is off"), "{words}");
    }
}
