//! One direction of a delayed link: an arriving packet is lost, or waits for its time and leaves. Reads no clock.

use crate::report::DirectionReport;
use std::collections::VecDeque;
use weir_stats::rng::Rng;

/// A packet in a buffer that may be larger.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) buffer: Box<[u8]>,
    pub(crate) length: usize,
}

impl Packet {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

/// Times are nanoseconds since an arbitrary instant.
#[derive(Debug)]
pub(crate) struct Line {
    delay: u64,
    /// A packet released later than this after its due time is late.
    tolerance: u64,
    /// A fraction.
    loss: f64,
    limit: usize,
    rng: Rng,
    /// The delay is constant, so this is a FIFO.
    waiting: VecDeque<(u64, Packet)>,
    /// Packet counters.
    pub(crate) counts: DirectionReport,
}

impl Line {
    /// Delays by `delay` ns, loses the fraction `loss`, and holds at most `limit` packets.
    pub(crate) fn new(delay: u64, tolerance: u64, loss: f64, limit: usize, seed: u64) -> Self {
        let (rng, waiting) = (Rng::new(seed), VecDeque::new());
        Self { delay, tolerance, loss, limit, rng, waiting, counts: DirectionReport::default() }
    }

    /// A packet arrives; returned if it is lost or dropped.
    pub(crate) fn arrive(&mut self, now: u64, packet: Packet) -> Option<Packet> {
        let counts = &mut self.counts;
        counts.packets_in += 1;
        counts.bytes_in += packet.length as u64;
        counts.largest = counts.largest.max(packet.length);
        // `unit` is never 0, so that a loss of 0 loses none; also drawn for overflowing packets, so that the loss does
        // not depend on overflow.
        if self.rng.unit() <= self.loss {
            counts.lost += 1;
            return Some(packet);
        }
        if self.waiting.len() >= self.limit {
            counts.overflow += 1;
            return Some(packet);
        }
        self.waiting.push_back((now + self.delay, packet));
        counts.queued_most = counts.queued_most.max(self.waiting.len());
        None
    }

    /// When the next packet is due.
    pub(crate) fn due(&self) -> Option<u64> {
        self.waiting.front().map(|(due, _)| *due)
    }

    /// The next due packet, and how late it is.
    pub(crate) fn release(&mut self, now: u64) -> Option<(Packet, u64)> {
        let (due, packet) = self.waiting.pop_front_if(|(due, _)| *due <= now)?;
        let behind = now - due;
        self.counts.packets_out += 1;
        self.counts.late += u64::from(behind > self.tolerance);
        Some((packet, behind))
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(mark: u8) -> Packet {
        Packet { buffer: Box::new([mark; 4]), length: 3 }
    }

    #[test]
    fn a_packet_waits_its_time_and_order_is_kept() {
        let mut line = Line::new(100, 10, 0.0, 8, 1);
        assert_eq!(line.due(), None);
        assert_eq!(line.arrive(1_000, packet(1)), None);
        assert_eq!(line.arrive(1_050, packet(2)), None);
        assert_eq!(line.due(), Some(1_100));
        assert_eq!(line.release(1_099), None);
        assert_eq!(line.release(1_100), Some((packet(1), 0)));
        assert_eq!(line.release(1_149), None);
        assert_eq!(line.release(1_161), Some((packet(2), 11)));
        assert_eq!((line.due(), line.waiting()), (None, 0));
        let expected = DirectionReport {
            packets_in: 2,
            bytes_in: 6,
            packets_out: 2,
            late: 1,
            largest: 3,
            queued_most: 2,
            ..DirectionReport::default()
        };
        assert_eq!(line.counts, expected);
    }

    #[test]
    fn what_finds_the_queue_full_is_given_back_and_counted_apart() {
        let mut line = Line::new(100, 0, 0.0, 2, 1);
        for mark in 1..=2 {
            assert_eq!(line.arrive(0, packet(mark)), None);
        }
        assert_eq!(line.arrive(0, packet(3)), Some(packet(3)));
        assert_eq!((line.counts.overflow, line.counts.lost), (1, 0));
        assert!(line.release(100).is_some());
        assert_eq!(line.arrive(100, packet(4)), None, "there is room again");
    }

    /// The lost packets among a thousand.
    fn losses(share: f64, seed: u64) -> Vec<u32> {
        let mut line = Line::new(0, 0, share, 1, seed);
        (0..1_000)
            .filter(|_| {
                let lost = line.arrive(0, packet(0)).is_some();
                line.release(0);
                lost
            })
            .collect()
    }

    #[test]
    fn the_seed_says_which_packets_are_lost_and_the_share_how_many() {
        assert_eq!(losses(0.1, 7), losses(0.1, 7));
        assert_ne!(losses(0.1, 7), losses(0.1, 8));
        assert!(losses(0.0, 7).is_empty());
        // Of 200 seeds the mean is within four standard errors: sqrt(1000 x 0.1 x 0.9 / 200) is 0.67.
        let total: usize = (0..200).map(|seed| losses(0.1, seed).len()).sum();
        let mean = total as f64 / 200.0;
        assert!((mean - 100.0).abs() < 2.7, "{mean}");
    }
}
