//! The counters of a family between two looks.

use super::counters::Switches;
use super::family::{Family, Life};
use crate::result::Counters;

/// The counters of a family between two looks.
pub(crate) fn between(before: &Family, after: &Family) -> Counters {
    let switches = switches_since(before, after);
    let faults = |own: fn(&Life) -> u64, waited: fn(&Life) -> u64| {
        let of = |(pid, life): (&u32, &Life)| {
            own(life).saturating_sub(before.same(*pid, life.started).map_or(0, own))
        };
        let standing: u64 = after.0.iter().map(of).sum();
        (!after.0.is_empty()).then(|| standing + after.left_since(before, own, waited))
    };
    Counters {
        rss_end_kib: all(after, |life| life.rss_kib),
        voluntary_switches: switches.map(|switches| switches.voluntary),
        involuntary_switches: switches.map(|switches| switches.involuntary),
        minor_faults: faults(|life| life.faults.minor, |life| life.waited_faults.minor),
        major_faults: faults(|life| life.faults.major, |life| life.waited_faults.major),
        open_files: all(after, |life| life.open_files),
    }
}

/// `None` when no thread tells.
fn switches_since(before: &Family, after: &Family) -> Option<Switches> {
    let mut sum = None;
    for (pid, life) in &after.0 {
        let earlier = before.same(*pid, life.started);
        for (tid, thread) in &life.threads {
            let Some(switches) = thread.switches else { continue };
            let had = earlier.and_then(|life| life.threads.get(tid)?.switches).unwrap_or_default();
            let sum = sum.get_or_insert_with(Switches::default);
            sum.voluntary += switches.voluntary.saturating_sub(had.voluntary);
            sum.involuntary += switches.involuntary.saturating_sub(had.involuntary);
        }
    }
    sum
}

/// The sum over a family, if each member tells: a part of it would look like the whole.
fn all(family: &Family, what: fn(&Life) -> Option<u64>) -> Option<u64> {
    if family.0.is_empty() {
        return None;
    }
    family.0.values().map(what).sum()
}

#[cfg(test)]
mod tests {
    use super::super::counters::Faults;
    use super::super::family::Thread;
    use super::*;

    fn switching(voluntary: u64, involuntary: u64) -> Thread {
        Thread { switches: Some(Switches { voluntary, involuntary }), ..Thread::default() }
    }

    fn life(parent: u32, minor: u64, waited: u64, threads: &[(u32, Thread)]) -> Life {
        Life {
            parent,
            started: 1,
            faults: Faults { minor, major: minor / 10 },
            waited_faults: Faults { minor: waited, major: 0 },
            rss_kib: Some(100),
            open_files: Some(3),
            threads: threads.iter().cloned().collect(),
            ..Life::default()
        }
    }

    #[test]
    fn what_was_there_before_is_taken_off() {
        let before = Family(
            [
                (1, life(0, 500, 70, &[(1, switching(10, 1)), (5, switching(7, 7))])),
                (2, life(1, 40, 0, &[(2, switching(90, 9))])),
            ]
            .into(),
        );
        // 2 has ended and 1 has waited for it: of its 60 faults 40 were before. 3 is new, and so is thread 6.
        let after = Family(
            [
                (1, life(0, 520, 130, &[(1, switching(15, 1)), (6, switching(4, 2))])),
                (3, life(1, 8, 0, &[(3, switching(2, 0))])),
            ]
            .into(),
        );
        let counters = between(&before, &after);
        assert_eq!(counters.minor_faults, Some(20 + 8 + 20));
        assert_eq!(counters.major_faults, Some(2), "what was known of 2 is more than what was left of it");
        assert_eq!((counters.voluntary_switches, counters.involuntary_switches), (Some(11), Some(2)));
        assert_eq!((counters.rss_end_kib, counters.open_files), (Some(200), Some(6)));
    }

    #[test]
    fn what_one_member_does_not_tell_is_not_told() {
        let mut family = Family([(1, life(0, 1, 0, &[])), (2, life(1, 1, 0, &[]))].into());
        family.0.get_mut(&2).unwrap().open_files = None;
        let counters = between(&Family::default(), &family);
        assert_eq!((counters.open_files, counters.voluntary_switches), (None, None));
        assert_eq!(counters.rss_end_kib, Some(200));
        assert_eq!(between(&family, &Family::default()), Counters::default());
    }
}
