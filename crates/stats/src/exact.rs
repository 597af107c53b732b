//! The distribution of an integer statistic, as the number of equally likely ways to each value.

/// `counts[v]` ways lead to the value `v`, of `total`.
#[derive(Clone, Debug)]
pub struct Distribution {
    counts: Vec<f64>,
    total: f64,
}

impl Distribution {
    /// The distribution with such ways to 0, 1, 2 and so on.
    pub(crate) fn new(counts: Vec<f64>) -> Self {
        let total = counts.iter().sum();
        Self { counts, total }
    }

    /// The normal approximation with this variance, for a symmetric distribution over 0 to `most` with too many
    /// ways to count, or for an `f64`.
    pub(crate) fn normal(most: usize, variance: f64) -> Self {
        let (centre, variance) = (most as f64 / 2.0, variance.max(f64::MIN_POSITIVE));
        let height = |value: usize| (-(value as f64 - centre).powi(2) / (2.0 * variance)).exp();
        Self::new((0..=most).map(height).collect())
    }

    /// P(V <= value).
    pub fn cumulative(&self, value: usize) -> f64 {
        let end = value.saturating_add(1).min(self.counts.len());
        self.counts[..end].iter().sum::<f64>() / self.total
    }

    /// P(V >= value).
    pub fn beyond(&self, value: usize) -> f64 {
        let start = value.min(self.counts.len());
        self.counts[start..].iter().sum::<f64>() / self.total
    }

    /// The smallest value whose cumulative probability reaches `probability`.
    pub fn quantile(&self, probability: f64) -> usize {
        let mut sum = 0.0;
        for (value, count) in self.counts.iter().enumerate() {
            sum += count;
            if sum / self.total >= probability {
                return value;
            }
        }
        self.counts.len() - 1
    }
}

/// Twice the mean rank of each of `sorted`, with ties by `same`; doubled so that the mean of two neighbours is an
/// integer.
pub(crate) fn doubled_ranks<T>(sorted: &[T], same: impl FnMut(&T, &T) -> bool) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for group in sorted.chunk_by(same) {
        let first = ranks.len() + 1;
        ranks.extend(vec![2 * first + group.len() - 1; group.len()]);
    }
    ranks
}
