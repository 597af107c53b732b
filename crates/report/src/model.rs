//! The model of the page, in plain values.

use super::chart::palette::Look;
use super::chart::plot::Curve;
use serde::{Deserialize, Serialize};
use weir_stats::plural;
use weir_stats::verdict::Ratio;

/// A whole report.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The experiment's name.
    pub name: String,
    /// The experiment's question.
    pub question: String,
    /// The findings in sentences.
    pub answer: Vec<String>,
    /// Shown first: the run was reduced and decides nothing.
    pub quick: Option<String>,
    /// Notices to read before any number, most important first.
    pub labels: Vec<String>,
    /// The constant factors, as text; may be empty.
    pub constants: String,
    /// The author's interpretation, by paragraph.
    pub analysis: Vec<String>,
    /// The subjects, in the experiment's order.
    pub subjects: Vec<Subject>,
    /// All cells, grouped by shared factors.
    pub groups: Vec<Group>,
    /// The comparisons by metric and load, most relevant first.
    pub families: Vec<Family>,
    /// The claims that were checked.
    pub claims: Vec<Claim>,
    /// A note about claims on what was not run; may be empty.
    pub claims_unrun: String,
    /// Charts other than those of groups.
    pub figures: Vec<Figures>,
    /// The cost per request by category.
    pub splits: Vec<Split>,
    /// The advice on it, if `weir advise` was asked.
    pub advised: Option<Advised>,
    /// The invalid runs.
    pub invalid: Vec<InvalidRun>,
    /// How to reproduce each cell.
    pub reproductions: Vec<Reproduction>,
    /// The subjects and their files.
    pub targets: Vec<About>,
    /// The machine and the method, as names and values.
    pub machine: Vec<(&'static str, String)>,
    /// Disturbances on this machine, and how to fix them.
    pub findings: Vec<String>,
}

/// What `weir advise` found in a result, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Advised {
    /// Schema version: 1.
    pub schema: u32,
    /// By subject, those with the largest gain first.
    pub findings: Vec<Advice>,
    /// How each rule's predictions fared on this machine so far.
    pub accuracy: Vec<Accuracy>,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The target with its settings.
    pub subject: String,
    /// The rule.
    pub rule: String,
    /// What was seen.
    pub saw: String,
    /// What to change.
    pub change: String,
    /// The share of CPU time that the profile predicts to be saved, 0 to 1.
    pub predicted: Option<[f64; 2]>,
    /// The experiment that changed it.
    pub proof: Option<Proof>,
}

/// What an experiment said of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// `proved`, `not proved` or `contradicted`.
    pub outcome: String,
    /// CPU per request after over before.
    pub ratio: String,
    /// The interval of the share that was saved.
    pub saved: Option<[f64; 2]>,
}

/// How the predictions of a rule fared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accuracy {
    /// The rule.
    pub rule: String,
    /// Its experiments.
    pub proofs: u32,
    /// Those in which CPU per request went down.
    pub proved: u32,
    /// Those with a prediction and a measured interval.
    pub predicted: u32,
    /// Those whose prediction overlaps with that interval.
    pub held: u32,
}

/// A target, possibly with its own settings, or the second of the A/A pair.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name in charts and tables.
    pub name: String,
    /// May be empty.
    pub version: String,
    /// The same in all charts.
    pub look: Look,
    /// Whether it is a baseline.
    pub is_baseline: bool,
}

/// Cells that differ only in their target.
#[derive(Clone, Debug)]
pub struct Group {
    /// Such as `h1-h1c`.
    pub mode: String,
    /// The mode as text.
    pub mode_words: &'static str,
    /// Connections.
    pub users: u32,
    /// The varying factors except mode, users and load, as text; may be empty.
    pub conditions: String,
    /// Whether the number of users varies in the experiment.
    pub users_vary: bool,
    /// Closed loop at saturation; otherwise open loop at one rate for all targets.
    pub is_saturated: bool,
    /// The rate of an open loop.
    pub rate: Option<f64>,
    /// Whether it was calibrated, as a share of the slowest target's maximum.
    pub is_calibrated: bool,
    /// What is counted: `request` or `handshake`.
    pub unit: &'static str,
    /// One per measured subject.
    pub cells: Vec<Cell>,
    /// Latencies of these cells, and those without a gateway beside them.
    pub curves: Vec<Curve>,
    /// Time series of these cells: the rate in a closed loop, the median response time in an open one.
    pub courses: Vec<Curve>,
}

/// The result of a cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The index in [`Report::subjects`].
    pub subject: usize,
    /// Whether there is a gateway with CPU figures.
    pub has_gateway: bool,
    /// Requests or handshakes per second.
    pub per_second: Option<f64>,
    /// The gateway's CPU per request or handshake.
    pub cpu_us: Option<f64>,
    /// The interval of `cpu_us`.
    pub cpu_interval: Option<(f64, f64)>,
    /// The share of its cores that the gateway used, 0 to 1.
    pub utilisation: Option<f64>,
    /// Its row in the table of all numbers: titles as HTML, and formatted figures.
    pub figures: Vec<(String, String)>,
    /// The limit, such as `gateway` or `load`; none without a valid run.
    pub limit: Option<String>,
    /// The valid runs.
    pub valid_runs: u32,
    /// All runs.
    pub runs: u32,
    /// `valid`, or why no run is.
    pub validity: String,
}

