//! How many requests (or handshakes) a second, against the number of users where that varies.

use super::parts::{Panel, heading, in_order, panels};
use crate::chart::axis::{Axis, count};
use crate::chart::plot::{Line, Point};
use crate::chart::{bars, plot};
use crate::model::{Cell, Group, Report};

pub(crate) fn render(report: &Report) -> String {
    let groups: Vec<&Group> = report.groups.iter().filter(|group| group.is_saturated).collect();
    let shown = if groups.iter().any(|group| group.users_vary) {
        lines(report, &groups)
    } else {
        columns(report, &groups)
    };
    if shown.is_empty() {
        return String::new();
    }
    let note = "Higher is better. Each connection sends its next request when it has its answer. Medians over blocks. What held \
                a rate down stands in the next table: where it was not the gateway, the rate is not the gateway's either.";
    heading("Throughput at saturation", note) + &panels(&shown)
}

/// One panel for each mode and further conditions, a line for each target.
fn lines<'a>(report: &Report, groups: &[&'a Group]) -> Vec<Panel<'a>> {
    let key = |group: &Group| (group.mode.clone(), group.conditions.clone(), group.unit);
    let mut shown = Vec::new();
    for of_panel in in_order(groups.iter().map(|group| key(group))) {
        let mut along: Vec<&Group> = groups.iter().copied().filter(|group| key(group) == of_panel).collect();
        along.sort_by_key(|group| group.users);
        let users: Vec<f64> = along.iter().map(|group| f64::from(group.users)).collect();
        let lines: Vec<Line<'_>> = report
            .subjects
            .iter()
            .enumerate()
            .map(|(index, subject)| {
                let point = |group: &&Group| {
                    let cell = group.cells.iter().find(|cell| cell.subject == index)?;
                    Some(Point {
                        x: f64::from(group.users),
                        y: cell.per_second?,
                        interval: None,
                        is_marked: true,
                    })
                };
                Line {
                    name: &subject.name,
                    look: subject.look,
                    points: along.iter().filter_map(point).collect(),
                }
            })
            .collect();
        let most = lines.iter().flat_map(|line| &line.points).map(|point| point.y).fold(0.0, f64::max);
        let x = Axis::of_values(&users, "connections (users)", count);
        let y = Axis::from_zero(most, format!("{}s per second: higher is better", of_panel.2), count);
        let title = format!("{}s per second against connections, {} {}", of_panel.2, of_panel.0, of_panel.1);
        if let Some(chart) = plot::draw(&title, &x, &y, &lines) {
            shown.push(Panel { group: along[0], words: of_panel.1, chart });
        }
    }
    shown
}

/// One panel for each group, a bar for each target.
fn columns<'a>(report: &Report, groups: &[&'a Group]) -> Vec<Panel<'a>> {
    let mut all = Vec::new();
    for group in groups {
        let bars: Vec<bars::Bar<'_>> = group
            .cells
            .iter()
            .map(|cell| bars::Bar {
                name: &report.subjects[cell.subject].name,
                look: report.subjects[cell.subject].look,
                value: cell.per_second,
                interval: None,
                parts: Vec::new(),
                words: words(cell),
            })
            .collect();
        all.push((*group, bars));
    }
    let reach = bars::reach(all.iter().flat_map(|(_, bars)| bars));
    let draw = |(group, bars): &(&'a Group, Vec<bars::Bar<'_>>)| {
        let axis = format!("{}s per second: longer is better", group.unit);
        let chart = bars::draw(&format!("{}s per second, {}", group.unit, group.mode), &axis, bars, reach)?;
        Some(Panel { group, words: group.words(), chart })
    };
    all.iter().filter_map(draw).collect()
}

fn words(cell: &Cell) -> String {
    match (cell.per_second, &cell.limit) {
        (None, _) => cell.validity.clone(),
        (Some(rate), Some(limit)) => format!("{rate:.0}, limit: {limit}"),
        (Some(rate), None) => format!("{rate:.0}"),
    }
}
