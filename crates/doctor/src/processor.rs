//! The processor and its cores.

use crate::cores;
use crate::finding::{Check, Finding, Subject};
use crate::hypervisor;
use crate::system::{CPU, System};

pub(crate) const CHECKS: &[Check] = &[
    cores_allowed,
    governor,
    frequency,
    turbo,
    throttled,
    smt,
    isolated,
    virtual_machine,
    clocksource,
    mitigations,
];

fn cores_allowed(system: &System) -> Finding {
    let subject = Subject::new(
        "cores",
        "Gateway, load and origin compete on a shared core; the gateway's maximum only shows with a core for each.",
    );
    let Some(allowed) = system.allowed() else { return subject.unknown() };
    let online = system.cores("online");
    let present = online.map_or("an unknown number".to_owned(), |cores| cores.len().to_string());
    let value = format!("{} allowed of {present} online", allowed.len());
    match allowed.len() {
        ..2 => subject.bad(value, "Allow this process at least two cores; everything shares one now."),
        2 => {
            subject.note(value, "Load and origin share a core, so the gateway's maximum may not be reached.")
        }
        3.. => subject.good(value),
    }
}

fn governor(system: &System) -> Finding {
    let subject = Subject::new(
        "governor",
        "A governor that scales with load slows a mostly idle core down, so CPU per request depends on the \
         rate.",
    );
    let mut governors = system.of_cores::<String>("cpufreq/scaling_governor");
    governors.sort_unstable();
    governors.dedup();
    let value = governors.join(", ");
    match value.as_str() {
        "" => subject.unknown(),
        "performance" => subject.good(value),
        _ => subject
            .bad(value, "Set all cores to the performance governor.")
            .fix("sudo cpupower frequency-set -g performance"),
    }
}

fn frequency(system: &System) -> Finding {
    let subject = Subject::new(
        "frequency",
        "With different frequencies, results depend on which core a process ran on.",
    );
    let khz = system.of_cores::<f64>("cpufreq/scaling_cur_freq");
    let mut mhz: Vec<f64> = khz.into_iter().map(|khz| khz / 1e3).collect();
    if mhz.is_empty() {
        let text = system.read("proc/cpuinfo").unwrap_or_default();
        let named = text.lines().filter_map(|line| line.split_once(':'));
        let of_cores = named.filter(|(name, _)| name.trim() == "cpu MHz");
        mhz = of_cores.filter_map(|(_, mhz)| mhz.trim().parse().ok()).collect();
    }
    mhz.retain(|mhz| mhz.is_finite() && *mhz > 0.0);
    let Some(least) = mhz.iter().copied().reduce(f64::min) else { return subject.unknown() };
    let most = mhz.iter().copied().fold(least, f64::max);
    if most > least * 1.05 {
        subject.note(
            format!("{least:.0} to {most:.0} MHz"),
            "Cores differ right now: check the governor and turbo.",
        )
    } else {
        subject.good(format!("{most:.0} MHz"))
    }
}

fn turbo(system: &System) -> Finding {
    let subject = Subject::new(
        "turbo",
        "Turbo depends on temperature and the other cores, so the first runs are faster than the last.",
    );
    let intel = system.read(&format!("{CPU}/intel_pstate/no_turbo"));
    let others = system.read(&format!("{CPU}/cpufreq/boost"));
    let advice = "Turn it off for comparisons, and report that with the figures.";
    match (intel.as_deref(), others.as_deref()) {
        (Some("1"), _) | (None, Some("0")) => subject.good("off"),
        (Some("0"), _) => {
            subject.note("on", advice).fix("echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo")
        }
        (None, Some("1")) => {
            subject.note("on", advice).fix("echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost")
        }
        _ => subject.unknown(),
    }
}

fn throttled(system: &System) -> Finding {
    let subject = Subject::new("thermal", "An overheated processor slows itself down.");
    let counts = system.of_cores::<u64>("thermal_throttle/core_throttle_count");
    match counts.into_iter().reduce(u64::saturating_add) {
        None => subject.unknown(),
        Some(0) => subject.good("never throttled"),
        Some(count) => subject.note(
            format!("throttled {count} times since boot"),
            "Cool it better, or lower its frequency to a sustainable one.",
        ),
    }
}

