//! Horizontal bars from zero, each below its name and figures: long names fit, even on a phone.

use super::axis::{Axis, plain, steps};
use super::palette::Look;
use super::plot::WIDTH;
use super::svg::{Anchor, Svg, cut};

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar<'a> {
    /// Shown above it, on the left.
    pub name: &'a str,
    /// Its colour and shape.
    pub look: Look,
    /// `None`: no bar; `words` say why.
    pub value: Option<f64>,
    /// The interval of the value, drawn as a whisker.
    pub interval: Option<(f64, f64)>,
    /// The parts of the value, from zero: each is drawn lighter than the one before. Empty for a single part.
    pub parts: Vec<f64>,
    /// Shown beside the name: the figures.
    pub words: String,
}

const ROW: f64 = 32.0;
const BAR: f64 = 10.0;
const TOP: f64 = 2.0;
const AXIS: f64 = 36.0;
const LEFT: f64 = 2.0;
const RIGHT: f64 = WIDTH - 6.0;
/// Characters per row.
const ROW_LENGTH: usize = 56;

/// The largest value in a chart of these bars.
pub fn reach<'a>(bars: impl IntoIterator<Item = &'a Bar<'a>>) -> f64 {
    let end =
        |bar: &Bar<'_>| bar.interval.map(|(_, high)| high).into_iter().chain(bar.value).reduce(f64::max);
    bars.into_iter().filter_map(end).fold(0.0, f64::max)
}

/// Draws one chart; charts with the same `reach` can be compared by eye. `None` without a bar to draw.
pub fn draw(title: &str, axis_title: &str, bars: &[Bar<'_>], reach: f64) -> Option<String> {
    if bars.is_empty() {
        return None;
    }
    let bottom = TOP + ROW * bars.len() as f64 + 4.0;
    let axis = Axis::from_zero(reach, axis_title, plain);
    let x = |value: f64| LEFT + axis.place(value) * (RIGHT - LEFT);
    let mut svg = Svg::new(WIDTH, bottom + AXIS);
    for value in steps(reach, 5.0) {
        svg.line([x(value), TOP, x(value), bottom], "grid");
        let anchor = if value == 0.0 { Anchor::Start } else { Anchor::Middle };
        svg.text(
            x(value) - if value == 0.0 { LEFT } else { 0.0 },
            bottom + 14.0,
            anchor,
            "tick",
            plain(value),
        );
    }
    svg.text(WIDTH / 2.0, bottom + 29.0, Anchor::Middle, "tick", axis_title);
    for (index, bar) in bars.iter().enumerate() {
        let top = TOP + ROW * index as f64;
        let name = cut(bar.name, ROW_LENGTH / 2);
        let room = ROW_LENGTH - name.chars().count();
        svg.path(&bar.look.marker(LEFT + 5.0, top + 11.0, 4.0), &bar.look.fill());
        svg.text(LEFT + 14.0, top + 15.0, Anchor::Start, "label", name);
        svg.text(RIGHT, top + 15.0, Anchor::End, "value", cut(&bar.words, room));
        let Some(value) = bar.value else { continue };
        let mut from = 0.0;
        let whole = if bar.parts.is_empty() { std::slice::from_ref(&value) } else { &bar.parts };
        for (index, part) in whole.iter().enumerate() {
            let (left, right) = (x(from), x(from + part));
            svg.rect([left, top + 19.0, right - left, BAR], &format!("{} p{index}", bar.look.fill()));
            from += part;
        }
        if let Some((low, high)) = bar.interval {
            let (low, high, middle) = (x(low), x(high), top + 19.0 + BAR / 2.0);
            let (up, down) = (middle - 4.0, middle + 4.0);
            let path = format!(
                "M{low:.1} {middle:.1}H{high:.1}M{low:.1} {up:.1}V{down:.1}M{high:.1} {up:.1}V{down:.1}"
            );
            // Light below dark: visible on the bar and on the background.
            svg.path(&path, "halo");
            svg.path(&path, "whisker");
        }
    }
    svg.line([LEFT, TOP, LEFT, bottom], "axis");
    Some(svg.finish(title))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn bar(name: &str, value: Option<f64>, interval: Option<(f64, f64)>) -> Bar<'_> {
        Bar {
            name,
            look: Look { place: 1, is_again: false },
            value,
            interval,
            parts: Vec::new(),
            words: "why".into(),
        }
    }

    #[test]
    fn bars_are_as_long_as_their_values_and_whiskers_lie_within() {
        let bars = [
            bar("a", Some(20.0), Some((18.0, 25.0))),
            bar("b", Some(40.0), Some((35.0, 44.0))),
            bar("c", None, None),
        ];
        let reach = reach(&bars);
        assert_eq!(reach, 44.0);
        let svg = draw("t", "CPU", &bars, reach).expect("is drawn");
        testing::well_formed(&svg);
        let widths: Vec<f64> = testing::attributes(&svg, "rect", "width")
            .iter()
            .filter_map(|width| width.parse().ok())
            .collect();
        assert_eq!(widths.len(), 2, "no bar without a value");
        assert!((widths[1] / widths[0] - 2.0).abs() < 0.01, "{widths:?}");
        for path in testing::attributes(&svg, "path", "d").iter().filter(|path| path.contains('H')) {
            let (low, high) = path[1..].split_once('H').expect("a whisker");
            let low: f64 = low.split(' ').next().and_then(|x| x.parse().ok()).expect("a place");
            let high: f64 = high.split('M').next().and_then(|x| x.parse().ok()).expect("a place");
            assert!(LEFT <= low && low < high && high <= RIGHT, "{path}");
        }
    }

    #[test]
    fn the_parts_of_a_bar_lie_end_to_end() {
        let mut whole = bar("a", Some(40.0), None);
        whole.parts = vec![10.0, 10.0, 20.0];
        let svg = draw("t", "CPU", &[whole], 40.0).expect("is drawn");
        testing::well_formed(&svg);
        let numbers = |name| {
            let of = testing::attributes(&svg, "rect", name);
            of.iter().filter_map(|text| text.parse().ok()).collect::<Vec<f64>>()
        };
        let (lefts, widths) = (numbers("x"), numbers("width"));
        assert_eq!(widths.len(), 3);
        assert!((lefts[0] + widths[0] - lefts[1]).abs() < 0.2, "{lefts:?} {widths:?}");
        assert!((widths[2] / widths[0] - 2.0).abs() < 0.05, "{widths:?}");
    }

    #[test]
    fn without_any_value_the_reasons_stand_and_nothing_else_breaks() {
        let bars = [bar("a", None, None)];
        let svg = draw("t", "CPU", &bars, reach(&bars)).expect("is drawn");
        testing::well_formed(&svg);
        assert!(svg.contains(">why<") && !svg.contains("<rect") && !svg.contains("NaN"));
        assert_eq!(draw("t", "CPU", &[], 0.0), None);
    }
}