/// The comparisons of one metric under one load.
#[derive(Clone, Debug)]
pub struct Family {
    /// The metric and the load, as text.
    pub title: String,
    /// Otherwise more is.
    pub is_less_better: bool,
    /// Whether there is an A/A pair.
    pub has_floor: bool,
    /// In display order.
    pub comparisons: Vec<Comparison>,
}

/// A ratio and its verdict.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Such as `h1-h1c`.
    pub mode: String,
    /// Mode and factors: names its row.
    pub group: String,
    /// The target.
    pub target: String,
    /// The target's.
    pub look: Look,
    /// The baseline.
    pub baseline: String,
    /// Whether it is an A/A pair.
    pub is_aa: bool,
    /// Target over baseline.
    pub ratio: Ratio,
    /// The number of blocks.
    pub blocks: u32,
    /// The verdict's colour.
    pub outcome: Outcome,
    /// The difference from 1, as text.
    pub difference: String,
    /// The verdict as text.
    pub words: String,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Different, for the better.
    Better,
    /// Different, for the worse.
    Worse,
    /// The same within the margin.
    Equivalent,
    /// Undecided.
    Undecided,
}

/// Charts side by side under a heading.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The heading.
    pub title: String,
    /// What they show and how to read them.
    pub note: String,
    /// The first ones are open, the others collapsed.
    pub pictures: Vec<Picture>,
}

/// A chart and its caption.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Shown above it.
    pub caption: String,
    /// The SVG element, inserted verbatim.
    pub svg: String,
}

/// The cost of a request or handshake by category, of cells that differ only in their target.
#[derive(Clone, Debug)]
pub struct Split {
    /// Such as `h1-h1c`, with its distinguishing factors.
    pub title: String,
    /// What is counted: `request` or `handshake`.
    pub unit: &'static str,
    /// One per profiled cell.
    pub bars: Vec<SplitBar>,
    /// The differences between cells, in sentences.
    pub differences: Vec<String>,
}

/// The cost of a cell, and its parts.
#[derive(Clone, Debug)]
pub struct SplitBar {
    /// The cell's target.
    pub name: String,
    /// CPU microseconds.
    pub total: f64,
    /// The number of samples.
    pub samples: u64,
    /// In the order of categories; they add up to the total.
    pub parts: Vec<Part>,
    /// The flame graph, an SVG document.
    pub flame: String,
    /// The baseline's name, and the flame graph of the difference to it; `None` for the baseline itself.
    pub against: Option<(String, String)>,
    /// Remarks on it.
    pub notes: Vec<String>,
}

/// A category's part of the cost.
#[derive(Clone, Debug)]
pub struct Part {
    /// The category's name.
    pub name: &'static str,
    /// Its place among all categories, which determines its look.
    pub place: usize,
    /// CPU microseconds.
    pub value: f64,
    /// The interval of sampling, 95 %.
    pub interval: (f64, f64),
}

/// A claim that was checked.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its name in the experiment.
    pub id: String,
    /// The source.
    pub source: String,
    /// The statement.
    pub says: String,
    /// The predicate as text; empty if it cannot be tested.
    pub asked: String,
    /// The source's figures, and the original's if different; may be empty.
    pub figures: String,
    /// The verdict as text.
    pub verdict: String,
    /// The verdict's colour.
    pub standing: Standing,
    /// The reason for the verdict, in a sentence.
    pub why: String,
    /// The result of each of its cells.
    pub evidence: Vec<String>,
}

/// The colour of a claim's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Valid runs confirm it.
    Confirmed,
    /// Valid runs contradict it.
    Contradicted,
    /// Undecided, or not testable here.
    Open,
}

/// An invalid run.
#[derive(Clone, Debug)]
pub struct InvalidRun {
    /// The run's name.
    pub id: String,
    /// Why it is invalid.
    pub why: String,
}

/// How to reproduce a cell.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// Such as `h1-h1c`.
    pub mode: String,
    /// The cell's name.
    pub cell: String,
    /// Lines for a shell.
    pub commands: String,
}

/// A target and its files.
#[derive(Clone, Debug)]
pub struct About {
    /// Its display name.
    pub title: String,
    /// May be empty.
    pub version: String,
    /// A sentence or two; may be empty.
    pub about: String,
    /// Name and text of each file.
    pub files: Vec<(String, String)>,
}

impl Group {
    /// Load and factors as text, except the mode: what distinguishes this panel.
    pub fn words(&self) -> String {
        let users = self.users_vary.then(|| plural(self.users.into(), "connection"));
        let rate = self.rate.map(|rate| format!("{rate:.0}/s offered"));
        let all = users.into_iter().chain(Some(self.conditions.clone())).chain(rate);
        all.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
    }
}
