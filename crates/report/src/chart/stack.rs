//! Horizontal bars of several parts each, on one scale, with the parts' names inside where they fit.

use super::axis::{Axis, plain, steps};
use super::palette::COLOURS;
use super::svg::{Anchor, Svg, cut};
use crate::model::{Part, SplitBar};

const WIDTH: f64 = 960.0;
const ROW: f64 = 52.0;
const BAR: f64 = 24.0;
const TOP: f64 = 2.0;
const AXIS: f64 = 36.0;
const LEFT: f64 = 2.0;
const RIGHT: f64 = WIDTH - 6.0;
/// The width of a character inside a bar.
const CHARACTER: f64 = 6.2;

/// Draws one chart; `None` without a bar.
pub(crate) fn draw(title: &str, axis_title: &str, bars: &[SplitBar]) -> Option<String> {
    let reach = bars.iter().map(|bar| bar.total).reduce(f64::max)?;
    let bottom = TOP + ROW * bars.len() as f64 + 4.0;
    let axis = Axis::from_zero(reach, axis_title, plain);
    let x = |value: f64| LEFT + axis.place(value) * (RIGHT - LEFT);
    let mut svg = Svg::new(WIDTH, bottom + AXIS);
    for value in steps(reach, 8.0) {
        svg.line([x(value), TOP, x(value), bottom], "grid");
        let anchor = if value == 0.0 { Anchor::Start } else { Anchor::Middle };
        svg.text(x(value), bottom + 14.0, anchor, "tick", plain(value));
    }
    svg.text(WIDTH / 2.0, bottom + 29.0, Anchor::Middle, "tick", axis_title);
    for (index, bar) in bars.iter().enumerate() {
        let top = TOP + ROW * index as f64;
        svg.text(LEFT, top + 16.0, Anchor::Start, "label", format!("{}: {:.1}", bar.name, bar.total));
        let mut from = 0.0;
        for part in &bar.parts {
            let (left, right) = (x(from), x(from + part.value));
            svg.rect([left, top + 22.0, right - left, BAR], &class(part));
            let room = ((right - left - 6.0) / CHARACTER) as usize;
            let words = format!("{} {:.1}", part.name, part.value);
            let shown = if words.len() <= room { words } else { cut(part.name, room) };
            if room >= LEAST {
                svg.text(left + 3.0, top + 38.0, Anchor::Start, "inside", shown);
            }
            from += part.value;
        }
    }
    svg.line([LEFT, TOP, LEFT, bottom], "axis");
    Some(svg.finish(title))
}

/// Shorter names say nothing.
const LEAST: usize = 4;

/// The classes of a part: eight colours in two strengths, with an edge that separates neighbours on paper.
pub(crate) fn class(part: &Part) -> String {
    let strength = if (part.place / COLOURS).is_multiple_of(2) { "" } else { " p1" };
    format!("part fill c{}{strength}", part.place % COLOURS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn parts_lie_end_to_end_and_wide_ones_have_their_names_inside() {
        let part = |name, place, value| Part { name, place, value, interval: (value, value) };
        let bar = SplitBar {
            name: "a<b".into(),
            total: 10.0,
            samples: 100,
            parts: vec![part("kernel TCP", 12, 8.0), part("copying", 11, 1.99), part("HTTP", 7, 0.01)],
            flame: String::new(),
            against: None,
            notes: Vec::new(),
        };
        let svg = draw("t", "CPU", &[bar]).expect("is drawn");
        testing::well_formed(&svg);
        let numbers = |name| -> Vec<f64> {
            testing::attributes(&svg, "rect", name).iter().filter_map(|text| text.parse().ok()).collect()
        };
        let (lefts, widths) = (numbers("x"), numbers("width"));
        assert!((lefts[0] + widths[0] - lefts[1]).abs() < 0.2, "{lefts:?} {widths:?}");
        assert!(
            svg.contains("kernel TCP 8.0") && !svg.contains(">HTTP") && svg.contains("a&lt;b: 10.0"),
            "{svg}"
        );
        assert_eq!(draw("t", "CPU", &[]), None);
    }
}
