//! Latency by percentile: how long the slowest half, tenth, hundredth, thousandth of the requests take.

use super::parts::{Panel, panels};
use crate::chart::axis::{Axis, time};
use crate::chart::{percentiles, plot};
use crate::markup::details;
use crate::model::{Group, Report};

const EQUAL: &str = "Lower is better. Response times from the planned instant of each request, at the equal rate, all valid runs of \
                     a cell merged. A curve ends where fewer than ten samples lie beyond, or where samples are \
                     censored. Curves without a gateway are from the mode with the same client side, at an equal or \
                     lower rate.";
const SATURATED: &str = "Lower is better. Response times in a closed loop at saturation: they show queueing in the connections, not \
                         what a service would see.";

pub(crate) fn render(report: &Report) -> String {
    let of_load = |is_saturated: bool| -> Vec<Panel<'_>> {
        report.groups.iter().filter(|group| group.is_saturated == is_saturated).filter_map(panel).collect()
    };
    let (equal, saturated) = (of_load(false), of_load(true));
    let part = |note: &str, shown: &[Panel<'_>]| format!("<p class=\"note\">{note}</p>\n{}", panels(shown));
    match (equal.is_empty(), saturated.is_empty()) {
        (true, true) => String::new(),
        (true, false) => format!("<h2>Latency at saturation</h2>\n{}", part(SATURATED, &saturated)),
        (false, true) => format!("<h2>Latency at one equal rate</h2>\n{}", part(EQUAL, &equal)),
        (false, false) => {
            let folded = details(false, "The same at saturation", &part(SATURATED, &saturated));
            format!("<h2>Latency at one equal rate</h2>\n{}{folded}", part(EQUAL, &equal))
        }
    }
}

fn panel(group: &Group) -> Option<Panel<'_>> {
    let all = || group.curves.iter().flat_map(|curve| &curve.points);
    let furthest = all().map(|point| point.x).reduce(f64::max)?;
    let low = all().map(|point| point.y).fold(f64::INFINITY, f64::min);
    let high = all().map(|point| point.y).fold(0.0, f64::max);
    let y = Axis::log(low, high, "response time: lower is better", time);
    let title = format!("response time by percentile, {} {}", group.mode, group.words());
    let chart = plot::draw(&title, &percentiles::axis(furthest), &y, &group.curves)?;
    Some(Panel { group, words: group.words(), chart })
}
