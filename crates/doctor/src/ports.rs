//! Ports, queues and the loopback interface.

use crate::finding::{Check, Finding, Level, Subject};
use crate::system::System;

pub(crate) const CHECKS: &[Check] = &[ports, time_wait, backlog, loopback, ipv6];

/// The lab's listeners get ports from here, above those of well-known services.
pub const LISTENERS_FROM: u16 = 15_000;

/// An ephemeral port range that starts above this leaves room for those listeners below it.
pub const ROOM_BELOW: u16 = LISTENERS_FROM + 100;

/// How long a port stays in TIME_WAIT, in seconds.
const TIME_WAIT_S: u64 = 60;

fn range(system: &System) -> Option<(u64, u64)> {
    let text = system.read("proc/sys/net/ipv4/ip_local_port_range")?;
    let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
    let (first, last) = (numbers.next()??, numbers.next()??);
    (first <= last && last <= 65_535).then_some((first, last))
}

fn ports(system: &System) -> Finding {
    let subject = Subject::new(
        "ports",
        "Each connection takes a local port, and keeps it for a minute if this side closed first. A run without a free port \
         fails.",
    );
    let Some((first, last)) = range(system) else { return subject.unknown() };
    let count = last - first + 1;
    let value = format!(
        "{first} to {last}: {} new connections/s per address pair without reuse",
        count / TIME_WAIT_S
    );
    let advice = "Widen the range, or give the load engine more local addresses with --source.";
    let among = "It overlaps the ports of the lab's listeners, and one may be taken before it is bound: start the range higher.";
    let (level, advice) = match count {
        ..10_000 => (Level::Bad, advice),
        10_000..25_000 => (Level::Note, advice),
        25_000.. if first <= u64::from(ROOM_BELOW) => (Level::Note, among),
        25_000.. => (Level::Good, ""),
    };
    // More connections than that need more addresses.
    subject.found(level, value, advice).fix("sudo sysctl -w net.ipv4.ip_local_port_range='32768 65535'")
}

fn time_wait(system: &System) -> Finding {
    let subject = Subject::new(
        "time-wait",
        "With tcp_tw_reuse a port in TIME_WAIT is reusable after a second, so new connections do not run out of \
         ports.",
    );
    match system.read("proc/sys/net/ipv4/tcp_tw_reuse").as_deref() {
        Some("1") => subject.good("reused"),
        Some("2") => subject.good("reused on loopback"),
        Some("0") => subject
            .note("not reused", "Turn it on for experiments with new connections.")
            .fix("sudo sysctl -w net.ipv4.tcp_tw_reuse=2"),
        _ => subject.unknown(),
    }
}

fn backlog(system: &System) -> Finding {
    let subject = Subject::new(
        "backlog",
        "Connections beyond a listener's queue are dropped and retried after a second, which looks like a slow gateway.",
    );
    let Some(most) = system.number::<u64>("proc/sys/net/core/somaxconn") else { return subject.unknown() };
    let level = match most {
        ..256 => Level::Bad,
        256..1024 => Level::Note,
        1024.. => Level::Good,
    };
    subject
        .found(level, format!("somaxconn {most}"), "Raise it, so that many users can connect at once.")
        .fix("sudo sysctl -w net.core.somaxconn=4096")
}

fn loopback(system: &System) -> Finding {
    let subject = Subject::new(
        "loopback",
        "With 64 KiB segments bytes look cheaper than on a real network, which needs 44 packets for each.",
    );
    let Some(mtu) = system.number::<u64>("sys/class/net/lo/mtu") else { return subject.unknown() };
    let value = format!("MTU {mtu}");
    match mtu {
        ..1280 => subject.bad(value, "IPv6 needs at least 1280.").fix("sudo ip link set lo mtu 65536"),
        1280..=9000 => subject.good(value),
        _ => subject
            .note(value, "For realistic costs per byte, lower it during the experiment.")
            .fix("sudo ip link set lo mtu 1500"),
    }
}

fn ipv6(system: &System) -> Finding {
    let subject = Subject::new("ipv6", "Only experiments and targets that use ::1 need it.");
    let off = system.read("proc/sys/net/ipv6/conf/lo/disable_ipv6");
    let address = system
        .read("proc/net/if_inet6")
        .map(|text| text.lines().any(|line| line.starts_with("00000000000000000000000000000001 ")));
    match (off.as_deref(), address) {
        (Some("0"), Some(true)) => subject.good("::1 available"),
        (Some("0"), None) | (None, Some(true)) => subject.unknown(),
        (None, None) => subject.note("not in this kernel", "Use IPv4 addresses."),
        _ => subject
            .note("::1 unavailable", "Use IPv4 addresses, or turn it on.")
            .fix("sudo sysctl -w net.ipv6.conf.lo.disable_ipv6=0"),
    }
}
