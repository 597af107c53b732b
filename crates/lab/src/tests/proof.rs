//! The reliability of the verdicts: synthetic runs with a known truth are stored, loaded, judged and summed up by the
//! code of `weir report`, over and over (docs/decisions/0009-statistics.md has the figures).
//!
//! Seeds are fixed. Each bound is the binomial's: with a true rate of p, the number of hits in n experiments is within
//! z standard deviations, sqrt(n p (1 - p)), of n p.

use crate::experiment::metric::Metric;
use crate::findings::comparison::Comparison;
use crate::instrument::gateway::synthetic::{Host, Shape, Synthetic, Truth};
use crate::stats::Weight;
use crate::stats::verdict::Verdict;

/// One in a hundred falls outside on one side if the rate is the one to be shown.
const Z_ONE_SIDED: f64 = 2.33;

/// One in a thousand falls outside if the rate is the nominal one.
const Z_TWO_SIDED: f64 = 3.29;

/// The planted effect.
const EFFECT: f64 = 1.05;

const EXPERIMENTS: u32 = 400;

const METRICS: [Metric; 2] = [Metric::CpuUsPerRequest, Metric::RequestsPerSecond];

const WITH_AA: Shape<'static> = Shape { aa: true, blocks: 12, groups: 1, versions: &[] };

/// The experiments' outcomes in one metric.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    different: u32,
    right: u32,
    equivalent: u32,
    covered: u32,
    coverage: f64,
}

/// Draws experiments of one comparison and counts, for each of [`METRICS`].
fn tally(shape: Shape<'_>, host: Host, effect: f64, seed: u64) -> [Tally; 2] {
    let mut synthetic = Synthetic::new(shape, seed);
    let mut tallies = [Tally::default(); 2];
    for _ in 0..EXPERIMENTS {
        let results = synthetic.experiment(Truth { host, effects: &[("fast", effect)], ..Truth::NOTHING });
        for (metric, tally) in METRICS.into_iter().zip(&mut tallies) {
            let truth = if metric.is_rate() { 1.0 / effect } else { effect };
            let wanted = |one: &&Comparison| one.metric == metric && !one.aa;
            let one = results.summary.comparisons.iter().find(wanted).expect("is compared");
            let (low, high) = one.ratio.low.zip(one.ratio.high).expect("five blocks or more");
            let is_different = one.ratio.verdict == Verdict::Different;
            let is_right = one.ratio.value.is_some_and(|ratio| (ratio > 1.0) == (truth > 1.0));
            tally.different += u32::from(is_different);
            tally.right += u32::from(is_different && is_right);
            tally.equivalent += u32::from(one.ratio.verdict == Verdict::Equivalent);
            tally.covered += u32::from(low <= truth && truth <= high);
            tally.coverage = one.ratio.coverage.expect("has an interval");
        }
    }
    println!("{shape:?} {host:?}, effect {effect}, {EXPERIMENTS} experiments: {tallies:?}");
    tallies
}

/// At most this many hits of `n` show a rate below `p`.
fn shows_below(n: u32, p: f64) -> f64 {
    let n = f64::from(n);
    n * p - Z_ONE_SIDED * (n * p * (1.0 - p)).sqrt()
}

/// More than this many hits of `n` show a rate above `p`.
fn shows_above(n: u32, p: f64) -> f64 {
    let n = f64::from(n);
    n * p + Z_ONE_SIDED * (n * p * (1.0 - p)).sqrt()
}

#[track_caller]
fn assert_nominal(hits: u32, p: f64) {
    let n = f64::from(EXPERIMENTS);
    let reach = Z_TWO_SIDED * (n * p * (1.0 - p)).sqrt();
    let allowed = n * p - reach..=n * p + reach;
    assert!(allowed.contains(&f64::from(hits)), "{hits} of {n}: a rate of {p} allows {allowed:?}");
}

/// A/A data with plain noise, with a level that jumps between blocks, and with one that jumps for single runs: in each
/// case at most 5 % are called different, the intervals contain 1 as often as they claim, and all the cases together
/// show that fewer than 5 % are called different.
#[test]
fn aa_data_is_rarely_called_different() {
    let hosts = [(Host::Steady, 1), (Host::OfBlocks, 3), (Host::OfRuns, 4)];
    let (mut different, mut experiments) = (0, 0);
    for tally in hosts.into_iter().flat_map(|(host, seed)| tally(WITH_AA, host, 1.0, seed)) {
        assert!(f64::from(tally.different) <= shows_above(EXPERIMENTS, 0.05), "{tally:?}");
        assert_nominal(tally.covered, tally.coverage);
        different += tally.different;
        experiments += EXPERIMENTS;
    }
    let most = shows_below(experiments, 0.05);
    assert!(
        f64::from(different) <= most,
        "{different} of {experiments}: {most:.0} would show a rate below 5 %"
    );
}

