//! The network of a run, and whether it was as requested.

use crate::description::Network;
use serde::{Deserialize, Serialize};

/// Above this share of its core in a second, the relay delays packets itself. The kernel limits a process with a
/// real-time priority to 0.95.
const FULL_CORE: f64 = 0.9;

/// The network of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetReport {
    /// As requested.
    #[serde(flatten)]
    pub network: Network,
    /// What added round-trip time and loss.
    pub emulation: Emulation,
    /// TCP congestion control in the namespaces, or on the host.
    pub congestion_control: Option<String>,
    /// The relay's counters over its lifetime.
    pub relay: Option<RelayReport>,
    /// Why the network was not as requested; such a run supports no verdict on rate or latency.
    pub fault: Option<String>,
}

/// What added round-trip time and loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Emulation {
    /// Nothing: there is neither.
    #[serde(rename = "none")]
    None,
    /// The kernel's netem.
    #[serde(rename = "netem")]
    Netem,
    /// The lab's delay relay.
    #[serde(rename = "weir relay")]
    Relay,
}

/// The relay's counters over its lifetime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelayReport {
    /// Two per delayed side.
    pub directions: Vec<DirectionReport>,
    /// How late packets were released after their due time, in microseconds.
    pub late_us: Spread,
    /// The tolerance before a packet counts as late, in microseconds: 5 % of its delay, at least 100 us.
    pub tolerance_us: f64,
    /// Duration of an iteration of the relay's loop, in microseconds: a packet may have waited that long before it was
    /// read, which its lateness does not include.
    pub turn_us: Spread,
    /// The relay's CPU time, including the receivers' TCP processing: a forwarded packet is received synchronously.
    pub cpu_seconds: f64,
    /// Its lifetime.
    pub wall_seconds: f64,
    /// Its maximum share of a core in any second.
    pub busiest_second: f64,
    /// Whether it had a real-time priority; without one it is late on a shared core.
    pub real_time: bool,
}

/// One direction of the delayed link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Such as `load to gateway`.
    pub way: String,
    /// Packets received by the relay.
    pub packets_in: u64,
    /// Their bytes, IP headers included.
    pub bytes_in: u64,
    /// Packets forwarded.
    pub packets_out: u64,
    /// Lost on purpose.
    pub lost: u64,
    /// Dropped because the relay's queue was full.
    pub overflow: u64,
    /// Dropped by the kernel because the relay did not read them in time.
    pub unread: u64,
    /// Rejected by the kernel when forwarded.
    pub refused: u64,
    /// Still queued when the relay stopped.
    pub left: u64,
    /// Forwarded later than the tolerance.
    pub late: u64,
    /// The largest packet in bytes.
    pub largest: usize,
    /// Maximum queue length.
    pub queued_most: usize,
}

/// Summary of durations, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
}

impl RelayReport {
    /// Why the relay was the limit, as text.
    pub fn fault(&self) -> Option<String> {
        let dropped: u64 = self.directions.iter().map(|way| way.overflow + way.unread + way.refused).sum();
        let mut reasons = Vec::new();
        if dropped > 0 {
            reasons.push(format!("{dropped} packets were dropped unintentionally"));
        }
        if self.late_us.p99 > self.tolerance_us {
            let (late, allowed) = (self.late_us.p99, self.tolerance_us);
            reasons.push(format!(
                "1 of 100 packets was late by {late:.0} us or more (expected at most {allowed:.0})"
            ));
        }
        if self.busiest_second >= FULL_CORE {
            let share = self.busiest_second * 100.0;
            reasons.push(format!("it used {share:.0} % of a core in its busiest second"));
        }
        (!reasons.is_empty()).then(|| format!("the delay relay was the limit: {}", reasons.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Kind;

    fn calm() -> RelayReport {
        let way = DirectionReport {
            way: "load to gateway".into(),
            packets_in: 10,
            bytes_in: 1000,
            packets_out: 9,
            lost: 1,
            largest: 100,
            queued_most: 3,
            ..DirectionReport::default()
        };
        RelayReport {
            directions: vec![way],
            late_us: Spread { p50: 10.0, p99: 90.0, max: 5_000.0 },
            tolerance_us: 100.0,
            turn_us: Spread::default(),
            cpu_seconds: 0.1,
            wall_seconds: 1.0,
            busiest_second: 0.5,
            real_time: true,
        }
    }

    #[test]
    fn a_relay_that_lost_what_it_should_and_was_in_time_is_no_limit() {
        assert_eq!(calm().fault(), None);
    }

    #[test]
    fn drops_lateness_and_a_full_core_are_each_reported() {
        let mut report = calm();
        report.directions[0].unread = 2;
        report.directions[0].overflow = 1;
        let words = report.fault().expect("it dropped");
        assert_eq!(words, "the delay relay was the limit: 3 packets were dropped unintentionally");
        let mut report = calm();
        report.late_us.p99 = 101.0;
        report.busiest_second = 0.94;
        let words = report.fault().expect("late and full");
        assert!(words.ends_with(
            "1 of 100 packets was late by 101 us or more (expected at most 100); \
             it used 94 % of a core in its busiest second"
        ));
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let network = Network { kind: Kind::Veth, rtt_ms: 20.0, ..Network::default() };
        let report = NetReport {
            network,
            emulation: Emulation::Relay,
            congestion_control: Some("cubic".into()),
            relay: Some(calm()),
            fault: None,
        };
        let text = serde_json::to_string(&report).expect("JSON");
        assert!(text.starts_with(r#"{"kind":"veth","rtt_ms":20.0,"#), "{text}");
        assert!(text.contains(r#""emulation":"weir relay""#), "{text}");
        assert_eq!(serde_json::from_str::<NetReport>(&text).expect("the same"), report);
    }
}
