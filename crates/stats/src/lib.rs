//! Estimates and verdicts: pure functions on numbers, one per process run. Independent of instruments and metrics.
//!
//! The unit of evidence is the process run. Two targets are compared within each block, so the test is on the
//! per-block log ratio; its location is the Hodges-Lehmann estimate, its interval and its p-value come from the exact
//! distribution of the Wilcoxon signed-rank statistic, and the p-values of one family of comparisons are adjusted by
//! the procedure of Benjamini and Hochberg. Two results share no blocks: they are compared by the shift of the
//! logarithms and the rank-sum statistic. [`verdict`] judges a ratio by a rule.

pub mod exact;
pub mod fdr;
pub mod histogram;
pub mod hodges_lehmann;
pub mod mann_whitney;
pub mod proportion;
pub mod rng;
pub mod verdict;
pub mod wilcoxon;

mod compare;
mod median;
mod weight;
mod words;

pub use compare::{compare_pairs, compare_samples, location};
pub use hodges_lehmann::{Estimate, Interval};
pub use median::median;
pub use verdict::Better;
pub use weight::{BLOCKS_FOR_INTERVAL, BLOCKS_FOR_VERDICT, ErrorRate, MOST_BLOCKS, Weight};
pub use words::{count, plural};
