//! The windows second by second: shows drifts, stalls and breakdowns that medians hide.

use super::parts::{Panel, heading, panels};
use crate::chart::axis::{Axis, count, plain, steps, time};
use crate::chart::plot::{self, Curve};
use crate::model::{Group, Report};

/// Maximum panels: those that moved most.
const MOST: usize = 24;

pub(crate) fn render(report: &Report) -> String {
    let mut moved: Vec<(usize, f64)> = report
        .groups
        .iter()
        .enumerate()
        .filter(|(_, group)| !group.courses.is_empty())
        .map(|(index, group)| (index, group.courses.iter().map(drift).fold(0.0, f64::max)))
        .collect();
    if moved.is_empty() {
        return String::new();
    }
    let left_out = moved.len().saturating_sub(MOST);
    moved.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
    moved.truncate(MOST);
    moved.sort_by_key(|(index, _)| *index);
    let shown: Vec<Panel<'_>> = moved.iter().filter_map(|(index, _)| panel(&report.groups[*index])).collect();
    let mut note = "The lines should be flat. Closed loop: rate (higher is better); open loop: median response time (lower is \
                    better). Each point is the median over the valid runs, of one second or, in long windows, of the mean \
                    (rate) or the maximum (time) of several."
        .to_owned();
    if left_out > 0 {
        note.push_str(&format!(
            " The {MOST} panels that moved most from first to last third are shown; {left_out} more are left out: \
             their seconds are in <code>runs/</code>."
        ));
    }
    heading("Second by second", &note) + &panels(&shown)
}

/// The change from the first third to the last, as a logarithm.
fn drift(curve: &Curve) -> f64 {
    let third = (curve.points.len() / 3).max(1);
    let mean = |points: &[plot::Point]| points.iter().map(|point| point.y).sum::<f64>() / points.len() as f64;
    let (first, last) = (mean(&curve.points[..third]), mean(&curve.points[curve.points.len() - third..]));
    if first > 0.0 && last > 0.0 { (last / first).ln().abs() } else { f64::MAX }
}

fn panel(group: &Group) -> Option<Panel<'_>> {
    let all = || group.courses.iter().flat_map(|curve| &curve.points);
    let end = all().map(|point| point.x).reduce(f64::max)?;
    let most = all().map(|point| point.y).fold(0.0, f64::max);
    let ticks = steps(end, 5.0).into_iter().map(|value| (value, plain(value))).collect();
    let x = Axis::given(0.0, end, ticks, "seconds of the window");
    let y = match group.is_saturated {
        true => Axis::from_zero(most, format!("{}s per second", group.unit), count),
        false => Axis::from_zero(most, "median response time", time),
    };
    let title = format!("{} second by second, {} {}", y.title, group.mode, group.words());
    let chart = plot::draw(&title, &x, &y, &group.courses)?;
    Some(Panel { group, words: group.words(), chart })
}
