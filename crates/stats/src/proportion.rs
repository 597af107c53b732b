//! The interval of a share.

/// The 95 % quantile of the normal distribution, two-sided.
const Z: f64 = 1.959_963_984_540_054;

/// The 95 % interval of `hits` of `trials` (Wilson, "Probable Inference, the Law of Succession, and Statistical
/// Inference", JASA 1927): it stays within 0 to 1, and is of use for few hits. 0 to 1 without a trial.
pub fn wilson(hits: u64, trials: u64) -> (f64, f64) {
    if trials == 0 {
        return (0.0, 1.0);
    }
    let (n, share) = (trials as f64, hits as f64 / trials as f64);
    let middle = share + Z * Z / (2.0 * n);
    let reach = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    (((middle - reach) / scale).max(0.0), ((middle + reach) / scale).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 1998, table I.
    #[test]
    fn published_intervals() {
        for (hits, trials, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let (l, h) = wilson(hits, trials);
            assert!((l - low).abs() < 5e-5 && (h - high).abs() < 5e-5, "{hits}/{trials}: {l} {h}");
        }
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }
}
