//! The presentation of gateways' results.

use super::levels::{Place as _, read};
use super::run::Seen;
use super::values::unit_metrics;
use super::vary::{Vary, words};
use super::{Gateway, Load, table, view};
use crate::base::error::LabError;
use crate::experiment::metric::Metric;
use crate::findings::results::Results;
use crate::findings::summary::{CellSummary, Summary};
use crate::planning::cell::Cell;
use crate::planning::placement::Placement;
use crate::planning::plan::Plan;
use crate::report::shown::{Looks, Page, Shown};
use crate::running::host::allowed_cores;
use crate::store::Store;
use crate::store::run::Run;
use std::collections::BTreeMap;
use std::fmt::Write;
use weir_load::plural;

impl Shown for Gateway {
    fn complete(results: &mut Results<Self>) -> Result<(), LabError> {
        results.summary.notes.extend(killed(&results.runs));
        results.summary.notes.extend(stream_limits(&results.runs));
        Ok(())
    }

    fn warnings(summary: &Summary) -> Vec<String> {
        let placement = summary.machine.placement.as_ref();
        let note = placement.and_then(|placement| placement.note.as_ref());
        note.map(|note| format!("CORES: {note}.")).into_iter().collect()
    }

    fn setting(summary: &Summary) -> String {
        let placement = summary.machine.placement.as_ref();
        let sharing = placement.and_then(Placement::sharing);
        format!(
            "Client, gateway and origin ran on one machine over {}{}.",
            summary.machine.network,
            sharing.map_or_else(String::new, |sharing| format!("; {sharing}")),
        )
    }

    fn row(plan: &Plan, cell: &Cell, compared: Option<&str>) -> String {
        Vary::of(plan).row(&cell.place(), compared)
    }

    fn circumstances(plan: &Plan, cell: &Cell, compared: Option<&str>) -> String {
        let vary = Vary::of(plan);
        let mode = (compared != Some("mode")).then(|| cell.mode().circumstance().to_owned());
        let at = match cell.load() {
            Load::EqualRate => "at one equal rate".to_owned(),
            Load::Saturated => "at saturation".to_owned(),
        };
        let others = vary.others(&cell.place(), compared);
        mode.into_iter().chain(others).chain([at]).collect::<Vec<_>>().join(", ")
    }

    fn cost(found: &CellSummary) -> Option<(f64, &'static str)> {
        let case = found.cell.case();
        Some((found.get(unit_metrics(case).cpu)?, case.unit()))
    }

    fn place_title(cell: &Cell) -> String {
        format!("{}, {}", cell.mode(), words(&cell.place()))
    }

    fn chapter(cell: &Cell) -> String {
        cell.mode().to_string()
    }

    fn family_title(metric: Metric, family: &str) -> String {
        let at = match read(family).unwrap_or(Load::Saturated) {
            Load::EqualRate => "at one equal rate",
            Load::Saturated => "at saturation",
        };
        let whose = if metric.is_cpu() { " (the gateway's)" } else { "" };
        format!("{}{whose}, {at}", metric.title())
    }

    fn describe(text: &mut String, plan: &Plan, targets: &Self::Found) {
        if let (Ok(conditions), Ok(allowed)) = (plan.experiment.any_conditions(), allowed_cores())
            && let Some(note) = Placement::choose(&conditions.cores, &allowed).note
        {
            let _ = writeln!(text, "CORES: {note}");
        }
        for (name, target) in &targets.present {
            let _ = writeln!(text, "target {name}: {} {}", target.title, target.version);
            let _ = writeln!(text, "    from {}", target.folder().display());
        }
        for factor in &plan.experiment.factors {
            let _ = writeln!(text, "factor {}", view::varied(factor));
        }
    }

    fn tables(text: &mut String, results: &Results<Self>) {
        table::render(text, results);
    }

    fn columns(cell: &Cell) -> (String, Vec<Metric>) {
        let of = unit_metrics(cell.case());
        let columns = vec![of.rate, of.cpu, Metric::P50Us, Metric::P95Us, Metric::P99Us];
        (format!("Cells: {}s", cell.case().unit()), columns)
    }

    fn page(results: &Results<Self>, store: &Store, looks: &Looks<'_>) -> Page {
        view::page(results, store, looks)
    }

    fn reproduction(plan: &Plan, cell: &Cell, runs: &[&Run<Seen>]) -> Option<String> {
        Some(view::reproduction(plan, cell, runs))
    }
}

/// The targets that allow fewer streams on a connection than the load engine has.
fn stream_limits(runs: &[Run<Seen>]) -> Vec<String> {
    let mut limited: BTreeMap<(&str, u32, u32), usize> = BTreeMap::new();
    for run in runs {
        let Some(load) = &run.seen.observation.load else { continue };
        let settings = load.http2.iter().flat_map(|http2| &http2.settings);
        let least = settings.filter_map(|settings| settings.max_concurrent_streams).min();
        if let Some(limit) = least.filter(|limit| *limit < load.asked.streams) {
            let target = run.run.cell.subject.as_str();
            *limited.entry((target, limit, load.asked.streams)).or_default() += 1;
        }
    }
    let line = |((target, limit, asked), count): ((&str, u32, u32), usize)| {
        format!(
            "{target} allows {limit} streams on a connection, the load engine has {asked}: in {}, requests waited in the \
             load engine.",
            plural(count as u64, "run")
        )
    };
    limited.into_iter().map(line).collect()
}

/// The targets that had to be killed, their stop signal, and how often it happened.
fn killed(runs: &[Run<Seen>]) -> Vec<String> {
    let mut killed: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut all: BTreeMap<&str, usize> = BTreeMap::new();
    for run in runs {
        let Some(process) = run.seen.observation.process("target") else { continue };
        let target = run.run.cell.subject.as_str();
        *all.entry(target).or_default() += 1;
        if process.killed {
            *killed.entry((target, &process.exit)).or_default() += 1;
        }
    }
    let line = |((target, how), count): ((&str, &str), usize)| {
        format!("{target} was {how}: in {count} of {}.", plural(all[target] as u64, "run"))
    };
    killed.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::super::testing::record;
    use super::*;
    use weir_load::result::{Http2Figures, PeerSettings};

    #[test]
    fn a_target_that_allows_fewer_streams_than_asked_is_named() {
        let with = |limits: &[Option<u32>], asked| {
            let mut run = record(Mode::H2cH1c, Load::Saturated);
            let load = run.seen.observation.load.as_mut().expect("a result");
            let settings = |limit: &Option<u32>| PeerSettings {
                max_concurrent_streams: *limit,
                ..PeerSettings::default()
            };
            let settings = limits.iter().map(settings).collect();
            load.http2 = Some(Http2Figures { settings, ..Http2Figures::default() });
            load.asked.streams = asked;
            run
        };
        let few = with(&[None, Some(100)], 128);
        let words = "fast allows 100 streams on a connection, the load engine has 128: in 2 runs, requests waited in the \
                     load engine.";
        assert_eq!(stream_limits(&[few.clone(), few]), [words]);
        assert_eq!(stream_limits(&[with(&[Some(100)], 100), with(&[None], 1000)]), [""; 0]);
    }
}
