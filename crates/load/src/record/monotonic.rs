//! Arithmetic on sets of counters.

/// A set of monotonic counters; the window's values are the difference between its edges.
pub(crate) trait Monotonic: Copy {
    /// All counters, in one order.
    fn counters(&mut self) -> impl Iterator<Item = &mut u64>;

    fn add(&mut self, other: &Self) {
        let mut other = *other;
        self.counters().zip(other.counters()).for_each(|(mine, others)| *mine += *others);
    }

    fn since(&self, earlier: &Self) -> Self {
        let (mut since, mut earlier) = (*self, *earlier);
        since.counters().zip(earlier.counters()).for_each(|(now, then)| *now -= *then);
        since
    }
}
