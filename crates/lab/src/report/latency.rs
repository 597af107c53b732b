//! Latency by percentile: how long the slowest half, tenth, hundredth of the requests take.

use super::svg::{Anchor, Svg};
use crate::histogram::Latencies;

/// One curve.
#[derive(Clone, Debug)]
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    pub(crate) latencies: Latencies,
    pub(crate) colour: &'static str,
    /// The second of the A/A pair is dashed.
    pub(crate) again: bool,
}

const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 42.0;

/// The percentiles with a tick: what is seen is `log10(1 / (1 - quantile))`, so each nine takes the same room.
const TICKS: [(f64, &str); 7] = [
    (0.0, "0 %"),
    (0.5, "50 %"),
    (0.9, "90 %"),
    (0.99, "99 %"),
    (0.999, "99.9 %"),
    (0.9999, "99.99 %"),
    (0.99999, "99.999 %"),
];

/// Points of a curve between two nines.
const POINTS_PER_NINE: u32 = 24;

/// Draws one chart; `None` when no curve has a point.
pub(crate) fn draw(title: &str, curves: &[Curve<'_>]) -> Option<String> {
    let points: Vec<Vec<(f64, f64)>> = curves.iter().map(|curve| points(&curve.latencies)).collect();
    let all = || points.iter().flatten();
    let far = all().map(|(nines, _)| *nines).reduce(f64::max)?.max(1.0);
    let low = all().map(|(_, us)| *us).reduce(f64::min)?.max(1.0);
    let high = all().map(|(_, us)| *us).reduce(f64::max)?.max(low * 1.1);
    let (from, to) = (low.log10() - 0.03, high.log10() + 0.05);
    let x = |nines: f64| LEFT + nines / far * (WIDTH - LEFT - RIGHT);
    let y = |us: f64| TOP + (to - us.max(1.0).log10()) / (to - from) * (HEIGHT - TOP - BOTTOM);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    for us in ticks(from, to) {
        svg.line([LEFT, y(us), WIDTH - RIGHT, y(us)], "grid");
        svg.text(LEFT - 6.0, y(us) + 4.0, Anchor::End, "tick", time(us));
    }
    for (quantile, label) in TICKS {
        let nines = nines(quantile);
        if nines <= far + 1e-9 {
            svg.line([x(nines), TOP, x(nines), HEIGHT - BOTTOM], "grid");
            svg.text(x(nines), HEIGHT - BOTTOM + 15.0, Anchor::Middle, "tick", label);
        }
    }
    svg.text(
        x(far / 2.0),
        HEIGHT - 8.0,
        Anchor::Middle,
        "tick",
        "share of requests that were answered faster",
    );
    let mut legend = LEFT;
    for (curve, points) in curves.iter().zip(&points) {
        let placed: Vec<(f64, f64)> = points.iter().map(|(nines, us)| (x(*nines), y(*us))).collect();
        svg.path(&placed, curve.colour, curve.again);
        svg.path(&[(legend, 16.0), (legend + 16.0, 16.0)], curve.colour, curve.again);
        svg.text(legend + 20.0, 20.0, Anchor::Start, "legend", curve.name);
        legend += 34.0 + 6.6 * curve.name.chars().count() as f64;
    }
    svg.line([LEFT, TOP, LEFT, HEIGHT - BOTTOM], "axis");
    svg.line([LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM], "axis");
    Some(svg.finish(title))
}

/// As far out as enough samples lie beyond.
fn points(latencies: &Latencies) -> Vec<(f64, f64)> {
    let place = |index: u32| f64::from(index) / f64::from(POINTS_PER_NINE);
    (0..)
        .map(place)
        .map_while(|nines| Some((nines, latencies.quantile_us(1.0 - 10_f64.powf(-nines))?)))
        .take(POINTS_PER_NINE as usize * 8)
        .collect()
}

fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// 1, 2 and 5 of each power of ten between two logarithms.
fn ticks(from: f64, to: f64) -> Vec<f64> {
    let powers = (from.floor() as i32)..=(to.ceil() as i32);
    let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10_f64.powi(power)));
    all.filter(|us| (from..=to).contains(&us.log10())).collect()
}

fn time(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", us / 1e6),
        us if us >= 1e3 => format!("{} ms", us / 1e3),
        us => format!("{us:.0} us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::encode;

    #[test]
    fn a_curve_ends_where_samples_are_too_few() {
        let nanoseconds: Vec<u64> = (1..=10_000).map(|index| index * 1000).collect();
        let text = encode(&nanoseconds);
        let latencies = Latencies::merge([text.as_str()]).expect("merges");
        let points = points(&latencies);
        let (last, us) = points[points.len() - 1];
        assert!((last - 3.0).abs() < 1e-9, "99.9 % has ten samples beyond it, and is the last: {last}");
        assert!((us / 9990.0 - 1.0).abs() < 0.002, "{us}");
        assert!(points.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    }

    #[test]
    fn ticks_and_times() {
        assert_eq!(ticks(1.9, 3.1), [100.0, 200.0, 500.0, 1000.0]);
        assert_eq!((time(200.0), time(2000.0), time(5e6)), ("200 us".into(), "2 ms".into(), "5 s".into()));
    }
}
