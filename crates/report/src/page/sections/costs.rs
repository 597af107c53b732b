//! CPU of the gateway per request or handshake: bars with intervals.

use super::parts::{Panel, heading, in_order, panels};
use crate::chart::bars::{self, Bar};
use crate::model::{Cell, Group, Report};

/// Of a rate that was given nobody knows where it lies.
const CALIBRATED: &str = "Shorter is better. All targets of a mode are offered the same rate, below every target's maximum in \
                          calibration. Bars are medians over blocks, whiskers the interval of the location over blocks.";
const GIVEN: &str = "Shorter is better. All targets of a mode are offered the same rate, which the experiment gives. Bars are \
                     medians over blocks, whiskers the interval of the location over blocks.";
const SATURATED: &str = "Shorter is better. Each target runs as fast as the closed loop lets it, so the rates differ; the \
                         percentage is how much of its cores the target used. Not to be compared with the equal rate.";

pub(crate) fn render(report: &Report) -> String {
    let mut html = String::new();
    for (is_saturated, at) in [(false, "at one equal rate"), (true, "at saturation")] {
        let has_gateway = |group: &&Group| group.cells.iter().any(|cell| cell.has_gateway);
        let of_load =
            report.groups.iter().filter(|group| group.is_saturated == is_saturated).filter(has_gateway);
        let groups: Vec<&Group> = of_load.collect();
        for unit in in_order(groups.iter().map(|group| group.unit)) {
            let of_unit: Vec<&Group> = groups.iter().copied().filter(|group| group.unit == unit).collect();
            let note = match is_saturated {
                true => SATURATED,
                false if of_unit.iter().all(|group| group.is_calibrated) => CALIBRATED,
                false => GIVEN,
            };
            html.push_str(&heading(&format!("CPU per {unit} {at}"), note));
            html.push_str(&panels(&charts(report, unit, &of_unit)));
        }
    }
    html
}

fn charts<'a>(report: &Report, unit: &str, groups: &[&'a Group]) -> Vec<Panel<'a>> {
    let bars =
        |group: &Group| -> Vec<Bar<'_>> { group.cells.iter().map(|cell| bar(report, cell, group)).collect() };
    let all: Vec<(&Group, Vec<Bar<'_>>)> = groups.iter().map(|group| (*group, bars(group))).collect();
    let reach = bars::reach(all.iter().flat_map(|(_, bars)| bars));
    let axis = format!("CPU microseconds of the gateway per {unit}");
    let draw = |(group, bars): &(&'a Group, Vec<Bar<'_>>)| {
        let title = format!("CPU per {unit}, {} {}", group.mode, group.words());
        Some(Panel { group, words: group.words(), chart: bars::draw(&title, &axis, bars, reach)? })
    };
    all.iter().filter_map(draw).collect()
}

fn bar<'a>(report: &'a Report, cell: &Cell, group: &Group) -> Bar<'a> {
    let subject = &report.subjects[cell.subject];
    let mut words = match (cell.cpu_us, cell.cpu_interval) {
        (None, _) if cell.valid_runs == 0 => cell.validity.clone(),
        (None, _) => "not known".into(),
        (Some(value), None) => format!("{value:.1}"),
        (Some(value), Some((low, high))) => format!("{value:.1} [{low:.1}, {high:.1}]"),
    };
    if let Some(share) = cell.utilisation.filter(|_| group.is_saturated && cell.cpu_us.is_some()) {
        words.push_str(&format!(" at {:.0} %", share * 100.0));
    }
    let (name, look, parts) = (&subject.name, subject.look, Vec::new());
    Bar { name, look, value: cell.cpu_us, interval: cell.cpu_interval, parts, words }
}
