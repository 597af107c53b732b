//! Bars of CPU per request or handshake, one chart for each mode, with the interval over blocks as a whisker.

use super::svg::{Anchor, Svg, steps};
use crate::summary::CellSummary;

/// One bar.
#[derive(Clone, Debug)]
pub(crate) struct Bar<'a> {
    pub(crate) cell: &'a CellSummary,
    pub(crate) colour: &'static str,
    /// The second of the A/A pair is drawn paler.
    pub(crate) again: bool,
}

const WIDTH: f64 = 540.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 176.0;
const ROW: f64 = 30.0;
const TOP: f64 = 8.0;
const AXIS: f64 = 34.0;

/// The largest value that a chart of these cells has to reach.
pub(crate) fn reach<'a>(cells: impl IntoIterator<Item = &'a CellSummary>) -> f64 {
    let ends =
        cells.into_iter().filter_map(|cell| cell.cpu_us_interval().map(|(_, high)| high).or(cell.cpu_us()));
    ends.fold(0.0, f64::max)
}

/// Draws one chart; all charts of a load share `reach`, so that modes can be compared by eye.
pub(crate) fn draw(title: &str, bars: &[Bar<'_>], reach: f64) -> String {
    let bottom = TOP + ROW * bars.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + AXIS);
    let unit = bars.first().map_or("request", |bar| bar.cell.case.unit());
    let x = |value: f64| LEFT + value / reach.max(f64::MIN_POSITIVE) * (WIDTH - LEFT - RIGHT);
    for step in steps(reach, 5.0) {
        svg.line([x(step), TOP, x(step), bottom], "grid");
        svg.text(x(step), bottom + 14.0, Anchor::Middle, "tick", step);
    }
    svg.text(
        x(reach / 2.0),
        bottom + 29.0,
        Anchor::Middle,
        "tick",
        format!("CPU microseconds of the gateway per {unit}"),
    );
    for (index, Bar { cell, colour, again }) in bars.iter().enumerate() {
        let top = TOP + ROW * index as f64;
        let middle = top + ROW / 2.0;
        svg.text(LEFT - 8.0, middle + 4.0, Anchor::End, "label", &cell.target);
        let Some(value) = cell.cpu_us() else {
            svg.text(LEFT + 6.0, middle + 4.0, Anchor::Start, "tick", &cell.validity);
            continue;
        };
        svg.rect([LEFT, top + 5.0, x(value) - LEFT, ROW - 10.0], colour, if *again { 0.45 } else { 0.9 });
        let mut end = x(value);
        let mut words = format!("{value:.1}");
        if let Some((low, high)) = cell.cpu_us_interval() {
            svg.line([x(low), middle, x(high), middle], "whisker");
            for edge in [low, high] {
                svg.line([x(edge), middle - 4.0, x(edge), middle + 4.0], "whisker");
            }
            end = end.max(x(high));
            words.push_str(&format!(" [{low:.1}, {high:.1}]"));
        }
        if cell.rate.is_none()
            && let Some(utilisation) = cell.utilisation
        {
            words.push_str(&format!(" {:.0} %", utilisation * 100.0));
        }
        svg.text(end + 7.0, middle + 4.0, Anchor::Start, "value", words);
    }
    svg.line([LEFT, TOP, LEFT, bottom], "axis");
    svg.finish(title)
}
