//! How results of gateways are shown.

use super::levels::{Place as _, Words};
use super::run::Seen;
use super::units::unit_metrics;
use super::vary::Vary;
use super::{Gateway, Load, describe, summary, table, view};
use crate::cell::Cell;
use crate::error::LabError;
use crate::instrument::{Looks, Page, Shown};
use crate::metric::Metric;
use crate::plan::Plan;
use crate::results::Results;
use crate::run::Run;
use crate::store::Store;
use crate::summary::Summary;

impl Shown for Gateway {
    fn complete(results: &mut Results<Self>) -> Result<(), LabError> {
        let killed = summary::killed(&results.runs);
        results.summary.notes.extend(killed);
        Ok(())
    }

    fn warnings(summary: &Summary) -> Vec<String> {
        let placement = summary.machine.placement.as_ref();
        let note = placement.and_then(|placement| placement.note.as_ref());
        note.map(|note| format!("CORES: {note}.")).into_iter().collect()
    }

    fn setting(summary: &Summary) -> String {
        let placement = summary.machine.placement.as_ref();
        let sharing = placement.and_then(crate::placement::Placement::sharing);
        format!(
            "Client, gateway and origin ran on one machine over {}{}.",
            summary.machine.network,
            sharing.map_or_else(String::new, |sharing| format!("; {sharing}")),
        )
    }

    fn row(plan: &Plan, cell: &Cell, compared: Option<&str>) -> String {
        Vary::of(plan).row(&cell.place(), compared)
    }

    fn place_title(cell: &Cell) -> String {
        format!("{}, {}", cell.mode(), Words(&cell.place()))
    }

    fn chapter(cell: &Cell) -> String {
        cell.mode().to_string()
    }

    fn family_title(metric: Metric, family: &str) -> String {
        let at = match Load::of(family) {
            Load::EqualRate => "at one equal rate",
            Load::Saturated => "at saturation",
        };
        let whose = if metric.is_cpu() { " (the gateway's)" } else { "" };
        format!("{}{whose}, {at}", metric.title())
    }

    fn describe(text: &mut String, plan: &Plan, targets: &Self::Found) {
        describe::subjects(text, plan, targets);
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
