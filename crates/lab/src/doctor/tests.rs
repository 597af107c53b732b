use super::*;
use std::collections::BTreeMap;
use std::fs;
use tempfile::TempDir;

/// A system that was made up.
struct Tree {
    directory: TempDir,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self { directory: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(path, text)| tree.write(path, text.as_bytes()));
        tree
    }

    fn write(&self, path: &str, text: &[u8]) {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn system(&self) -> System {
        System::new(self.directory.path())
    }

    /// By id; between the two samples `later` is written.
    fn examined(&self, later: &[(&str, &str)]) -> BTreeMap<String, Finding> {
        let system = self.system();
        let before = Sample::take(&system);
        later.iter().for_each(|(path, text)| self.write(path, text.as_bytes()));
        let found = findings(&system, &before, &Sample::take(&system));
        for line in table(&found).lines().filter(|line| !line.starts_with("  $ ")) {
            assert!(line.chars().count() <= 100, "{line}");
        }
        let length = found.len();
        let found: BTreeMap<_, _> = found.into_iter().map(|finding| (finding.id.clone(), finding)).collect();
        assert_eq!(found.len(), length, "each id once");
        for finding in found.values() {
            assert_eq!(finding.advice.is_empty(), finding.level == Level::Good, "{finding:?}");
            assert!(finding.mend.is_none() || finding.level != Level::Good, "{finding:?}");
        }
        found
    }
}

#[track_caller]
fn expect(found: &BTreeMap<String, Finding>, id: &str, level: Level, value: &str) {
    let finding = &found[id];
    assert!(finding.level == level && finding.value.contains(value), "{level:?} {value}: {finding:?}");
}

const STAT: &str = "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0\ncpu1 100 0 100 800 0 0 0 0 0 0\n\
                    cpu2 9 9 9 9 9 9 9 9 9 9\n";