fn smt(system: &System) -> Finding {
    let subject = Subject::new(
        "smt",
        "Two threads of a core share its execution units; each slows the other by a third or more.",
    );
    let siblings = system.of_cores::<String>("topology/thread_siblings_list");
    let allowed = system.allowed().unwrap_or_default();
    let shared = siblings
        .iter()
        .filter_map(|text| cores::parse(text))
        .any(|pair| pair.iter().filter(|core| allowed.contains(core)).count() > 1);
    let off = "echo off | sudo tee /sys/devices/system/cpu/smt/control";
    match system.read(&format!("{CPU}/smt/active")).as_deref() {
        Some("0") => subject.good("off"),
        Some("1") if shared => subject
            .bad(
                "on, and the allowed cores include siblings",
                "Turn it off, or allow only one thread per core.",
            )
            .fix(off),
        Some("1") => {
            subject.note("on", "Other processes may run on the siblings of the allowed cores.").fix(off)
        }
        _ => subject.unknown(),
    }
}

/// A core each for gateway, origin and load; with more, a gateway may get several.
const ONE_EACH: usize = 3;

fn isolated(system: &System) -> Finding {
    let subject = Subject::new(
        "isolated",
        "Nothing else runs on an isolated core, so latencies have a shorter tail. But the scheduler does not balance \
         isolated cores: a gateway that does not pin its threads has them all on one.",
    );
    let (Some(text), Some(allowed)) = (system.read(&format!("{CPU}/isolated")), system.allowed()) else {
        return subject.unknown();
    };
    if matches!(text.as_str(), "" | "(null)") {
        return subject.note(
            "none",
            "For figures to publish, isolate the measured cores with the kernel's isolcpus= and nohz_full=.",
        );
    }
    let Some(isolated) = cores::parse(&text) else { return subject.unknown() };
    let value = format!("cores {text}");
    if !allowed.iter().all(|core| isolated.contains(core)) {
        let (isolated, allowed) = (cores::list(&isolated), cores::list(&allowed));
        return subject
            .note(format!("{value}, but {allowed} allowed"), "Run experiments on the isolated cores.")
            .fix(&format!("taskset -c {isolated} weir run FILE"));
    }
    match allowed.len() {
        ..=ONE_EACH => subject.good(value),
        _ => subject.note(value, "Give each gateway one core: with several it may use only one of them."),
    }
}

fn virtual_machine(system: &System) -> Finding {
    let subject = Subject::new(
        "virtual",
        "Other guests, VM exits and cores shared with other guests' threads are invisible from inside.",
    );
    let container = ["run/.containerenv", ".dockerenv"].iter().any(|file| system.has(file));
    let within = if container { ", in a container" } else { "" };
    match hypervisor::is_below(system) {
        None => subject.unknown(),
        Some(false) => subject.good(format!("no{within}")),
        Some(true) => {
            let name = hypervisor::name(system).map_or(String::new(), |name| format!(" ({name})"));
            let advice = "Report it with the figures, and trust ratios within one experiment rather than absolute values.";
            subject.note(format!("a virtual machine{name}{within}"), advice)
        }
    }
}

fn clocksource(system: &System) -> Finding {
    let subject = Subject::new(
        "clocksource",
        "The engine reads the clock at every event: from user space that takes 20 to 50 ns, with a system call ten times as \
         long.",
    );
    const DIRECTORY: &str = "sys/devices/system/clocksource/clocksource0";
    let fast = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
    let Some(current) = system.read(&format!("{DIRECTORY}/current_clocksource")) else {
        return subject.unknown();
    };
    if fast.contains(&current.as_str()) {
        return subject.good(current);
    }
    let slow = subject.bad(current, "Use a clock that needs no system call.");
    let available = system.read(&format!("{DIRECTORY}/available_clocksource")).unwrap_or_default();
    match available.split(' ').find(|name| fast.contains(name)) {
        Some(name) => slow.fix(&format!("echo {name} | sudo tee /{DIRECTORY}/current_clocksource")),
        None => slow,
    }
}

