//! From an experiment to its plan: which cells are run, and why others are skipped.

use crate::base::error::LabError;
use crate::experiment::options::RunOptions;
use crate::experiment::{Experiment, Layout, Stop};
use crate::planning::cell::{Cell, Levels};
use crate::planning::plan::{Phases, Plan};
use crate::planning::planned_run::{SCHEMA, Stage};
use crate::planning::schedule::{duets, numbered};
use crate::planning::select::{NAME, check_only, select};
use crate::planning::subjects::{Candidate, Standing, Subjects};
use crate::stats::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use weir_load::plural;

/// Plans everything but the number of blocks of `minutes`, which depends on calibration.
/// Errors: `--only` matches no cell, or nothing is left to run.
pub(crate) fn plan<I: Subjects>(
    experiment: Experiment,
    found: &I::Found,
    options: &RunOptions,
) -> Result<Plan, LabError> {
    let candidates = I::candidates(&experiment, found)?;
    let all: Vec<Cell> = candidates.iter().map(|candidate| candidate.cell.clone()).collect();
    check_only::<I>("--only", &options.only, &all, &experiment)?;
    let chosen = Chosen::of::<I>(candidates, &experiment, options)?;
    let nothing = |why: String| Err(LabError::Nothing(why));
    if chosen.cells.is_empty() {
        return match chosen.left_out {
            0 => nothing(format!("no {} present can run any cell of the experiment", I::SUBJECT)),
            _ => nothing(format!(
                "--only leaves no cell of a present {}{}",
                I::SUBJECT,
                absent(&I::absent(found), &chosen.absent)
            )),
        };
    }
    let Chosen { cells, mut dropped, remarks, is_pair_kept, left_out, .. } = chosen;
    dropped.extend(I::dropped(&experiment, found));
    if left_out > 0 && !I::KEEPS_PAIR {
        dropped.push(format!("{} left out by --only", plural(left_out, "cell")));
    }
    let baseline = experiment.baseline.iter().find_map(|name| subject(&cells, name));
    let calibration = calibration::<I>(&experiment, &cells)?;
    let runs = |stage: Stage, cells: &[&Cell]| -> BTreeMap<String, u64> {
        cells.iter().map(|cell| (cell.id.clone(), I::phases_ms(&experiment, cell, stage))).collect()
    };
    let phases = Phases {
        block_ms: runs(Stage::Block(1), &cells.iter().collect::<Vec<_>>()),
        calibration_ms: runs(Stage::Calibration, &calibration.iter().collect::<Vec<_>>()),
        overhead_ms: I::OVERHEAD_MS,
    };
    let blocks = match experiment.stop {
        Stop::Blocks(blocks) => Some(blocks),
        Stop::Precision(rule) => Some(rule.most),
        Stop::Minutes(_) => None,
    };
    let mut plan = Plan {
        schema: SCHEMA,
        file: options.file.clone(),
        arguments: options.arguments(),
        only: options.only.clone(),
        cells,
        baseline,
        absent: I::absent(found),
        dropped,
        remarks,
        is_pair_kept,
        calibration: numbered(
            "cal",
            Stage::Calibration,
            &calibration.iter().map(|cell| vec![cell]).collect::<Vec<_>>(),
        ),
        blocks: Vec::new(),
        rates: Vec::new(),
        overheads_ms: I::overheads_ms(found),
        phases,
        is_precise: false,
        extended: Vec::new(),
        experiment,
    };
    leave_out_lonely(&mut plan)?;
    if let Some(blocks) = blocks {
        plan.fix_blocks(blocks);
    }
    Ok(plan)
}

