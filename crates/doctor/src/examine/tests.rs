use super::*;
use crate::finding::{Level, UNKNOWN};
use crate::table::table;
use crate::testing::{self, QUIET, Tree};
use std::collections::BTreeMap;

type Found = BTreeMap<String, Finding>;

/// By id; writes `later` between the two samples.
fn examined(tree: &Tree, later: &[(&str, &str)]) -> Found {
    let system = tree.system();
    let before = Sample::take(&system);
    later.iter().for_each(|(path, text)| tree.write(path, text.as_bytes()));
    let found = findings(&system, &before, &Sample::take(&system));
    for line in table(&found).lines().filter(|line| !line.starts_with("  $ ")) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let length = found.len();
    let found: Found = found.into_iter().map(|finding| (finding.id.clone(), finding)).collect();
    assert_eq!(found.len(), length, "each id once");
    found.values().for_each(testing::is_sound);
    found
}

#[track_caller]
fn expect(found: &Found, id: &str, level: Level, value: &str) {
    testing::expect(&found[id], level, value);
}

#[test]
fn a_machine_that_was_made_ready_is_good() {
    let found = examined(&Tree::new(QUIET), &[]);
    for finding in found.values() {
        assert_eq!((finding.level, finding.advice.as_str()), (Level::Good, ""), "{finding:?}");
    }
    expect(&found, "cores", Level::Good, "3 allowed of 8 online");
    expect(&found, "cgroup", Level::Good, "no CPU quota (version 2)");
    expect(&found, "frequency", Level::Good, "3010 MHz");
    expect(&found, "mitigations", Level::Good, "1 in force, 0 vulnerable");
    expect(&found, "isolated", Level::Good, "cores 0-1,4");
}

#[test]
fn what_is_absent_is_unknown() {
    let found = examined(&Tree::new(&[]), &[]);
    for (id, finding) in &found {
        let value = if id == "ipv6" { "not in this kernel" } else { "unknown" };
        assert_eq!((finding.value.as_str(), finding.level), (value, Level::Note), "{finding:?}");
    }
    assert_eq!(found.len(), examined(&Tree::new(QUIET), &[]).len());
}

#[test]
fn garbage_is_unknown_or_reported_and_never_a_panic() {
    let most = u64::MAX;
    let huge = format!(
        "cpu0 {most} {most} {most} {most} {most} {most} {most} {most}\ncpu1 {most} {most}\n{most}0 {most}"
    );
    let long = format!("0::/{}\n4:cpu:/../..\n[[]0-65535,0-65535", "x".repeat(5000));
    let few = ["-1", "nan inf", &huge, &long];
    let more = [
        "",
        "-",
        "[",
        "]x[",
        ":",
        "0-",
        "3-1",
        "()",
        "CapEff: zz\nCpus_allowed_list: 0-99999999",
        "\u{1b}[31m",
    ];
    for text in few.into_iter().chain(more) {
        let tree = Tree::new(QUIET);
        QUIET.iter().for_each(|(path, _)| tree.write(path, text.as_bytes()));
        tree.write("proc/77/stat", text.as_bytes());
        let found = examined(&tree, &[]);
        assert!(found.values().all(|finding| !finding.value.contains('\u{1b}')), "{text:?}");
    }
    let tree = Tree::new(QUIET);
    for (path, good) in QUIET {
        few.iter().for_each(|text| drop(examined(&tree, &[(path, text)])));
        tree.write(path, b"\xff\xfe\x00");
        examined(&tree, &[]);
        tree.write(path, good.as_bytes());
    }
}

