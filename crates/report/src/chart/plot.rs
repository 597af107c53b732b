//! Line charts, each line labelled at its end instead of in a legend.

use super::axis::Axis;
use super::palette::Look;
use super::svg::{Anchor, Svg, cut};

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The name of its subject; shown at its end.
    pub name: String,
    /// Its colour, dash and shape.
    pub look: Look,
    /// In order of x.
    pub points: Vec<Point>,
}

/// One point of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// In the unit of the x axis.
    pub x: f64,
    /// In the unit of the y axis.
    pub y: f64,
    /// The interval of `y`.
    pub interval: Option<(f64, f64)>,
    /// Whether to draw the target's marker here.
    pub is_marked: bool,
}

/// The width of a drawing, in its own units.
pub(crate) const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 216.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 36.0;
/// The height of a name at a line's end.
const NAME: f64 = 13.0;
/// Maximum characters of such a name.
const NAME_LENGTH: usize = 18;
/// The width of a character, about.
const CHARACTER: f64 = 6.1;

/// Draws one chart; `None` when no line has a point. `title` is for screen readers.
pub fn draw(title: &str, x: &Axis, y: &Axis, lines: &[Curve]) -> Option<String> {
    let lines: Vec<&Curve> = lines.iter().filter(|line| !line.points.is_empty()).collect();
    if lines.is_empty() {
        return None;
    }
    let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0) as f64 * CHARACTER;
    let left = 10.0 + longest(&mut y.ticks.iter().map(|(_, text)| text.chars().count()));
    let names = longest(&mut lines.iter().map(|line| line.name.chars().count().min(NAME_LENGTH)));
    let right = WIDTH - 22.0 - names;
    let height = HEIGHT.max(TOP + BOTTOM + NAME * (lines.len() as f64 + 0.5));
    let bottom = height - BOTTOM;
    let at = |point: &Point| {
        (left + x.place(point.x) * (right - left), bottom - y.place(point.y) * (bottom - TOP))
    };

    let mut svg = Svg::new(WIDTH, height);
    svg.text(0.0, 11.0, Anchor::Start, "tick", &y.title);
    for (value, text) in &y.ticks {
        let height = bottom - y.place(*value) * (bottom - TOP);
        svg.line([left, height, right, height], "grid");
        svg.text(left - 5.0, height + 4.0, Anchor::End, "tick", text);
    }
    for (value, text) in &x.ticks {
        let place = left + x.place(*value) * (right - left);
        svg.line([place, TOP, place, bottom], "grid");
        svg.text(place, bottom + 14.0, Anchor::Middle, "tick", text);
    }
    svg.text((left + right) / 2.0, bottom + 29.0, Anchor::Middle, "tick", &x.title);
    svg.line([left, bottom, right, bottom], "axis");

    let ends: Vec<(f64, f64)> = lines.iter().filter_map(|line| line.points.last().map(at)).collect();
    let heights: Vec<f64> = ends.iter().map(|(_, height)| *height).collect();
    let named = spread(&heights, NAME, [TOP + 4.0, bottom - 2.0]);
    for ((line, end), name) in lines.iter().zip(&ends).zip(&named) {
        if end.0 < right - 2.0 || (end.1 - name).abs() > 2.0 {
            svg.line([end.0, end.1, right + 6.0, *name], "leader");
        }
        draw_line(&mut svg, line, at);
        svg.path(&line.look.marker(right + 11.0, *name, 3.6), &line.look.fill());
        svg.text(right + 18.0, name + 4.0, Anchor::Start, "name", cut(&line.name, NAME_LENGTH));
    }
    Some(svg.finish(title))
}

fn draw_line(svg: &mut Svg, line: &Curve, at: impl Fn(&Point) -> (f64, f64)) {
    let placed: Vec<(f64, f64)> = line.points.iter().map(&at).collect();
    if placed.len() > 1 {
        svg.polyline(&placed, &line.look.line());
    }
    for (point, (x, y)) in line.points.iter().zip(&placed) {
        if let Some((low, high)) = point.interval {
            let [low, high] = [low, high].map(|edge| at(&Point { y: edge, ..*point }).1);
            svg.path(
                &format!("M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h6M{:.1} {high:.1}h6", x - 3.0, x - 3.0),
                &format!("whisker {}", line.look.colour()),
            );
        }
        if point.is_marked {
            svg.path(&line.look.marker(*x, *y, 3.6), &line.look.fill());
        }
    }
}

