//! The delay relay: a separate process that connects two namespaces through a TUN device in each, and forwards each IP
//! packet after half the round-trip time, or loses it.
//!
//! The TUN devices have no segmentation or checksum offload, so each packet is as on the wire, no larger
//! than the MTU. The relay reads one line of JSON ([`Settings`]) from standard input, prints `ready`, relays until that
//! input closes (so it also exits when the lab is killed), and prints its [`RelayReport`].

use crate::line::{Line, Packet};
use crate::namespaces::inside;
use crate::report::{RelayReport, Spread};
use hdrhistogram::Histogram;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tun_rs::{DeviceBuilder, SyncDevice};
use weir_doctor::proc::{Stat, own_thread_cpu};
use weir_stats::rng::Rng;

/// Maximum queued packets per direction: 50 ms of 4 Gbit/s in packets of 1500 bytes.
const MOST_WAITING: usize = 16_384;
/// How many packets the kernel queues for the relay.
const DEVICE_QUEUE: u32 = 4_096;
/// Packets read from a device before checking for due packets again.
const BATCH: usize = 16;
/// Packets are late above this share of their delay ..
const TOLERATED_SHARE: f64 = 0.05;
/// .. but not below this, in nanoseconds: no timer of a virtual machine is better.
const TOLERATED_LEAST: u64 = 100_000;
/// For a relay without a real-time priority.
const HIGHEST_PRIORITY: i32 = -20;
const SECOND: u64 = 1_000_000_000;

/// The relay's settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The links.
    pub legs: Vec<Leg>,
    /// Round-trip time in milliseconds; each packet is delayed by half of it.
    pub rtt_ms: f64,
    /// Packet loss in each direction, in percent.
    pub loss_percent: f64,
    /// MTU of the devices, in bytes.
    pub mtu: u16,
    /// Seed for the choice of lost packets.
    pub seed: u64,
    /// The relay's cores.
    pub core: usize,
}

/// Two connected namespaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leg {
    /// The name of the device in both.
    pub device: String,
    /// The names of the namespaces.
    pub namespaces: [String; 2],
    /// What runs in them, for the report.
    pub parts: [String; 2],
}

/// Runs the relay, from the first line of standard input to its end.
///
/// # Errors
/// Invalid settings, a device cannot be created, or packets cannot be read or written.
pub fn run() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let settings: Settings = serde_json::from_str(&line)?;
    let mut core = CpuSet::new();
    core.set(settings.core);
    sched_setaffinity(None, &core)?;
    // Without the privileges, the lateness shows it.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = setpriority_process(None, HIGHEST_PRIORITY);
    let mut relay = Relay::new(&settings)?;
    say("ready")?;
    relay.relay()?;
    say(&serde_json::to_string(&relay.report(&settings)?)?)
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

struct Relay {
    /// The ends of leg `n` are `2n` and `2n + 1`; line `n` starts at end `n` and leads to its peer.
    ends: Vec<SyncDevice>,
    lines: Vec<Line>,
    spare: Vec<Box<[u8]>>,
    mtu: usize,
    began: Instant,
    late: Histogram<u64>,
    turns: Histogram<u64>,
    core: CoreUse,
    tolerance: u64,
}

impl Relay {
    fn new(settings: &Settings) -> io::Result<Self> {
        let delay = (settings.rtt_ms / 2.0 * 1e6) as u64;
        let tolerance = ((delay as f64 * TOLERATED_SHARE) as u64).max(TOLERATED_LEAST);
        let mut seeds = Rng::new(settings.seed);
        let (mut ends, mut lines) = (Vec::new(), Vec::new());
        for leg in &settings.legs {
            for namespace in &leg.namespaces {
                ends.push(open(namespace, &leg.device, settings.mtu)?);
                let loss = settings.loss_percent / 100.0;
                lines.push(Line::new(delay, tolerance, loss, MOST_WAITING, seeds.next()));
            }
        }
        let histogram = || Histogram::new_with_bounds(1, 10 * SECOND, 2).map_err(io::Error::other);
        Ok(Self {
            ends,
            lines,
            spare: Vec::new(),
            mtu: usize::from(settings.mtu),
            began: Instant::now(),
            late: histogram()?,
            turns: histogram()?,
            core: CoreUse::default(),
            tolerance,
        })
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Runs until standard input closes.
    fn relay(&mut self) -> io::Result<()> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut events: Vec<epoll::Event> = Vec::with_capacity(self.ends.len() + 1);
        for (index, end) in self.ends.iter().enumerate() {
            epoll::add(&epoll, end.as_fd(), epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
        }
        let input = self.ends.len();
        epoll::add(&epoll, io::stdin(), epoll::EventData::new_u64(input as u64), epoll::EventFlags::IN)?;
        loop {
            events.clear();
            let timeout = self.until_due();
            match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let woke = self.now();
            self.core.look(woke);
            self.release()?;
            for event in &events {
                let index = event.data.u64() as usize;
                if index == input {
                    if io::stdin().lock().fill_buf()?.is_empty() {
                        return Ok(());
                    }
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "more than one line of settings"));
                }
                self.take(index)?;
                self.release()?;
            }
            let turn = self.now() - woke;
            self.turns.saturating_record(turn);
        }
    }

    fn until_due(&self) -> Option<Timespec> {
        let due = self.lines.iter().filter_map(Line::due).min()?;
        let left = Duration::from_nanos(due.saturating_sub(self.now()));
        Some(Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) })
    }

    /// Reads packets from one end.
    fn take(&mut self, index: usize) -> io::Result<()> {
        for _ in 0..BATCH {
            let mut buffer = self.spare.pop().unwrap_or_else(|| vec![0; self.mtu].into_boxed_slice());
            let length = match rustix::io::read(self.ends[index].as_fd(), &mut buffer[..]) {
                Ok(length) => length,
                Err(Errno::AGAIN) => {
                    self.spare.push(buffer);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            let now = self.now();
            if let Some(packet) = self.lines[index].arrive(now, Packet { buffer, length }) {
                self.spare.push(packet.buffer);
            }
        }
        Ok(())
    }

    /// Forwards all due packets.
    fn release(&mut self) -> io::Result<()> {
        for index in 0..self.lines.len() {
            loop {
                let now = self.now();
                let Some((packet, behind)) = self.lines[index].release(now) else { break };
                self.late.saturating_record(behind);
                match rustix::io::write(self.ends[index ^ 1].as_fd(), packet.bytes()) {
                    Ok(_) => {}
                    // The interface is down or out of memory: drop the packet, as a network would.
                    Err(Errno::IO | Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN) => {
                        self.lines[index].counts.refused += 1;
                    }
                    Err(error) => return Err(error.into()),
                }
                self.spare.push(packet.buffer);
            }
        }
        Ok(())
    }

    fn report(&mut self, settings: &Settings) -> io::Result<RelayReport> {
        let now = self.now();
        let mut directions = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let leg = &settings.legs[index / 2];
            let (from, to) = (index % 2, 1 - index % 2);
            let mut direction = line.counts.clone();
            direction.way = format!("{} to {}", leg.parts[from], leg.parts[to]);
            direction.packets_out -= direction.refused;
            direction.unread = unread(&leg.namespaces[from], &leg.device)?;
            direction.left = line.waiting() as u64;
            directions.push(direction);
        }
        Ok(RelayReport {
            directions,
            late_us: spread(&self.late),
            tolerance_us: self.tolerance as f64 / 1e3,
            turn_us: spread(&self.turns),
            cpu_seconds: own_thread_cpu().as_secs_f64(),
            wall_seconds: now as f64 / 1e9,
            busiest_second: self.core.busiest,
            real_time: Stat::of("thread-self").is_some_and(|stat| is_real_time(&stat)),
        })
    }
}