/// An indication is not adjusted, and its interval covers less: 93.75 % with five blocks.
#[test]
fn an_indication_has_its_nominal_rate_too() {
    for tally in tally(Shape { blocks: 5, ..WITH_AA }, Host::Steady, 1.0, 2) {
        assert!(f64::from(tally.different) <= shows_above(EXPERIMENTS, 1.0 - tally.coverage), "{tally:?}");
        assert_nominal(tally.covered, tally.coverage);
    }
}

/// Without an A/A pair only the adjusted p-value guards against chance.
#[test]
fn aa_without_a_noise_floor_has_the_nominal_rate() {
    let shape = Shape { aa: false, ..WITH_AA };
    for host in [Host::Steady, Host::OfBlocks] {
        for tally in tally(shape, host, 1.0, 5) {
            let nominal = 1.0 - tally.coverage;
            assert_nominal(EXPERIMENTS - tally.covered, nominal);
            // A ratio that the interval excludes may still be equivalent, never the other way round.
            assert!(tally.different <= EXPERIMENTS - tally.covered, "{tally:?}");
        }
    }
}

#[test]
fn a_planted_effect_of_5_per_cent_is_found() {
    for tally in tally(WITH_AA, Host::Steady, EFFECT, 6) {
        let (missed, most) = (EXPERIMENTS - tally.right, shows_below(EXPERIMENTS, 0.05));
        assert!(f64::from(missed) <= most, "{tally:?}: at most {most:.1} missed show that 95 % are found");
        assert_eq!(tally.right, tally.different, "never with the wrong sign");
        assert_nominal(tally.covered, tally.coverage);
    }
}

/// Jumps between blocks affect both targets; those within blocks cost some power but no correctness.
#[test]
fn intervals_cover_a_planted_effect_under_two_level_noise() {
    for host in [Host::OfBlocks, Host::OfRuns] {
        for tally in tally(WITH_AA, host, EFFECT, 7) {
            assert_nominal(tally.covered, tally.coverage);
            assert_eq!(tally.different, tally.right, "never with the wrong sign");
        }
    }
}

/// Four comparisons in a family: among those called different in an experiment, the mean share of false alarms is at
/// most 5 %, with or without real effects; and one planted effect among three true nulls is found.
#[test]
fn a_family_of_comparisons() {
    for effect in [1.0, EFFECT] {
        let mut synthetic = Synthetic::new(Shape { groups: 4, ..WITH_AA }, 8);
        let (mut false_share, mut found) = (0.0, 0);
        for _ in 0..EXPERIMENTS / 2 {
            let results = synthetic.experiment(Truth { effects: &[("fast", effect)], ..Truth::NOTHING });
            for metric in METRICS {
                let is_called = |one: &&Comparison| {
                    one.metric == metric && !one.aa && one.ratio.verdict == Verdict::Different
                };
                let is_planted = |one: &&Comparison| effect > 1.0 && one.cell.levels.word("delay_ms") == "0";
                let called: Vec<&Comparison> = results.summary.comparisons.iter().filter(is_called).collect();
                let right = called.iter().copied().filter(|one| is_planted(one)).count();
                false_share += (called.len() - right) as f64 / called.len().max(1) as f64;
                found += right as u32;
            }
        }
        println!("4 groups, effect {effect}: {false_share} false, {found} found in {EXPERIMENTS} families");
        assert!(false_share <= shows_above(EXPERIMENTS, 0.05), "{false_share}");
        assert!(effect == 1.0 || f64::from(EXPERIMENTS - found) <= shows_below(EXPERIMENTS, 0.05), "{found}");
    }
}

#[test]
fn the_interval_of_a_cell_covers_its_cost() {
    let mut synthetic = Synthetic::new(WITH_AA, 9);
    let mut covered = 0;
    for _ in 0..EXPERIMENTS {
        let results = synthetic.experiment(Truth::NOTHING);
        assert_eq!(results.summary.weight, Weight::Verdict);
        let cell = results.summary.cells.iter().find(|cell| cell.cell.name == "slow").expect("is there");
        let (low, high) = cell.values[&Metric::CpuUsPerRequest].interval().expect("twelve blocks");
        covered += u32::from(low <= 20.0 && 20.0 <= high);
    }
    assert_nominal(covered, 0.957_519_531_25);
}