/// A machine of one's own, made ready; version 2 of cgroups.
const QUIET: &[(&str, &str)] = &[
    ("proc/self/status", "Name:\tweir\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-1,4\n"),
    (
        "proc/self/limits",
        "Limit   Soft Limit   Hard Limit   Units\nMax open files            1048576              1048576   files\n\
         Max nice priority         0                    0\n",
    ),
    (
        "proc/stat",
        "cpu0 1 0 1 100 0 0 0 0 0 0\ncpu1 1 0 1 100 0 0 0 0 0 0\ncpu4 1 0 1 100 0 0 0 0\ncpu5 1 0 1 100\n",
    ),
    ("proc/loadavg", "0.08 0.03 0.05 1/200 4711\n"),
    ("proc/meminfo", "MemTotal: 32000000 kB\nSwapTotal:       0 kB\nSwapFree:        0 kB\n"),
    ("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu aes avx2\ncpu MHz\t\t: 3000.000\n"),
    ("proc/cmdline", "root=/dev/sda1 isolcpus=0-1,4"),
    ("proc/self/cgroup", "0::/user.slice/weir\n"),
    ("sys/fs/cgroup/user.slice/weir/cpu.max", "max 100000\n"),
    ("sys/devices/system/cpu/online", "0-7\n"),
    ("sys/devices/system/cpu/isolated", "0-1,4\n"),
    ("sys/devices/system/cpu/smt/active", "0\n"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000\n"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3010000\n"),
    ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "0\n"),
    ("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
    ("sys/devices/system/cpu/vulnerabilities/l1tf", "Not affected\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("proc/sys/kernel/randomize_va_space", "2\n"),
    ("proc/sys/kernel/perf_event_paranoid", "1\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "32768\t65535\n"),
    ("proc/sys/net/ipv4/tcp_tw_reuse", "1\n"),
    ("proc/sys/net/core/somaxconn", "4096\n"),
    ("sys/class/net/lo/mtu", "1500\n"),
    ("proc/sys/net/ipv6/conf/lo/disable_ipv6", "0\n"),
    ("proc/net/if_inet6", "00000000000000000000000000000001 01 80 10 80       lo\n"),
];

#[test]
fn a_machine_that_was_made_ready_is_good() {
    let found = Tree::new(QUIET).examined(&[]);
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
    let found = Tree::new(&[]).examined(&[]);
    for (id, finding) in &found {
        let value = if id == "ipv6" { "not in this kernel" } else { "unknown" };
        assert_eq!((finding.value.as_str(), finding.level), (value, Level::Note), "{finding:?}");
    }
    assert_eq!(found.len(), Tree::new(QUIET).examined(&[]).len());
}

#[test]
fn garbage_is_unknown_or_told_and_never_a_panic() {
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
        let found = tree.examined(&[]);
        assert!(found.values().all(|finding| !finding.value.contains('\u{1b}')), "{text:?}");
    }
    let tree = Tree::new(QUIET);
    for (path, good) in QUIET {
        few.iter().for_each(|text| drop(tree.examined(&[(path, text)])));
        tree.write(path, b"\xff\xfe\x00");
        tree.examined(&[]);
        tree.write(path, good.as_bytes());
    }
}

#[test]
fn others_are_named_with_what_they_use() {
    let process = |pid: u32, name: &str, ticks: u64, started: u64| {
        format!("{pid} ({name}) R 1 9 9 0 -1 0 1 2 3 4 {ticks} 0 0 0 20 0 1 0 {started} 0 0")
    };
    let tree = Tree::new(&[
        ("proc/self/status", "Cpus_allowed_list:\t0-1\n"),
        ("proc/stat", STAT),
        ("proc/9/stat", &process(9, "a worker:1", 500, 5)),
        ("proc/10/stat", &process(10, "quiet", 9999, 5)),
        ("proc/11/stat", &process(11, "ended", 9999, 5)),
        ("proc/loadavg", "1.60 0.5 0.1 1/1 1"),
    ]);
    let later = "cpu0 150 0 100 850 0 0 0 0 0 0\ncpu1 100 0 100 896 0 0 0 4 0 0\n";
    let found = tree.examined(&[
        ("proc/stat", later),
        ("proc/9/stat", &process(9, "cargo build", 530, 5)),
        ("proc/11/stat", &process(11, "cargo build", 15, 99)),
    ]);
    expect(&found, "others", Level::Bad, "25 % of 2 cores just now: cargo?build 45 % of a core");
    assert!(!found["others"].value.contains("quiet"), "{:?}", found["others"]);
    expect(&found, "steal", Level::Bad, "2.0 % just now, 0.2 % since boot");
    expect(&found, "load", Level::Bad, "1.60 over the last minute, on 2 cores");
    // Nothing has moved since.
    let found = tree.examined(&[]);
    expect(&found, "others", Level::Good, "0 % of 2 cores");
    expect(&found, "steal", Level::Good, "0.0 % just now");
}

#[test]
fn quotas_of_both_cgroup_versions_and_what_they_hold_back() {
    let allowed = ("proc/self/status", "Cpus_allowed_list:\t0-1\n");
    let tree = Tree::new(&[
        allowed,
        ("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,cpuacct:/docker/a\n0::/docker/a\n"),
        ("sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "150000\n"),
        ("sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpu/docker/a/cpu.stat", "nr_periods 90\nnr_throttled 12\nthrottled_time 5\n"),
    ]);
    let later =
        [("sys/fs/cgroup/cpu/docker/a/cpu.stat", "nr_periods 99\nnr_throttled 15\nthrottled_time 9\n")];
    let found = tree.examined(&later);
    expect(
        &found,
        "cgroup",
        Level::Bad,
        "1.50 cores by /docker/a (version 1), throttled 15 times, 3 just now",
    );

    // Above is less; and there is as much as there are cores.
    let v2 = |quota: &str| {
        Tree::new(&[
            allowed,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "900000 100000\n"),
            ("sys/fs/cgroup/a/cpu.max", quota),
            ("sys/fs/cgroup/a/cpu.stat", "usage_usec 7\nnr_throttled 0\n"),
        ])
        .examined(&[])
    };
    expect(&v2("50000 100000\n"), "cgroup", Level::Bad, "0.50 cores by /a (version 2), throttled 0 times");
    expect(&v2("200000 100000\n"), "cgroup", Level::Note, "2.00 cores by /a (version 2)");
    // A container's own cgroup is the root of its mount.
    let inner = Tree::new(&[
        allowed,
        ("proc/self/cgroup", "0::/docker/elsewhere\n"),
        ("sys/fs/cgroup/cpu.max", "100000 100000\n"),
    ]);
    expect(&inner.examined(&[]), "cgroup", Level::Bad, "1.00 cores by / (version 2), throttling unknown");
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
            "may not be raised",
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
        ("time-wait", "proc/sys/net/ipv4/tcp_tw_reuse", "0".into(), Level::Note, "not used again"),
        ("backlog", "proc/sys/net/core/somaxconn", "128".into(), Level::Bad, "somaxconn 128"),
        ("loopback", "sys/class/net/lo/mtu", "65536".into(), Level::Note, "MTU 65536"),
        ("ipv6", "proc/sys/net/ipv6/conf/lo/disable_ipv6", "1".into(), Level::Note, "::1 cannot be used"),
        ("load", "proc/loadavg", "1.20 1 1 1/1 1".into(), Level::Note, "1.20"),
    ];
    for (id, path, text, level, value) in cases {
        let tree = Tree::new(QUIET);
        tree.write(path, text.as_bytes());
        let found = tree.examined(&[]);
        expect(&found, id, level, value);
        let others = |finding: &&Finding| finding.id != id && finding.level == Level::Bad;
        assert_eq!(found.values().find(others), None, "{path}");
    }
}