/// Opens the TUN device of this name in a namespace; it exists while it is open.
fn open(namespace: &str, device: &str, mtu: u16) -> io::Result<SyncDevice> {
    let build = || {
        let builder = DeviceBuilder::new().name(device).mtu(mtu).tx_queue_len(DEVICE_QUEUE);
        let opened = builder.inherit_enable_state().build_sync()?;
        opened.set_nonblocking(true)?;
        Ok(opened)
    };
    inside(namespace, build).flatten().map_err(|error: io::Error| {
        io::Error::new(error.kind(), format!("no TUN device in {namespace}: {error}"))
    })
}

/// Packets dropped by the kernel because the device's queue was full.
fn unread(namespace: &str, device: &str) -> io::Result<u64> {
    let table = inside(namespace, || std::fs::read_to_string("/proc/thread-self/net/dev")).flatten()?;
    dropped(&table, device).ok_or_else(|| io::Error::other(format!("{device} is not in /proc/net/dev")))
}

/// Eight receive columns, then eight transmit columns; the fourth of each is drops.
fn dropped(table: &str, device: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'))?;
    line.split_whitespace().nth(8 + 3)?.parse().ok()
}

fn spread(times: &Histogram<u64>) -> Spread {
    if times.is_empty() {
        return Spread::default();
    }
    // Tenths of a microsecond are precise enough.
    let us = |nanoseconds: u64| (nanoseconds as f64 / 100.0).round() / 10.0;
    Spread {
        p50: us(times.value_at_quantile(0.5)),
        p99: us(times.value_at_quantile(0.99)),
        max: us(times.max()),
    }
}

/// By its scheduling policy: FIFO is 1, round robin 2.
fn is_real_time(stat: &Stat) -> bool {
    matches!(stat.field(41), Some(1 | 2))
}

/// The largest share of a core in any second.
#[derive(Debug, Default)]
struct CoreUse {
    since: u64,
    cpu: Duration,
    busiest: f64,
}

impl CoreUse {
    fn look(&mut self, now: u64) {
        if now - self.since >= SECOND {
            let cpu = own_thread_cpu();
            self.busiest = self.busiest.max((cpu - self.cpu).as_nanos() as f64 / (now - self.since) as f64);
            (self.since, self.cpu) = (now, cpu);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_dropped_is_read_from_its_table() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo\n    \
            lo:       0       0    0    1    0     0          0         0        0       0    0    2    0\n\
            client:1000      10    0    3    0     0          0         0     2000      20    0   44    0\n";
        assert_eq!(dropped(table, "client"), Some(44));
        assert_eq!(dropped(table, "lo"), Some(2));
        assert_eq!(dropped(table, "cli"), None);
    }

    #[test]
    fn the_policy_is_found_behind_a_name_with_spaces() {
        let line = |policy: &str| format!("7 (a b) c) S {} {policy} 0 0\n", vec!["0"; 37].join(" "));
        let stat = |policy: &str| Stat::parse(&line(policy)).expect("a name");
        assert!(is_real_time(&stat("1")) && is_real_time(&stat("2")));
        assert!(!is_real_time(&stat("0")));
        let own = Stat::of("thread-self").expect("a line");
        assert!(!is_real_time(&own), "{own:?}");
    }

    #[test]
    fn no_times_have_no_spread() {
        let mut times = Histogram::new_with_bounds(1, SECOND, 2).expect("bounds");
        assert_eq!(spread(&times), Spread::default());
        times.saturating_record(50_000);
        assert!((49.9..50.5).contains(&spread(&times).p50), "{:?}", spread(&times));
    }
}
