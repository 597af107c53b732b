//! What the page shows, in plain values: the sections know nothing else.

use super::chart::palette::Look;
use super::chart::plot::Curve;
use weir_stats::plural;
use weir_stats::verdict::Ratio;

/// A whole report.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The experiment's name.
    pub name: String,
    /// What the experiment asks.
    pub question: String,
    /// What it comes to, in sentences.
    pub answer: Vec<String>,
    /// Said before everything else: the run was cut down and decides nothing.
    pub quick: Option<String>,
    /// What has to be known before any number is read; the first is the weightiest.
    pub labels: Vec<String>,
    /// The factors that all cells share, in words; may be empty.
    pub constants: String,
    /// What the experiment's author makes of the results, by paragraph.
    pub analysis: Vec<String>,
    /// What is measured, in the experiment's order.
    pub subjects: Vec<Subject>,
    /// All cells, by the factors that they share.
    pub groups: Vec<Group>,
    /// The comparisons by metric and load, what the experiment is made for first.
    pub families: Vec<Family>,
    /// The statements that were checked.
    pub claims: Vec<Claim>,
    /// That there are claims about what was not run; may be empty.
    pub claims_unrun: String,
    /// Charts of another kind than those of groups.
    pub figures: Vec<Figures>,
    /// The runs that are in no number.
    pub invalid: Vec<InvalidRun>,
    /// How to run each cell again.
    pub reproductions: Vec<Reproduction>,
    /// What was measured, and the files that it was run with.
    pub targets: Vec<About>,
    /// The machine and the method, as names and values.
    pub machine: Vec<(&'static str, String)>,
    /// What disturbs on this machine, and what to do about it.
    pub findings: Vec<String>,
}

/// A target, with settings of its own perhaps, or the second of the A/A pair.
#[derive(Clone, Debug)]
pub struct Subject {
    /// As it stands in charts and tables.
    pub name: String,
    /// May be empty.
    pub version: String,
    /// The same in all charts.
    pub look: Look,
    /// Whether others are compared with it.
    pub is_baseline: bool,
}

/// Cells that differ in their target alone.
#[derive(Clone, Debug)]
pub struct Group {
    /// Such as `h1-h1c`.
    pub mode: String,
    /// The mode in words.
    pub mode_words: &'static str,
    /// Connections.
    pub users: u32,
    /// The factors that vary in the experiment, but for mode, users and load, in words; may be empty.
    pub conditions: String,
    /// Whether the number of users varies in the experiment.
    pub users_vary: bool,
    /// A closed loop, as fast as it goes; else an open one at one rate for all targets.
    pub is_saturated: bool,
    /// The rate of an open loop.
    pub rate: Option<f64>,
    /// Whether calibration found it, as a share of the slowest target's maximum.
    pub is_calibrated: bool,
    /// What is counted: `request` or `handshake`.
    pub unit: &'static str,
    /// One for each subject that was measured.
    pub cells: Vec<Cell>,
    /// Latencies of these cells, and those without a gateway beside them.
    pub curves: Vec<Curve>,
    /// The course of these cells: of the rate in a closed loop, of the median response time in an open one.
    pub courses: Vec<Curve>,
}

/// What a cell came to.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The place in [`Report::subjects`].
    pub subject: usize,
    /// Whether there is a gateway, whose CPU could be told.
    pub has_gateway: bool,
    /// Requests or handshakes per second.
    pub per_second: Option<f64>,
    /// The gateway's CPU per request or handshake.
    pub cpu_us: Option<f64>,
    /// The interval of `cpu_us`.
    pub cpu_interval: Option<(f64, f64)>,
    /// The share of its cores that the gateway used, 0 to 1.
    pub utilisation: Option<f64>,
    /// What the table of all numbers has of it: titles as HTML, and the figures as they are shown there.
    pub figures: Vec<(String, String)>,
    /// The part that held the rate down, such as `gateway` or `load`; none without a valid run.
    pub limit: Option<String>,
    /// The runs that the figures rest on.
    pub valid_runs: u32,
    /// All runs.
    pub runs: u32,
    /// `valid`, or why no run was.
    pub validity: String,
}

/// The comparisons of one metric under one load.
#[derive(Clone, Debug)]
pub struct Family {
    /// The metric and the load in words.
    pub title: String,
    /// Else more is.
    pub is_less_better: bool,
    /// Whether an A/A pair shows how far a thing is from itself.
    pub has_floor: bool,
    /// In the order in which they are shown.
    pub comparisons: Vec<Comparison>,
}

/// One ratio and what may be said of it.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Such as `h1-h1c`.
    pub mode: String,
    /// Mode and factors: names its row.
    pub group: String,
    /// What is compared.
    pub target: String,
    /// That of the target.
    pub look: Look,
    /// What it is compared with.
    pub baseline: String,
    /// Whether both are the same thing.
    pub is_aa: bool,
    /// Target over baseline.
    pub ratio: Ratio,
    /// The blocks that it rests on.
    pub blocks: u32,
    /// What the verdict says, as it is coloured.
    pub outcome: Outcome,
    /// By how much the ratio differs from 1, in words.
    pub difference: String,
    /// The verdict in words.
    pub words: String,
}

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Different, for the better.
    Better,
    /// Different, for the worse.
    Worse,
    /// The same within the margin.
    Equivalent,
    /// Neither could be shown.
    Undecided,
}

/// Charts side by side under a heading.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The heading.
    pub title: String,
    /// What they show, and how to read them.
    pub note: String,
    /// The first of them are open, the others are folded away.
    pub pictures: Vec<Picture>,
}

/// A chart and what it is of.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Stands above it.
    pub caption: String,
    /// The drawing as an element; it goes into the page as it is.
    pub svg: String,
}

/// A statement that was checked.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its name in the experiment.
    pub id: String,
    /// Where the statement comes from.
    pub source: String,
    /// The statement.
    pub says: String,
    /// The predicate in words; empty where it cannot be tested.
    pub asked: String,
    /// The source's figures, and the original's where they differ; may be empty.
    pub figures: String,
    /// The verdict in words.
    pub verdict: String,
    /// The verdict, as it is coloured.
    pub standing: Standing,
    /// The reason of the verdict, in a sentence.
    pub why: String,
    /// What each cell that it is about came to.
    pub evidence: Vec<String>,
}

/// A claim's verdict, as it is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Valid runs confirm it.
    Confirmed,
    /// Valid runs contradict it.
    Contradicted,
    /// Undecided, or not testable here.
    Open,
}

/// A run that is in no number.
#[derive(Clone, Debug)]
pub struct InvalidRun {
    /// The run's name.
    pub id: String,
    /// What made it invalid.
    pub why: String,
}

/// How to run one cell again.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// Such as `h1-h1c`.
    pub mode: String,
    /// The cell's name.
    pub cell: String,
    /// Lines for a shell.
    pub commands: String,
}

/// What a target is, and the files that it was run with.
#[derive(Clone, Debug)]
pub struct About {
    /// The name that people know it by.
    pub title: String,
    /// May be empty.
    pub version: String,
    /// A sentence or two; may be empty.
    pub about: String,
    /// Name and text of each file that it was run with.
    pub files: Vec<(String, String)>,
}

impl Group {
    /// Load and factors in words, but for the mode: what tells this panel from the others.
    pub fn words(&self) -> String {
        let users = self.users_vary.then(|| plural(self.users.into(), "connection"));
        let rate = self.rate.map(|rate| format!("{rate:.0}/s offered"));
        let all = users.into_iter().chain(Some(self.conditions.clone())).chain(rate);
        all.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
    }
}