#[test]
fn what_depends_on_two_files() {
    let tree = Tree::new(QUIET);
    tree.write("sys/devices/system/cpu/smt/active", b"1");
    tree.write("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", b"0,4");
    expect(&tree.examined(&[]), "smt", Level::Bad, "siblings are among the allowed cores");
    tree.write("proc/self/status", b"CapEff:\t0\nCpus_allowed_list:\t0-3\n");
    tree.write("proc/sys/kernel/perf_event_paranoid", b"3");
    let found = tree.examined(&[]);
    expect(&found, "smt", Level::Note, "on");
    expect(&found, "perf", Level::Note, "perf_event_paranoid 3");
    assert_eq!(found["perf"].mend.as_deref(), Some("sudo sysctl -w kernel.perf_event_paranoid=1"));
    tree.write("sys/devices/system/clocksource/clocksource0/current_clocksource", b"acpi_pm");
    tree.write("sys/devices/system/clocksource/clocksource0/available_clocksource", b"tsc acpi_pm");
    let mend = tree.examined(&[])["clocksource"].mend.clone().unwrap();
    assert_eq!(mend, "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource");
    // Pages that move are worse than pages that lie there.
    tree.write("proc/meminfo", b"SwapTotal: 2048 kB\nSwapFree: 1024 kB\n");
    tree.write("proc/vmstat", b"pswpin 5\npswpout 6\n");
    let found = tree.examined(&[("proc/vmstat", "pswpin 8\npswpout 6\n")]);
    expect(&found, "swap", Level::Bad, "3 pages moved just now");
}

#[test]
fn the_table_has_the_worst_first_and_commands_in_one_piece() {
    let tree = Tree::new(QUIET);
    tree.write("proc/sys/net/ipv4/tcp_tw_reuse", b"0");
    tree.write("proc/sys/net/core/somaxconn", b"128");
    let found: Vec<Finding> = tree.examined(&[]).into_values().collect();
    let text = table(&found);
    assert!(text.starts_with("1 bad, 1 to note, "), "{text}");
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(
        at("bad   backlog") < at("note  time-wait") && at("note  time-wait") < at("good  aslr"),
        "{text}"
    );
    assert!(text.contains("\n  $ sudo sysctl -w net.core.somaxconn=4096\n"), "{text}");
    assert!(!text.contains("\naslr:"), "what is good needs no advice: {text}");
}