/// In a layout of duets without runs alone, a cell without a counterpart has no run.
fn leave_out_lonely(plan: &mut Plan) -> Result<(), LabError> {
    if plan.experiment.layout != Layout::Duet {
        return Ok(());
    }
    let paired: BTreeSet<Cell> = duets(plan).concat().into_iter().cloned().collect();
    if paired.is_empty() {
        let why = absent(&plan.absent, &plan.absent.keys().cloned().collect());
        return Err(LabError::Nothing(format!("no two of the cells that can run are compared{why}")));
    }
    if plan.experiment.alone_blocks == 0 {
        let (kept, lonely): (Vec<Cell>, Vec<Cell>) =
            std::mem::take(&mut plan.cells).into_iter().partition(|cell| paired.contains(cell));
        plan.cells = kept;
        plan.dropped.extend(lonely.iter().map(|cell| format!("{cell}: nothing to compare it with")));
    }
    Ok(())
}

/// Why the requested subjects are absent.
fn absent(absent: &BTreeMap<String, String>, asked_for: &BTreeSet<String>) -> String {
    let reasons = absent.iter().filter(|(name, _)| asked_for.contains(*name));
    reasons.map(|(name, why)| format!("; {name}: {}", why.trim_end_matches('.'))).collect()
}

/// The cells that are run.
#[derive(Default)]
struct Chosen {
    cells: Vec<Cell>,
    dropped: Vec<String>,
    remarks: BTreeMap<String, String>,
    is_pair_kept: bool,
    /// Cells of present subjects that `--only` excludes.
    left_out: u64,
    /// Subjects that it names and that are absent.
    absent: BTreeSet<String>,
}

impl Chosen {
    /// `--only` keeps the cells with its levels, and the A/A pair where the instrument needs it: without its noise
    /// floor they could not be judged. Selected by name, cells come without the pair.
    fn of<I: Subjects>(
        candidates: Vec<Candidate>,
        experiment: &Experiment,
        options: &RunOptions,
    ) -> Result<Self, LabError> {
        let is_selected = |cell: &Cell| select::<I>("--only", &options.only, cell, experiment);
        let is_by_name = options.only.iter().any(|(key, _)| key == NAME);
        let aa = experiment.aa.as_ref().filter(|_| I::KEEPS_PAIR && !is_by_name);
        let mut places: BTreeSet<Levels> = BTreeSet::new();
        for candidate in candidates.iter().filter(|one| one.standing == Standing::Present) {
            if is_selected(&candidate.cell)? {
                places.insert(candidate.cell.place());
            }
        }
        let mut chosen = Self::default();
        for Candidate { cell, standing, remark } in candidates {
            let is_of_pair = aa == Some(&cell.subject) && places.contains(&cell.place());
            let is_named = is_selected(&cell)?;
            match standing {
                Standing::Absent if is_named => drop(chosen.absent.insert(cell.subject)),
                Standing::Absent => {}
                _ if !is_named && !is_of_pair => chosen.left_out += u64::from(standing == Standing::Present),
                Standing::Unable(why) => chosen.dropped.push(format!("{cell}: {why}")),
                Standing::Present => {
                    chosen.is_pair_kept |= !is_named;
                    chosen.remarks.extend(remark.map(|remark| (cell.id.clone(), remark)));
                    chosen.cells.push(cell);
                }
            }
        }
        Ok(chosen)
    }
}

/// The subject of a baseline candidate: one with its first settings, or with the named ones.
fn subject(cells: &[Cell], name: &str) -> Option<String> {
    let exact = || cells.iter().find(|cell| cell.name == name);
    let first = || cells.iter().find(|cell| cell.subject == name && !cell.is_again());
    exact().or_else(first).map(|cell| cell.name.clone())
}

/// The cells of the calibration runs, in an order of their own: the seed's next order after the blocks would depend on
/// their number.
fn calibration<I: Subjects>(experiment: &Experiment, cells: &[Cell]) -> Result<Vec<Cell>, LabError> {
    let wanted = I::calibration(experiment, cells)?;
    let mut wanted = vec![wanted; experiment.calibration_runs as usize].concat();
    Rng::new(!experiment.seed).shuffle(&mut wanted);
    Ok(wanted)
}
