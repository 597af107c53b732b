//! What limited a run: information about its figures, not a verdict on them.

use crate::result::Limit;

/// Utilisation that counts as full: the rest is lost at window edges and scheduler ticks.
pub const FULL: f64 = 0.95;

/// From this share of the CPU used on shared cores, one part counts as the limit.
pub const DOMINATES: f64 = 0.75;

/// From this share of its calibrated ceiling, the engine counts as the limit: beyond it, what the engine adds to
/// the measured times grows steeply.
pub const CEILING: f64 = 0.80;

/// A part of the system, or one of its threads with its own core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part<'a> {
    /// The limit to report.
    pub who: Limit,
    /// CPU used, in cores.
    pub cpu: f64,
    /// Maximum CPU in cores: one per working thread, up to its allowed cores; 0 if unknown.
    pub most: f64,
    /// CPU of its busiest thread, in cores; 0 if unknown.
    pub busiest: f64,
    /// The cores it runs on; empty if unknown or on another machine.
    pub cores: &'a [usize],
}

impl Part<'_> {
    /// It is saturated, or one of its threads is: work for that thread cannot move to the others. (A thread
    /// that spins while waiting looks the same.)
    fn is_full(&self) -> bool {
        self.most > 0.0 && self.cpu >= FULL * self.most || self.busiest >= FULL
    }
}