/// A virtual machine that more cores could be plugged into lists them all as allowed: nothing was known of the cores,
/// and a quota of all that are there was bad.
#[test]
fn a_core_that_is_not_online_is_not_allowed() {
    let tree = Tree::new(QUIET);
    tree.write("proc/self/status", b"Cpus_allowed_list:\t0-127\n");
    tree.write("sys/devices/system/cpu/online", b"0-1,4-5\n");
    tree.write("proc/loadavg", b"1.60 0.5 0.1 1/1 1");
    tree.write("sys/fs/cgroup/user.slice/weir/cpu.max", b"400000 100000\n");
    let found = tree.examined(&[]);
    expect(&found, "cores", Level::Good, "4 allowed of 4 online");
    expect(&found, "others", Level::Good, "of 4 cores");
    expect(&found, "steal", Level::Good, "0.0 % just now");
    expect(&found, "load", Level::Note, "1.60 over the last minute, on 4 cores");
    expect(&found, "cgroup", Level::Note, "4.00 cores");
}

/// Any isolated core was good, though the lab may use none of them, and though a gateway with several is worse off.
#[test]
fn isolated_cores_are_good_when_they_are_those_that_are_used() {
    let found = |allowed: &str, isolated: &str| {
        let tree = Tree::new(QUIET);
        tree.write("proc/self/status", format!("Cpus_allowed_list:\t{allowed}\n").as_bytes());
        tree.write("sys/devices/system/cpu/isolated", isolated.as_bytes());
        tree.examined(&[])
    };
    expect(&found("2-3", "1-4"), "isolated", Level::Good, "cores 1-4");
    for allowed in ["0-1", "1-3", "0-7"] {
        let found = found(allowed, "2-3");
        expect(&found, "isolated", Level::Note, "cores 2-3, and the allowed are ");
        assert_eq!(found["isolated"].mend.as_deref(), Some("taskset -c 2,3 weir run FILE"));
    }
    let several = found("2-5", "2-5");
    expect(&several, "isolated", Level::Note, "cores 2-5");
    assert!(several["isolated"].advice.starts_with("Give each gateway one core"), "{several:?}");
    expect(&found("0-1", "nonsense"), "isolated", Level::Note, "unknown");
}

/// On ARM, whose processors have `Features` in place of x86's `flags`, every virtual machine was called none.
#[test]
fn a_virtual_machine_without_a_flag_is_known_by_its_names() {
    const DMI: &str = "sys/class/dmi/id";
    let found = |files: &[(&str, &str)]| {
        let tree = Tree::new(QUIET);
        tree.write("proc/cpuinfo", b"processor\t: 0\nFeatures\t: fp asimd aes\n");
        files.iter().for_each(|(path, text)| tree.write(path, text.as_bytes()));
        assert_eq!(hypervisor::is_below(&tree.system()), (!files.is_empty()).then_some(true));
        tree.examined(&[])
    };
    expect(&found(&[]), "virtual", Level::Note, UNKNOWN);
    expect(&found(&[("proc/device-tree/hypervisor/compatible", "kvm")]), "virtual", Level::Note, "a virtual");
    let product = format!("{DMI}/product_name");
    expect(&found(&[(&product, "KVM Virtual Machine\n")]), "virtual", Level::Note, "(KVM Virtual Machine)");
    let vendor = format!("{DMI}/sys_vendor");
    let amazon = found(&[(&vendor, "Amazon EC2\n"), (&product, "m7g.large\n")]);
    expect(&amazon, "virtual", Level::Note, "a virtual machine (m7g.large)");
    let metal = Tree::new(&[(&vendor, "Amazon EC2\n"), (&product, "m7g.metal\n")]);
    assert_eq!(hypervisor::is_below(&metal.system()), None);
}

#[test]
fn this_machine_can_be_examined() {
    let system = System::new(Path::new("/"));
    let sample = Sample::take(&system);
    let found = findings(&system, &sample, &Sample::take(&system));
    let known = found.iter().filter(|finding| finding.value != UNKNOWN).count();
    assert!(known >= 12, "{found:#?}");
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Finding>>(&text).unwrap(), found);
}
