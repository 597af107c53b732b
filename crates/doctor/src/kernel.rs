//! Kernel settings.

use crate::finding::{Check, Finding, Subject};
use crate::system::{System, chosen};

pub(crate) const CHECKS: &[Check] = &[huge_pages, aslr, perf];

/// CAP_SYS_ADMIN and CAP_PERFMON of capabilities(7).
const TO_PROFILE: [u32; 2] = [21, 38];

fn huge_pages(system: &System) -> Finding {
    let subject = Subject::new(
        "huge-pages",
        "With `always` the kernel assembles huge pages at any time: memory grows, and some requests wait.",
    );
    let text = system.read("sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    match chosen(&text) {
        Some(value @ ("madvise" | "never")) => subject.good(value),
        Some("always") => subject
            .note("always", "Let programs ask for them instead.")
            .fix("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"),
        _ => subject.unknown(),
    }
}

fn aslr(system: &System) -> Finding {
    let subject = Subject::new(
        "aslr",
        "The layout of code and data moves results by some percent. With a random layout per process that is noise, \
         otherwise a bias.",
    );
    match system.read("proc/sys/kernel/randomize_va_space").as_deref() {
        Some("2") => subject.good("on"),
        Some(value @ ("0" | "1")) => subject
            .note(
                if value == "0" { "off" } else { "partial" },
                "Turn it on, so that comparisons average over layouts.",
            )
            .fix("sudo sysctl -w kernel.randomize_va_space=2"),
        _ => subject.unknown(),
    }
}

fn perf(system: &System) -> Finding {
    let subject = Subject::new(
        "perf",
        "A gateway spends half of its time in the kernel; a profile without it shows the smaller half.",
    );
    let Some(level) = system.number::<i32>("proc/sys/kernel/perf_event_paranoid") else {
        return subject.unknown();
    };
    let value = format!("perf_event_paranoid {level}");
    if TO_PROFILE.iter().any(|number| system.capability(*number) == Some(true)) {
        return subject.good(format!("{value}, but allowed to profile"));
    }
    match level {
        ..=1 => subject.good(value),
        _ => subject
            .note(value, "Measurements are unaffected, but profiles will lack the kernel.")
            .fix("sudo sysctl -w kernel.perf_event_paranoid=1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;
    use crate::testing::{Tree, expect};

    #[test]
    fn a_profile_needs_a_low_level_or_the_right() {
        let tree =
            Tree::new(&[("proc/self/status", "CapEff:\t0\n"), ("proc/sys/kernel/perf_event_paranoid", "3")]);
        let found = perf(&tree.system());
        expect(&found, Level::Note, "perf_event_paranoid 3");
        assert_eq!(found.fix.as_deref(), Some("sudo sysctl -w kernel.perf_event_paranoid=1"));
        tree.write("proc/self/status", b"CapEff:\t0000004000000000\n");
        expect(&perf(&tree.system()), Level::Good, "but allowed to profile");
    }
}