/// Spreads heights so that each is at least `gap` from the next, in order, within `low` and
/// `high` if there is room; those with enough room stay.
fn spread(heights: &[f64], gap: f64, [low, high]: [f64; 2]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|left, right| heights[*left].total_cmp(&heights[*right]));
    let mut placed = heights.to_vec();
    let mut next = low;
    for index in &order {
        placed[*index] = placed[*index].max(next);
        next = placed[*index] + gap;
    }
    let mut most = high;
    for index in order.iter().rev() {
        placed[*index] = placed[*index].min(most);
        most = placed[*index] - gap;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::axis::count;
    use crate::testing;

    fn line(name: &str, place: usize, values: &[(f64, f64)]) -> Curve {
        let point =
            |&(x, y): &(f64, f64)| Point { x, y, interval: Some((y * 0.9, y * 1.1)), is_marked: true };
        let look = Look { place, is_again: false };
        Curve { name: name.to_owned(), look, points: values.iter().map(point).collect() }
    }

    fn drawn(lines: &[Curve], most: f64) -> Option<String> {
        let x = Axis::of_values(&[100.0, 1000.0], "users", count);
        draw("a title", &x, &Axis::from_zero(most, "per second", count), lines)
    }

    #[test]
    fn higher_values_are_higher_and_whiskers_lie_within_the_plot() {
        let svg = drawn(&[line("a", 0, &[(100.0, 50.0), (1000.0, 100.0)])], 110.0).expect("is drawn");
        testing::well_formed(&svg);
        let polyline = testing::attributes(&svg, "polyline", "points");
        let heights: Vec<f64> =
            polyline[0].split(' ').filter_map(|pair| pair.split_once(',')?.1.parse().ok()).collect();
        assert!(heights[1] < heights[0], "{heights:?}");
        for path in testing::attributes(&svg, "path", "d").iter().filter(|path| path.contains('V')) {
            let (low, high) = path[1..].split_once('V').expect("a whisker");
            let low: f64 = low.split(' ').nth(1).and_then(|y| y.parse().ok()).expect("a height");
            let high: f64 = high.split('M').next().and_then(|y| y.parse().ok()).expect("a height");
            assert!(TOP <= high && high < low && low <= HEIGHT - BOTTOM, "{path}");
        }
        for part in [">users<", ">per second<", ">a<", ">100<", ">1000<"] {
            assert!(svg.contains(part), "{part}");
        }
    }

    #[test]
    fn nothing_to_draw_is_no_chart() {
        assert_eq!(drawn(&[], 1.0), None);
        assert_eq!(drawn(&[line("a", 0, &[])], 1.0), None);
    }

    #[test]
    fn twenty_lines_with_long_names_have_a_name_each_within_the_drawing() {
        let lines: Vec<_> = (0..20)
            .map(|place| line(&format!("a-target-with-a-long-name-{place}"), place, &[(100.0, 5.0)]))
            .collect();
        let svg = drawn(&lines, 5.5).expect("is drawn");
        testing::well_formed(&svg);
        let view: Vec<f64> = testing::attributes(&svg, "svg", "viewBox")[0]
            .split(' ')
            .filter_map(|part| part.parse().ok())
            .collect();
        let mut heights: Vec<f64> = svg
            .split("<text ")
            .filter(|text| text.contains("class=\"name\""))
            .filter_map(|text| text.split("y=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 20);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] > 12.0), "{heights:?}");
        assert!(heights[0] > 0.0 && heights[19] < view[3], "{heights:?} in {view:?}");
    }

    #[test]
    fn labels_are_moved_apart_and_keep_their_order() {
        assert_eq!(spread(&[10.0, 50.0], 12.0, [0.0, 100.0]), [10.0, 50.0], "far enough");
        assert_eq!(spread(&[50.0, 49.0], 12.0, [0.0, 100.0]), [61.0, 49.0]);
        assert_eq!(spread(&[99.0, 98.0, 97.0], 12.0, [0.0, 100.0]), [100.0, 88.0, 76.0]);
        assert_eq!(spread(&[], 12.0, [0.0, 100.0]), [0.0; 0]);
        let all = spread(&[5.0; 20], 12.0, [0.0, 300.0]);
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= 12.0 - 1e-9), "{all:?}");
    }
}