fn mitigations(system: &System) -> Finding {
    let subject = Subject::new(
        "mitigations",
        "They make system calls slower, so machines with and without them are not comparable.",
    );
    let states: Vec<String> = system
        .list(&format!("{CPU}/vulnerabilities"))
        .iter()
        .filter_map(|name| system.read(&format!("{CPU}/vulnerabilities/{name}")))
        .collect();
    let off =
        system.read("proc/cmdline").is_some_and(|line| line.split(' ').any(|word| word == "mitigations=off"));
    let count = |start: &str| states.iter().filter(|state| state.starts_with(start)).count();
    let value = format!("{} in force, {} vulnerable", count("Mitigation"), count("Vulnerable"));
    let advice = "They are off: report that with the figures.";
    match states.len() {
        _ if off => subject.note(format!("off (mitigations=off), {value}"), advice),
        0 => subject.unknown(),
        _ => subject.good(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Level, UNKNOWN};
    use crate::testing::{QUIET, Tree, expect};

    #[test]
    fn siblings_are_bad_when_both_are_allowed() {
        let tree = Tree::new(QUIET);
        tree.write("sys/devices/system/cpu/smt/active", b"1");
        tree.write("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", b"0,4");
        expect(&smt(&tree.system()), Level::Bad, "the allowed cores include siblings");
        tree.write("proc/self/status", b"CapEff:\t0\nCpus_allowed_list:\t0-3\n");
        expect(&smt(&tree.system()), Level::Note, "on");
    }

    #[test]
    fn a_slow_clock_is_replaced_by_a_fast_one_that_is_there() {
        const DIRECTORY: &str = "sys/devices/system/clocksource/clocksource0";
        let tree = Tree::new(&[]);
        tree.write(&format!("{DIRECTORY}/current_clocksource"), b"acpi_pm");
        expect(&clocksource(&tree.system()), Level::Bad, "acpi_pm");
        assert_eq!(clocksource(&tree.system()).fix, None);
        tree.write(&format!("{DIRECTORY}/available_clocksource"), b"tsc acpi_pm");
        let fix = clocksource(&tree.system()).fix.expect("tsc is there");
        assert_eq!(fix, format!("echo tsc | sudo tee /{DIRECTORY}/current_clocksource"));
    }

    #[test]
    fn isolated_cores_are_good_when_they_are_those_that_are_used() {
        let found = |allowed: &str, on: &str| {
            let tree = Tree::new(QUIET);
            tree.write("proc/self/status", format!("Cpus_allowed_list:\t{allowed}\n").as_bytes());
            tree.write("sys/devices/system/cpu/isolated", on.as_bytes());
            isolated(&tree.system())
        };
        expect(&found("2-3", "1-4"), Level::Good, "cores 1-4");
        for allowed in ["0-1", "1-3", "0-7"] {
            let found = found(allowed, "2-3");
            expect(&found, Level::Note, "cores 2-3, but ");
            assert_eq!(found.fix.as_deref(), Some("taskset -c 2,3 weir run FILE"));
        }
        let several = found("2-5", "2-5");
        expect(&several, Level::Note, "cores 2-5");
        assert!(several.advice.starts_with("Give each gateway one core"), "{several:?}");
        expect(&found("0-1", "nonsense"), Level::Note, UNKNOWN);
    }

    #[test]
    fn a_virtual_machine_without_a_flag_has_its_name() {
        const DMI: &str = "sys/class/dmi/id";
        let found = |files: &[(&str, &str)]| {
            let tree = Tree::new(&[("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd aes\n")]);
            files.iter().for_each(|(path, text)| tree.write(path, text.as_bytes()));
            virtual_machine(&tree.system())
        };
        let (product, vendor) = (format!("{DMI}/product_name"), format!("{DMI}/sys_vendor"));
        expect(&found(&[]), Level::Note, UNKNOWN);
        expect(&found(&[("proc/device-tree/hypervisor/compatible", "kvm")]), Level::Note, "a virtual");
        expect(&found(&[(&product, "KVM Virtual Machine\n")]), Level::Note, "(KVM Virtual Machine)");
        let amazon = found(&[(&vendor, "Amazon EC2\n"), (&product, "m7g.large\n")]);
        expect(&amazon, Level::Note, "a virtual machine (m7g.large)");
    }
}
