//! The axis of percentiles: each nine has the same length, from the median to 99.9 %.

use super::axis::Axis;
use super::plot::Point;

/// The percentiles with a tick and a marker.
const TICKS: [(f64, &str); 4] = [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %")];

/// Points of a curve between two of them.
const BETWEEN: u32 = 16;

/// The axis, as far as the curves reach.
pub fn axis(furthest: f64) -> Axis {
    let all = TICKS.map(|(quantile, text)| (nines(quantile), text.to_owned()));
    let ticks: Vec<_> = all.into_iter().filter(|(nines, _)| *nines <= furthest + 1e-9).collect();
    Axis::given(nines(0.5), furthest.max(nines(0.9)), ticks, "share of requests that were answered faster")
}

/// The curve of a distribution, as far as it is known.
pub fn curve(quantile_us: impl Fn(f64) -> Option<f64>) -> Vec<Point> {
    let mut points = Vec::new();
    for (index, (quantile, _)) in TICKS.iter().enumerate() {
        let next = TICKS.get(index + 1).map_or(*quantile, |(next, _)| *next);
        let (from, to) = (nines(*quantile), nines(next));
        let steps = if from < to { BETWEEN } else { 1 };
        for step in 0..steps {
            let x = from + (to - from) * f64::from(step) / f64::from(BETWEEN);
            // Recomputing the share would miss 99.9 % by a rounding error, and with it the last sample needed.
            let share = if step == 0 { *quantile } else { 1.0 - 10_f64.powf(-x) };
            let Some(y) = quantile_us(share) else { return points };
            points.push(Point { x, y, interval: None, is_marked: step == 0 });
        }
    }
    points
}

fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Serializer as _, V2Serializer};
    use weir_stats::histogram::Latencies;

    fn of(samples: u64) -> Vec<Point> {
        let nanoseconds: Vec<u64> = (1..=samples).map(|index| index * 1_000_000 / samples * 10).collect();
        let mut histogram = Histogram::<u64>::new(3).expect("three digits");
        for value in nanoseconds {
            histogram.record(value).expect("auto-resizes");
        }
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&histogram, &mut bytes).expect("serialises");
        let text = STANDARD.encode(bytes);
        let latencies = Latencies::merge(&[text.as_str()]).expect("merges");
        curve(|quantile| latencies.quantile_us(quantile))
    }

    #[test]
    fn a_curve_goes_from_the_median_as_far_as_ten_samples_lie_beyond() {
        let full = of(10_000);
        assert!((full[0].y / 5000.0 - 1.0).abs() < 0.002, "{:?}", full[0]);
        let last = full.last().expect("a point");
        assert!(
            (last.x - 3.0).abs() < 1e-9 && last.is_marked,
            "10 000 samples have ten beyond 99.9 %: {last:?}"
        );
        assert!((last.y / 9990.0 - 1.0).abs() < 0.002, "{last:?}");
        assert!(full.windows(2).all(|pair| pair[0].y <= pair[1].y && pair[0].x < pair[1].x));
        assert_eq!(full.iter().filter(|point| point.is_marked).count(), 4);
        let short = of(9_999);
        assert!(short.last().is_some_and(|point| point.x < 3.0), "one sample too few");
        assert_eq!(of(19), [], "not even a median");
    }

    #[test]
    fn the_axis_ends_where_the_curves_do() {
        let texts = |furthest| axis(furthest).ticks.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(3.0), ["50 %", "90 %", "99 %", "99.9 %"]);
        assert_eq!(texts(2.4), ["50 %", "90 %", "99 %"]);
        assert_eq!((axis(3.0).place(nines(0.5)), axis(3.0).place(3.0)), (0.0, 1.0));
    }
}
