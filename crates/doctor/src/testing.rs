//! Fake systems, and checks on findings in them.

use crate::finding::{Finding, Level};
use crate::system::System;
use std::fs;
use tempfile::TempDir;

/// A fake system.
pub(crate) struct Tree {
    directory: TempDir,
}

impl Tree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self { directory: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(path, text)| tree.write(path, text.as_bytes()));
        tree
    }

    pub(crate) fn write(&self, path: &str, text: &[u8]) {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn system(&self) -> System {
        System::new(self.directory.path())
    }
}

/// The finding has this level, this text in its value, and [`is_sound`].
#[track_caller]
pub(crate) fn expect(finding: &Finding, level: Level, value: &str) {
    is_sound(finding);
    assert!(finding.level == level && finding.value.contains(value), "{level:?} {value}: {finding:?}");
}

/// Findings that are not good have advice; good ones have neither advice nor a command.
#[track_caller]
pub(crate) fn is_sound(finding: &Finding) {
    assert_eq!(finding.advice.is_empty(), finding.level == Level::Good, "{finding:?}");
    assert!(finding.fix.is_none() || finding.level != Level::Good, "{finding:?}");
}

/// A well-prepared machine with cgroups version 2.
pub(crate) const QUIET: &[(&str, &str)] = &[
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
