//! Gateway CPU per request or handshake: bars with intervals.

use super::parts::{alike, bar_panels, heading, panels};
use crate::chart::bars::Bar;
use crate::model::{Cell, Group, Report};

/// A given rate may be anywhere relative to the maximum.
const CALIBRATED: &str = "Shorter is better. All targets of a mode are offered the same rate, below every target's maximum in \
                          calibration. Bars are medians over blocks, whiskers the interval of the location over blocks.";
const GIVEN: &str = "Shorter is better. All targets of a mode are offered the same rate, set by the experiment. Bars are \
                     medians over blocks, whiskers the interval of the location over blocks.";
const SATURATED: &str = "Shorter is better. Each target runs as fast as the closed loop allows, so the rates \
                         differ; the percentage is the utilisation of its cores. Not comparable with the equal rate.";

pub(crate) fn render(report: &Report) -> String {
    let mut html = String::new();
    for (is_saturated, at) in [(false, "at one equal rate"), (true, "at saturation")] {
        let is_shown = |group: &&Group| {
            group.is_saturated == is_saturated && group.cells.iter().any(|cell| cell.has_gateway)
        };
        for (unit, groups) in alike(report.groups.iter().filter(is_shown), |group| group.unit) {
            let note = match is_saturated {
                true => SATURATED,
                false if groups.iter().all(|group| group.is_calibrated) => CALIBRATED,
                false => GIVEN,
            };
            html.push_str(&heading(&format!("CPU per {unit} {at}"), note));
            let titles = |group: &Group| {
                let title = format!("CPU per {unit}, {} {}", group.mode, group.words());
                [title, format!("CPU microseconds of the gateway per {unit}")]
            };
            html.push_str(&panels(&bar_panels(&groups, titles, |group, cell| bar(report, group, cell))));
        }
    }
    html
}

fn bar<'a>(report: &'a Report, group: &Group, cell: &Cell) -> Bar<'a> {
    let subject = &report.subjects[cell.subject];
    let mut words = match (cell.cpu_us, cell.cpu_interval) {
        (None, _) if cell.valid_runs == 0 => cell.validity.clone(),
        (None, _) => "unknown".into(),
        (Some(value), None) => format!("{value:.1}"),
        (Some(value), Some((low, high))) => format!("{value:.1} [{low:.1}, {high:.1}]"),
    };
    if let Some(share) = cell.utilisation.filter(|_| group.is_saturated && cell.cpu_us.is_some()) {
        words.push_str(&format!(" at {:.0} %", share * 100.0));
    }
    let (name, look, parts) = (&subject.name, subject.look, Vec::new());
    Bar { name, look, value: cell.cpu_us, interval: cell.cpu_interval, parts, words }
}
