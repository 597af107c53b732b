//! Compares two functions in alternation, by the CPU time of this thread, which excludes other processes on its core.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

const ALTERNATIONS: usize = 20;

/// The length of one measurement.
const SPAN: Duration = Duration::from_millis(20);

/// Measures both functions 20 times in alternation. Prints the medians, and the median of the ratios with their
/// extremes. Returns the median ratio.
pub(crate) fn duet(name: &str, ours: impl Fn(), theirs: impl Fn()) -> f64 {
    let (mut our_times, mut their_times, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    // The first pair only warms up the caches.
    for i in 0..=ALTERNATIONS {
        let (a, b) = if i % 2 == 0 {
            let a = nanoseconds(&ours);
            (a, nanoseconds(&theirs))
        } else {
            let b = nanoseconds(&theirs);
            (nanoseconds(&ours), b)
        };
        if i > 0 {
            our_times.push(a);
            their_times.push(b);
            ratios.push(a / b);
        }
    }
    let [our, their, ratio] = [&mut our_times, &mut their_times, &mut ratios].map(|list| {
        list.sort_by(f64::total_cmp);
        (list[list.len() / 2 - 1] + list[list.len() / 2]) / 2.0
    });
    println!(
        "{name}: {our:.0} ns, AWS-LC {their:.0} ns: {ratio:.3} [{:.3}, {:.3}]",
        ratios[0],
        ratios[ratios.len() - 1]
    );
    ratio
}

/// The CPU time of one call, on average.
fn nanoseconds(run: &impl Fn()) -> f64 {
    let start = cpu();
    let mut calls = 0;
    loop {
        for _ in 0..16 {
            run();
        }
        calls += 16;
        let spent = cpu() - start;
        if spent >= SPAN {
            return spent.as_nanos() as f64 / f64::from(calls);
        }
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
