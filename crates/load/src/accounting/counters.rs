//! Process counters other than CPU: memory, context switches, page faults, open files.
//!
//! Read by the scans some milliseconds outside the window, except for the engine's own switches and faults,
//! which take one system call at the edge itself.

use super::family::Family;
use super::proc::{self, Faults, Life, Switches};
use crate::result::Counters;
use nix::sys::resource::{UsageWho, getrusage};

/// Context switches and page faults of this process so far, exited threads included, by getrusage(2).
pub(crate) fn own() -> Counters {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Counters::default() };
    let number = |number: i64| Some(u64::try_from(number).unwrap_or(0));
    Counters {
        voluntary_switches: number(usage.voluntary_context_switches()),
        involuntary_switches: number(usage.involuntary_context_switches()),
        minor_faults: number(usage.minor_page_faults()),
        major_faults: number(usage.major_page_faults()),
        ..Counters::default()
    }
}

/// Memory and open files of this process now.
pub(crate) fn held() -> Counters {
    let pid = std::process::id();
    // One of the files is the directory being read.
    let open_files = proc::open_files(pid).map(|files| files.saturating_sub(1));
    Counters { rss_end_kib: proc::rss_kib(pid), open_files, ..Counters::default() }
}

/// The counters of this process between two edges.
pub(crate) fn of_this_process(from: Counters, to: Counters, held: Counters) -> Counters {
    let since = |count: fn(&Counters) -> Option<u64>| Some(count(&to)?.saturating_sub(count(&from)?));
    Counters {
        voluntary_switches: since(|own| own.voluntary_switches),
        involuntary_switches: since(|own| own.involuntary_switches),
        minor_faults: since(|own| own.minor_faults),
        major_faults: since(|own| own.major_faults),
        ..held
    }
}

/// The counters of a family between two scans.
pub(crate) fn between(before: &Family, after: &Family) -> Counters {
    // `None` when no thread reports it.
    let switches = |count: fn(Switches) -> u64| {
        let since = after.threads(before).filter_map(|(_, thread, then)| {
            let had = then.and_then(|then| then.switches).unwrap_or_default();
            Some(count(thread.switches?).saturating_sub(count(had)))
        });
        since.reduce(|sum, since| sum + since)
    };
    let faults = |count: fn(Faults) -> u64| {
        let (own, waited) = (|life: &Life| count(life.faults), |life: &Life| count(life.waited_faults));
        let of = |(pid, life): (&u32, &Life)| {
            own(life).saturating_sub(before.same(*pid, life.started).map_or(0, own))
        };
        let standing: u64 = after.0.iter().map(of).sum();
        (!after.0.is_empty()).then(|| standing + after.left_since(before, own, waited))
    };
    // A partial sum would look like the total.
    let all = |what: fn(&Life) -> Option<u64>| {
        if after.0.is_empty() { None } else { after.0.values().map(what).sum() }
    };
    Counters {
        rss_end_kib: all(|life| life.rss_kib),
        voluntary_switches: switches(|switches| switches.voluntary),
        involuntary_switches: switches(|switches| switches.involuntary),
        minor_faults: faults(|faults| faults.minor),
        major_faults: faults(|faults| faults.major),
        open_files: all(|life| life.open_files),
    }
}

#[cfg(test)]
mod tests {
    use super::super::proc::{Faults, Switches, Thread, open_files, rss_kib, rss_peak_kib};
    use super::*;
    use std::fs;

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
        // 2 exited and 1 reaped it: of its 60 faults 40 came before. 3 is new, and so is thread 6.
        let after = Family(
            [
                (1, life(0, 520, 130, &[(1, switching(15, 1)), (6, switching(4, 2))])),
                (3, life(1, 8, 0, &[(3, switching(2, 0))])),
            ]
            .into(),
        );
        let counters = between(&before, &after);
        assert_eq!(counters.minor_faults, Some(20 + 8 + 20));
        assert_eq!(
            counters.major_faults,
            Some(2),
            "the earlier reading of 2 exceeds what its parent inherited"
        );
        assert_eq!((counters.voluntary_switches, counters.involuntary_switches), (Some(11), Some(2)));
        assert_eq!((counters.rss_end_kib, counters.open_files), (Some(200), Some(6)));
    }

    #[test]
    fn a_counter_missing_in_one_member_is_missing_in_the_sum() {
        let mut family = Family([(1, life(0, 1, 0, &[])), (2, life(1, 1, 0, &[]))].into());
        family.0.get_mut(&2).unwrap().open_files = None;
        let counters = between(&Family::default(), &family);
        assert_eq!((counters.open_files, counters.voluntary_switches), (None, None));
        assert_eq!(counters.rss_end_kib, Some(200));
        assert_eq!(between(&family, &Family::default()), Counters::default());
    }

    #[test]
    fn this_process_by_the_system_itself() {
        let pid = std::process::id();
        let files = open_files(pid).unwrap();
        let more: Vec<_> = (0..200).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        // Other tests open and close files meanwhile.
        assert!(open_files(pid).unwrap() >= files + 100, "{files}");
        drop(more);
        let from = own();
        let pages = std::hint::black_box(vec![1_u8; 16 << 20]);
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let waiter = std::thread::spawn(move || receiver.recv());
        drop(sender);
        waiter.join().unwrap().unwrap_err();
        let counters = of_this_process(from, own(), held());
        assert!(counters.minor_faults > Some(0) && counters.major_faults.is_some(), "{counters:?}");
        assert!(counters.voluntary_switches > Some(0) && counters.involuntary_switches.is_some());
        assert!(counters.rss_end_kib > Some(16 << 10) && counters.open_files > Some(2), "{counters:?}");
        assert!(rss_peak_kib(pid) >= Some(16 << 10));
        drop(pages);
        assert_eq!((open_files(u32::MAX), rss_kib(u32::MAX)), (Some(0), None));
    }
}