/// One file changed on an otherwise good machine.
#[test]
fn each_disturbance_is_found() {
    const CPU: &str = "sys/devices/system/cpu";
    let status = |rest: &str| format!("CapEff:\t0000000000000000\n{rest}");
    let cases = [
        ("cores", "proc/self/status", "Cpus_allowed_list:\t0\n".into(), Level::Bad, "1 allowed of 8"),
        ("cores", "proc/self/status", "Cpus_allowed_list:\t0-1\n".into(), Level::Note, "2 allowed of 8"),
        (
            "governor",
            &format!("{CPU}/cpu1/cpufreq/scaling_governor"),
            "powersave".into(),
            Level::Bad,
            "performance, powersave",
        ),
        (
            "frequency",
            &format!("{CPU}/cpu1/cpufreq/scaling_cur_freq"),
            "1200000".into(),
            Level::Note,
            "1200 to 3000 MHz",
        ),
        ("turbo", &format!("{CPU}/intel_pstate/no_turbo"), "0".into(), Level::Note, "on"),
        ("smt", &format!("{CPU}/smt/active"), "1".into(), Level::Note, "on"),
        (
            "thermal",
            &format!("{CPU}/cpu1/thermal_throttle/core_throttle_count"),
            "7".into(),
            Level::Note,
            "7 times",
        ),
        ("isolated", &format!("{CPU}/isolated"), String::new(), Level::Note, "none"),
        ("virtual", "sys/hypervisor/type", "xen".into(), Level::Note, "a virtual machine (xen)"),
        (
            "virtual",
            "proc/cpuinfo",
            "flags\t\t: fpu hypervisor aes\n".into(),
            Level::Note,
            "a virtual machine",
        ),
        ("mitigations", "proc/cmdline", "quiet mitigations=off".into(), Level::Note, "off"),
        (
            "clocksource",
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "hpet".into(),
            Level::Bad,
            "hpet",
        ),
        (
            "huge-pages",
            "sys/kernel/mm/transparent_hugepage/enabled",
            "[always] madvise never".into(),
            Level::Note,
            "always",
        ),
        ("aslr", "proc/sys/kernel/randomize_va_space", "0".into(), Level::Note, "off"),
        (
            "open-files",
            "proc/self/limits",
            "Max open files  1024  524288  files\n".into(),
            Level::Bad,
            "1024 (at most 524288)",
        ),
        ("open-files", "proc/self/limits", "Max open files  4096  4096  files\n".into(), Level::Note, "4096"),
        (
            "open-files",
            "proc/self/limits",
            "Max open files  unlimited unlimited files\n".into(),
            Level::Good,
            "unlimited",
        ),
        (
            "priority",
            "proc/self/status",
            status("Cpus_allowed_list:\t0-3\n"),
            Level::Note,
            "cannot be raised",
        ),
        (
            "swap",
            "proc/meminfo",
            "SwapTotal: 2048 kB\nSwapFree: 1024 kB\n".into(),
            Level::Note,
            "1 of 2 MiB used",
        ),
        ("swap", "proc/meminfo", "SwapTotal: 2048 kB\nSwapFree: 2048 kB\n".into(), Level::Good, "0 of 2 MiB"),
        (
            "ports",
            "proc/sys/net/ipv4/ip_local_port_range",
            "61000 65535".into(),
            Level::Bad,
            "75 new connections/s",
        ),
        (
            "ports",
            "proc/sys/net/ipv4/ip_local_port_range",
            "40000 60999".into(),
            Level::Note,
            "350 new connections/s",
        ),
        (
            "ports",
            "proc/sys/net/ipv4/ip_local_port_range",
            "10240 65535".into(),
            Level::Note,
            "921 new connections/s",
        ),
        ("time-wait", "proc/sys/net/ipv4/tcp_tw_reuse", "0".into(), Level::Note, "not reused"),
        ("backlog", "proc/sys/net/core/somaxconn", "128".into(), Level::Bad, "somaxconn 128"),
        ("loopback", "sys/class/net/lo/mtu", "65536".into(), Level::Note, "MTU 65536"),
        ("ipv6", "proc/sys/net/ipv6/conf/lo/disable_ipv6", "1".into(), Level::Note, "::1 unavailable"),
        ("load", "proc/loadavg", "1.20 1 1 1/1 1".into(), Level::Note, "1.20"),
    ];
    for (id, path, text, level, value) in cases {
        let tree = Tree::new(QUIET);
        tree.write(path, text.as_bytes());
        let found = examined(&tree, &[]);
        expect(&found, id, level, value);
        let others = |finding: &&Finding| finding.id != id && finding.level == Level::Bad;
        assert_eq!(found.values().find(others), None, "{path}");
    }
}

/// A virtual machine with hot-pluggable cores lists them all as allowed.
#[test]
fn a_core_that_is_not_online_is_not_allowed() {
    let tree = Tree::new(QUIET);
    tree.write("proc/self/status", b"Cpus_allowed_list:\t0-127\n");
    tree.write("sys/devices/system/cpu/online", b"0-1,4-5\n");
    tree.write("proc/loadavg", b"1.60 0.5 0.1 1/1 1");
    tree.write("sys/fs/cgroup/user.slice/weir/cpu.max", b"400000 100000\n");
    let found = examined(&tree, &[]);
    expect(&found, "cores", Level::Good, "4 allowed of 4 online");
    expect(&found, "others", Level::Good, "of 4 cores");
    expect(&found, "steal", Level::Good, "0.0 % just now");
    expect(&found, "load", Level::Note, "1.60 over the last minute, on 4 cores");
    expect(&found, "cgroup", Level::Note, "4.00 cores");
}

#[test]
fn this_machine_can_be_examined() {
    let system = System::local();
    let sample = Sample::take(&system);
    let found = findings(&system, &sample, &Sample::take(&system));
    let known = found.iter().filter(|finding| finding.value != UNKNOWN).count();
    assert!(known >= 12, "{found:#?}");
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Finding>>(&text).unwrap(), found);
}