/// Names the limit from the usage of each part.
///
/// A saturated part, or one with a saturated thread, is the limit regardless of the others: more cores would not
/// help it. Otherwise it is the part that dominates a full set of cores, or `shared cores` if none does.
pub fn of(parts: &[Part<'_>]) -> Limit {
    if let Some(part) = parts.iter().find(|part| part.is_full()) {
        return part.who;
    }
    let used = |cores: &[usize], who: Option<Limit>| -> f64 {
        let there = parts.iter().filter(|part| overlap(cores, part.cores));
        there.filter(|part| who.is_none_or(|who| who == part.who)).map(|part| part.cpu).sum()
    };
    let mut limit = Limit::Neither;
    for Part { who, cpu, cores, .. } in parts {
        let all = used(cores, None);
        if *cpu > 0.0 && !cores.is_empty() && all >= FULL * cores.len() as f64 {
            if used(cores, Some(*who)) >= DOMINATES * all {
                return *who;
            }
            limit = Limit::SharedCores;
        }
    }
    limit
}

/// The limit of a run at `share` of the engine's ceiling. A server that saturates its own cores remains the
/// limit.
pub fn beside_ceiling(limit: Limit, share: f64) -> Limit {
    match limit {
        Limit::Gateway | Limit::Origin => limit,
        Limit::Load | Limit::SharedCores | Limit::Neither if share > CEILING => Limit::Load,
        Limit::Load | Limit::SharedCores | Limit::Neither => limit,
    }
}

fn overlap(left: &[usize], right: &[usize]) -> bool {
    left.iter().any(|core| right.contains(core))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gateway, origin and load, each with as many threads as cores; usage in shares of their cores.
    fn limit(used: [f64; 3], cores: [&[usize]; 3]) -> Limit {
        let who = [Limit::Gateway, Limit::Origin, Limit::Load];
        let part = |index: usize| {
            let most = cores[index].len() as f64;
            Part { who: who[index], cpu: used[index] * most, most, busiest: 0.0, cores: cores[index] }
        };
        of(&[part(0), part(1), part(2)])
    }

    const APART: [&[usize]; 3] = [&[0], &[1], &[2]];
    const SHARED: [&[usize]; 3] = [&[0], &[1], &[1]];
    const ONE: [&[usize]; 3] = [&[0], &[0], &[0]];
    const TWO: [&[usize]; 3] = [&[0, 1], &[2], &[3]];

    #[test]
    fn parts_of_equal_threads_and_cores() {
        let table = [
            // Dedicated cores.
            ([0.99, 0.4, 0.4], APART, Limit::Gateway),
            ([0.5, 0.97, 0.4], APART, Limit::Origin),
            ([0.5, 0.4, 0.96], APART, Limit::Load),
            ([0.5, 0.4, 0.3], APART, Limit::Neither),
            ([0.99, 0.4, 0.97], APART, Limit::Gateway),
            // Shared cores.
            ([0.99, 0.4, 0.4], SHARED, Limit::Gateway),
            ([0.7, 0.45, 0.53], SHARED, Limit::SharedCores),
            ([0.7, 0.2, 0.78], SHARED, Limit::Load),
            ([0.7, 0.8, 0.18], SHARED, Limit::Origin),
            ([0.7, 0.4, 0.4], SHARED, Limit::Neither),
            ([0.4, 0.3, 0.28], ONE, Limit::SharedCores),
            ([0.8, 0.1, 0.08], ONE, Limit::Gateway),
            // Both of two.
            ([0.6, 0.1, 0.1], TWO, Limit::Neither),
            ([0.97, 0.1, 0.1], TWO, Limit::Gateway),
            // Unknown.
            ([0.0, 0.0, 0.0], [&[], &[], &[]], Limit::Neither),
        ];
        for (used, cores, expected) in table {
            assert_eq!(limit(used, cores), expected, "{used:?} {cores:?}");
        }
    }

    #[test]
    fn a_single_thread_is_full_on_one_of_many_cores() {
        let all = [0, 1, 2, 3];
        let gateway = Part { who: Limit::Gateway, cpu: 0.98, most: 1.0, busiest: 0.0, cores: &all };
        let load = Part { who: Limit::Load, cpu: 0.5, most: 1.0, busiest: 0.0, cores: &all };
        assert_eq!(of(&[load, gateway]), Limit::Gateway);
        assert_eq!(of(&[load, Part { most: 4.0, ..gateway }]), Limit::Neither);
    }

    /// A server with one working thread and helpers, allowed four cores.
    #[test]
    fn a_full_thread_among_idle_ones_is_the_limit() {
        let all = [0, 1, 2, 3];
        let gateway = Part { who: Limit::Gateway, cpu: 1.2, most: 4.0, busiest: 0.98, cores: &all };
        let load = Part { who: Limit::Load, cpu: 0.5, most: 1.0, busiest: 0.0, cores: &all };
        assert_eq!(of(&[gateway, load]), Limit::Gateway);
        assert_eq!(of(&[Part { busiest: 0.94, ..gateway }, load]), Limit::Neither);
        assert_eq!(of(&[Part { who: Limit::Origin, ..gateway }, load]), Limit::Origin);
        assert_eq!(of(&[Part { busiest: 0.5, ..gateway }, Part { cpu: 0.97, ..load }]), Limit::Load);
    }

    #[test]
    fn one_full_worker_of_several_is_enough() {
        let worker = |cpu, core| Part { who: Limit::Load, cpu, most: 1.0, busiest: 0.0, cores: core };
        assert_eq!(of(&[worker(0.3, &[0]), worker(0.96, &[1])]), Limit::Load);
        assert_eq!(of(&[worker(0.3, &[0]), worker(0.6, &[1])]), Limit::Neither);
        assert_eq!(
            of(&[worker(0.48, &[0]), worker(0.48, &[0])]),
            Limit::Load,
            "two that share a core fill it"
        );
    }

    #[test]
    fn a_server_elsewhere_shares_no_core_and_is_full_by_its_own_measure() {
        let elsewhere = Part { who: Limit::Gateway, cpu: 3.0, most: 0.0, busiest: 0.0, cores: &[] };
        let load = Part { who: Limit::Load, cpu: 0.5, most: 1.0, busiest: 0.0, cores: &[0] };
        assert_eq!(of(&[load, elsewhere]), Limit::Neither);
        assert_eq!(of(&[load, Part { most: 3.0, ..elsewhere }]), Limit::Gateway);
    }

    #[test]
    fn four_fifths_of_the_ceiling() {
        for (limit, share, expected) in [
            (Limit::Neither, 0.79, Limit::Neither),
            (Limit::Neither, 0.81, Limit::Load),
            (Limit::SharedCores, 0.81, Limit::Load),
            (Limit::SharedCores, 0.5, Limit::SharedCores),
            (Limit::Gateway, 0.99, Limit::Gateway),
            (Limit::Origin, 0.99, Limit::Origin),
            (Limit::Load, 0.1, Limit::Load),
        ] {
            assert_eq!(beside_ceiling(limit, share), expected, "{limit} {share}");
        }
    }
}
