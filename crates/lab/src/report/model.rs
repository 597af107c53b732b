//! What the page shows, in plain values: the sections know nothing else. `view.rs` makes it from plan, summary and runs.

use super::chart::palette::Look;
use super::chart::plot::Point;
use weir_load::plural;

/// A whole report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) name: String,
    /// What the experiment asks.
    pub(crate) question: String,
    /// Said before everything else: the run was cut down and decides nothing.
    pub(crate) quick: Option<String>,
    /// What has to be known before any number is read; the first is the weightiest.
    pub(crate) labels: Vec<String>,
    /// The factors that all cells share, in words; may be empty.
    pub(crate) constants: String,
    /// What the experiment's author makes of the results, by paragraph.
    pub(crate) analysis: Vec<String>,
    /// What is measured, in the experiment's order.
    pub(crate) subjects: Vec<Subject>,
    /// All cells, by the factors that they share.
    pub(crate) groups: Vec<Group>,
    /// The comparisons by metric and load, what the experiment is made for first.
    pub(crate) families: Vec<Family>,
    pub(crate) claims: Vec<Claim>,
    /// That there are claims about what was not run; may be empty.
    pub(crate) claims_unrun: String,
    /// Charts of another kind than those of groups.
    pub(crate) figures: Vec<Figures>,
    pub(crate) invalid: Vec<InvalidRun>,
    pub(crate) reproductions: Vec<Reproduction>,
    pub(crate) targets: Vec<About>,
    /// The machine and the method, as names and values.
    pub(crate) machine: Vec<(&'static str, String)>,
    /// What disturbs on this machine, and what to do about it.
    pub(crate) findings: Vec<String>,
}

/// A target, with settings of its own perhaps, or the second of the A/A pair.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) look: Look,
    pub(crate) is_baseline: bool,
}

/// Cells that differ in their target alone.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) mode: String,
    /// The mode in words.
    pub(crate) mode_words: &'static str,
    pub(crate) users: u32,
    /// The factors that vary in the experiment, but for mode, users and load, in words; may be empty.
    pub(crate) conditions: String,
    /// Whether the number of users varies in the experiment.
    pub(crate) users_vary: bool,
    /// A closed loop, as fast as it goes; else an open one at one rate for all targets.
    pub(crate) is_saturated: bool,
    /// The rate of an open loop.
    pub(crate) rate: Option<f64>,
    /// Whether calibration found it, as a share of the slowest target's maximum.
    pub(crate) is_calibrated: bool,
    /// What is counted: `request` or `handshake`.
    pub(crate) unit: &'static str,
    pub(crate) cells: Vec<Cell>,
    /// Latencies of these cells, and those without a gateway beside them.
    pub(crate) curves: Vec<Curve>,
    /// The course of these cells: of the rate in a closed loop, of the median response time in an open one.
    pub(crate) courses: Vec<Curve>,
}

/// What a cell came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    /// The place in [`Report::subjects`].
    pub(crate) subject: usize,
    /// Whether there is a gateway, whose CPU could be told.
    pub(crate) has_gateway: bool,
    pub(crate) per_second: Option<f64>,
    pub(crate) mean_us: Option<f64>,
    pub(crate) sd_us: Option<f64>,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p95_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    pub(crate) error_ratio: Option<f64>,
    pub(crate) cpu_us: Option<f64>,
    pub(crate) cpu_interval: Option<(f64, f64)>,
    pub(crate) origin_cpu_us: Option<f64>,
    pub(crate) load_cpu_us: Option<f64>,
    pub(crate) utilisation: Option<f64>,
    pub(crate) rss_kib: Option<f64>,
    pub(crate) rss_end_kib: Option<f64>,
    pub(crate) switches_per_request: Option<f64>,
    pub(crate) gc_throughput_percent: Option<f64>,
    pub(crate) after_full_gc_kib: Option<f64>,
    pub(crate) limit: Option<String>,
    pub(crate) valid_runs: u32,
    pub(crate) runs: u32,
    /// `valid`, or why no run was.
    pub(crate) validity: String,
}

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) look: Look,
    pub(crate) points: Vec<Point>,
}

/// The comparisons of one metric under one load.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// The metric and the load in words.
    pub(crate) title: String,
    pub(crate) is_less_better: bool,
    /// Whether an A/A pair shows how far a thing is from itself.
    pub(crate) has_floor: bool,
    pub(crate) comparisons: Vec<Comparison>,
}

/// One ratio and what may be said of it.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) mode: String,
    /// Mode and factors: names its row.
    pub(crate) group: String,
    pub(crate) target: String,
    pub(crate) look: Look,
    pub(crate) baseline: String,
    pub(crate) is_aa: bool,
    pub(crate) ratio: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) coverage: Option<f64>,
    pub(crate) p_adjusted: Option<f64>,
    pub(crate) blocks: u32,
    pub(crate) outcome: Outcome,
    /// Whether so few blocks are no more than an indication.
    pub(crate) is_indication: bool,
    /// By how much the ratio differs from 1, in words.
    pub(crate) difference: String,
    /// The verdict in words.
    pub(crate) words: String,
}

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Better,
    Worse,
    Equivalent,
    Undecided,
}

/// Charts side by side under a heading.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) title: String,
    /// What they show, and how to read them.
    pub(crate) note: String,
    pub(crate) pictures: Vec<Picture>,
}

/// A chart and what it is of.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) caption: String,
    pub(crate) svg: String,
}

/// A statement that was checked.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) id: String,
    pub(crate) source: String,
    pub(crate) says: String,
    /// The predicate in words; empty where it cannot be tested.
    pub(crate) asked: String,
    /// The source's figures, and the original's where they differ; may be empty.
    pub(crate) figures: String,
    pub(crate) verdict: String,
    pub(crate) standing: Standing,
    /// The reason of the verdict, in a sentence.
    pub(crate) why: String,
    /// What each cell that it is about came to.
    pub(crate) evidence: Vec<String>,
}

/// A claim's verdict, as it is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Confirmed,
    Contradicted,
    Open,
}

/// A run that is in no number.
#[derive(Clone, Debug)]
pub(crate) struct InvalidRun {
    pub(crate) id: String,
    pub(crate) why: String,
}

/// How to run one cell again.
#[derive(Clone, Debug)]
pub(crate) struct Reproduction {
    pub(crate) mode: String,
    pub(crate) cell: String,
    pub(crate) commands: String,
}

/// What a target is, and the files that it was run with.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) title: String,
    pub(crate) version: String,
    pub(crate) about: String,
    pub(crate) files: Vec<(String, String)>,
}

impl Group {
    /// Load and factors in words, but for the mode: what tells this panel from the others.
    pub(crate) fn words(&self) -> String {
        let users = self.users_vary.then(|| plural(self.users.into(), "connection"));
        let rate = self.rate.map(|rate| format!("{rate:.0}/s offered"));
        let all = users.into_iter().chain(Some(self.conditions.clone())).chain(rate);
        all.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
    }
}
