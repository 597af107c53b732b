//! Latency histograms: read, merged, asked for percentiles. Percentiles of different runs are never averaged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// Minimum samples beyond a reported percentile.
const SAMPLES_BEYOND: f64 = 10.0;

/// The merged latencies of several runs.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    /// Merges histograms in the load engine's format (V2, base64, nanoseconds); `None` if all are empty
    /// or one cannot be parsed.
    pub fn merge(texts: &[&str]) -> Option<Self> {
        let mut merged: Option<Histogram<u64>> = None;
        for text in texts {
            let bytes = STANDARD.decode(text).ok()?;
            let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
            match &mut merged {
                Some(sum) => sum.add(&histogram).ok()?,
                None => {
                    let mut sum = histogram;
                    sum.auto(true);
                    merged = Some(sum);
                }
            }
        }
        merged.filter(|histogram| !histogram.is_empty()).map(Self)
    }

    /// Samples.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Arithmetic mean in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.0.mean() / 1000.0
    }

    /// Standard deviation in microseconds.
    pub fn sd_us(&self) -> f64 {
        self.0.stdev() / 1000.0
    }

    /// The quantile in microseconds, from 0 to 1; `None` when fewer than ten samples lie beyond it.
    pub fn quantile_us(&self, quantile: f64) -> Option<f64> {
        let beyond = self.count() as f64 * (1.0 - quantile) + 1e-6;
        (beyond >= SAMPLES_BEYOND).then(|| self.0.value_at_quantile(quantile) as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::{Serializer as _, V2Serializer};

    /// In the load engine's format.
    fn encode(nanoseconds: &[u64]) -> String {
        let mut histogram = Histogram::<u64>::new(3).expect("three digits");
        for value in nanoseconds {
            histogram.record(*value).expect("auto-resizes");
        }
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&histogram, &mut bytes).expect("serialises");
        STANDARD.encode(bytes)
    }

    #[test]
    fn merged_percentiles_are_those_of_all_samples() {
        // A fast run of 900 and a slow one of 100: the mean of their medians would be 550 us.
        let (fast, slow) = (encode(&[100_000; 900]), encode(&[1_000_000; 100]));
        let merged = Latencies::merge(&[fast.as_str(), slow.as_str()]).expect("merges");
        assert_eq!(merged.count(), 1000);
        let near = |found: Option<f64>, wanted: f64| {
            let found = found.expect("enough samples");
            assert!((found / wanted - 1.0).abs() < 0.002, "{found} is not {wanted}");
        };
        near(merged.quantile_us(0.5), 100.0);
        near(merged.quantile_us(0.95), 1000.0);
        near(Some(merged.mean_us()), 190.0);
        near(merged.quantile_us(0.99), 1000.0);
        assert_eq!(merged.quantile_us(0.999), None, "one sample lies beyond it");
    }

    #[test]
    fn nothing_and_rubbish() {
        assert!(Latencies::merge(&[]).is_none());
        assert!(Latencies::merge(&["not base64!"]).is_none());
        assert!(Latencies::merge(&["AAAA"]).is_none());
        assert!(Latencies::merge(&[encode(&[]).as_str()]).is_none());
    }
}
