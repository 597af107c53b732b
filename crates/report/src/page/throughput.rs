//! Requests (or handshakes) per second, against the number of users if that varies.

use super::parts::{Panel, alike, bar_panels, heading, panels};
use crate::chart::axis::{Axis, count};
use crate::chart::bars::Bar;
use crate::chart::plot::{self, Curve, Point};
use crate::model::{Cell, Group, Report, Subject};

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
    let note = "Higher is better. Each connection sends its next request after its response. Medians over blocks. The next table \
                shows what limited each rate: if it was not the gateway, the rate is not the gateway's either.";
    heading("Throughput at saturation", note) + &panels(&shown)
}

/// A panel per mode and further conditions, a line per target.
fn lines<'a>(report: &Report, groups: &[&'a Group]) -> Vec<Panel<'a>> {
    let key = |group: &&'a Group| (&group.mode, &group.conditions, group.unit);
    let panel = |((mode, conditions, unit), mut along): ((&String, &String, &str), Vec<&'a Group>)| {
        along.sort_by_key(|group| group.users);
        let users: Vec<f64> = along.iter().map(|group| f64::from(group.users)).collect();
        let line = |(index, subject): (usize, &Subject)| {
            let point = |group: &&Group| {
                let cell = group.cells.iter().find(|cell| cell.subject == index)?;
                let (x, y) = (f64::from(group.users), cell.per_second?);
                Some(Point { x, y, interval: None, is_marked: true })
            };
            let points = along.iter().filter_map(point).collect();
            Curve { name: subject.name.clone(), look: subject.look, points }
        };
        let lines: Vec<Curve> = report.subjects.iter().enumerate().map(line).collect();
        let most = lines.iter().flat_map(|line| &line.points).map(|point| point.y).fold(0.0, f64::max);
        let x = Axis::of_values(&users, "connections (users)", count);
        let y = Axis::from_zero(most, format!("{unit}s per second: higher is better"), count);
        let title = format!("{unit}s per second against connections, {mode} {conditions}");
        let chart = plot::draw(&title, &x, &y, &lines)?;
        Some(Panel { group: along[0], words: conditions.clone(), chart })
    };
    alike(groups.iter().copied(), key).into_iter().filter_map(panel).collect()
}

/// A panel per group, a bar per target.
fn columns<'a>(report: &'a Report, groups: &[&'a Group]) -> Vec<Panel<'a>> {
    let titles = |Group { unit, mode, .. }: &Group| {
        [format!("{unit}s per second, {mode}"), format!("{unit}s per second: longer is better")]
    };
    bar_panels(groups, titles, |_, cell| {
        let Subject { name, look, .. } = &report.subjects[cell.subject];
        let (value, words) = (cell.per_second, words(cell));
        Bar { name, look: *look, value, interval: None, parts: Vec::new(), words }
    })
}

fn words(cell: &Cell) -> String {
    match (cell.per_second, &cell.limit) {
        (None, _) => cell.validity.clone(),
        (Some(rate), Some(limit)) => format!("{rate:.0}, limit: {limit}"),
        (Some(rate), None) => format!("{rate:.0}"),
    }
}
