//! Axes: mapping values to positions between 0 and 1, and ticks.

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    from: f64,
    to: f64,
    is_log: bool,
    /// Ticks: value and label.
    pub ticks: Vec<(f64, String)>,
    /// Its quantity and unit.
    pub title: String,
}

impl Axis {
    /// From zero to slightly beyond `end`.
    pub fn from_zero(end: f64, title: impl Into<String>, text: fn(f64) -> String) -> Self {
        let end = if end.is_finite() && end > 0.0 { end } else { 1.0 };
        let ticks = steps(end, 4.0).into_iter().map(|value| (value, text(value))).collect();
        Self { from: 0.0, to: end * 1.06, is_log: false, ticks, title: title.into() }
    }

    /// Logarithmic from `low` to `high`; both must be positive.
    pub fn log(low: f64, high: f64, title: impl Into<String>, text: fn(f64) -> String) -> Self {
        let low = if low.is_finite() { low.max(1e-9) } else { 1.0 };
        let high = if high.is_finite() { high.max(low) } else { low };
        // Padding beyond the ends, enough to include a tick.
        let (low, high) = (low / 1.1, high * 1.1);
        let (low, high) = if high / low < 2.2 { (low / 1.6, high * 1.6) } else { (low, high) };
        let ticks = powers(low, high).into_iter().map(|value| (value, text(value))).collect();
        Self { from: low.log10(), to: high.log10(), is_log: true, ticks, title: title.into() }
    }

    /// With ticks at exactly these values, such as numbers of users, spaced by
    /// ratio.
    pub fn of_values(values: &[f64], title: impl Into<String>, text: fn(f64) -> String) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min).max(1e-9);
        let high = values.iter().copied().fold(low, f64::max);
        let margin = (high / low).powf(0.06).max(1.01);
        let ticks = values.iter().map(|value| (*value, text(*value))).collect();
        let (from, to) = ((low / margin).log10(), (high * margin).log10());
        Self { from, to, is_log: true, ticks, title: title.into() }
    }

    /// With given ends and ticks, as for percentiles and seconds.
    pub fn given(from: f64, to: f64, ticks: Vec<(f64, String)>, title: impl Into<String>) -> Self {
        Self { from, to: if to > from { to } else { from + 1.0 }, is_log: false, ticks, title: title.into() }
    }

    /// The position of a value: 0 at the start, 1 at the end, clamped.
    pub fn place(&self, value: f64) -> f64 {
        let value = if self.is_log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }
}

/// Round steps from zero: 1, 2 or 5 times a power of ten, about `count` of them up to `end`.
pub fn steps(end: f64, count: f64) -> Vec<f64> {
    let rough = (end / count).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    (0..=(end / step).floor() as u32).map(|index| f64::from(index) * step).collect()
}

/// 1, 2 and 5 of each power of ten between two values; the powers alone where that would be too many.
fn powers(low: f64, high: f64) -> Vec<f64> {
    let exponents = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let factors: &[f64] = if high / low > 2000.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all = exponents.flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
    all.filter(|value| (low..=high).contains(value)).collect()
}

/// A count: `20 k`, `1.5 M`.
pub fn count(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{} M", value / 1e6),
        size if size >= 1e4 => format!("{} k", value / 1e3),
        _ => plain(value),
    }
}

/// A time in microseconds: `200 µs`, `2 ms`, `5 s`.
pub fn time(us: f64) -> String {
    match us.abs() {
        size if size >= 1e6 => format!("{} s", plain(us / 1e6)),
        size if size >= 1e3 => format!("{} ms", plain(us / 1e3)),
        _ => format!("{} µs", plain(us)),
    }
}

/// A number with no more digits than it needs.
pub fn plain(value: f64) -> String {
    // Twelve digits hide binary rounding errors: 0.1 + 0.2.
    format!("{}", (value * 1e9).round() / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_stay_below_the_end() {
        assert_eq!(steps(43.0, 5.0), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(steps(9.0, 5.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(steps(0.9, 4.0), [0.0, 0.5]);
    }

    #[test]
    fn logarithmic_axes_have_ticks_at_1_2_5() {
        let values = |low, high| Axis::log(low, high, "", time).ticks.into_iter().map(|(_, text)| text);
        assert_eq!(values(90.0, 1000.0).collect::<Vec<_>>(), ["100 µs", "200 µs", "500 µs", "1 ms"]);
        assert_eq!(
            values(1.0, 1e5).collect::<Vec<_>>(),
            ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms"]
        );
        assert_eq!(values(300.0, 300.0).count(), 2, "200 and 500 around a single value");
        let axis = Axis::log(100.0, 10_000.0, "", time);
        assert!((axis.place(1000.0) - 0.5).abs() < 1e-9, "{}", axis.place(1000.0));
        let parts = [100.0, 200.0, 400.0].map(|value| axis.place(value));
        assert!((parts[1] - parts[0] - (parts[2] - parts[1])).abs() < 1e-9, "equal ratios, equal lengths");
    }

    #[test]
    fn places_are_on_the_axis_whatever_comes() {
        let axis = Axis::from_zero(100.0, "", count);
        assert_eq!((axis.place(0.0), axis.place(53.0), axis.place(1e9)), (0.0, 0.5, 1.0));
        for end in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let axis = Axis::from_zero(end, "", count);
            assert!(axis.place(0.5) > 0.0 && !axis.ticks.is_empty());
            assert!((0.0..=1.0).contains(&Axis::log(end, end, "", time).place(1.0)));
        }
        let users = Axis::of_values(&[100.0, 1000.0], "", count);
        assert!(users.place(100.0) > 0.03 && users.place(1000.0) < 0.97);
        let single = Axis::of_values(&[64.0], "", count);
        assert!((single.place(64.0) - 0.5).abs() < 1e-9, "a single value is in the middle");
    }

    #[test]
    fn texts_of_numbers() {
        assert_eq!([0.0, 5000.0, 20_000.0, 1.5e6].map(count), ["0", "5000", "20 k", "1.5 M"]);
        assert_eq!([0.5, 200.0, 2000.0, 5e6].map(time), ["0.5 µs", "200 µs", "2 ms", "5 s"]);
        assert_eq!(plain(0.1 + 0.2), "0.3");
    }
}
