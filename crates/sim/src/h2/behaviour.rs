//! The behaviour of an HTTP/2 client, drawn when it starts.

use crate::plan::Plan;
use crate::world::World;
use std::time::Duration;

/// A client's behaviour. An action whose number is `None` never happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    /// The maximum number of concurrent streams.
    pub(super) concurrency: usize,
    /// The initial window of the client's streams.
    pub(super) window: u32,
    /// Leaves its connection's window at the initial 65,535 bytes; other clients enlarge it.
    pub(super) has_narrow_connection: bool,
    /// Gives credit once half of a window is used up, as most clients do.
    pub(super) hoards: bool,
    /// Gives credit for received bytes after up to this many milliseconds; `None`: at once.
    pub(super) lateness: Option<u64>,
    /// Pauses reading at random.
    pub(super) is_slow: bool,
    /// Sends bodies in small pieces.
    pub(super) trickles: bool,
    /// Sends frames without effect, and changes settings.
    pub(super) fidgets: bool,
    /// Pads the first frames of bodies.
    pub(super) pads: bool,
    /// Sends nothing for a while between requests, so that the gateway may close the idle connection.
    pub(super) naps: bool,
    /// Gives up after this many polls.
    pub(super) vanishes: Option<(u64, Vanish)>,
    /// Sends GOAWAY after this many requests, and the remaining requests on another connection.
    pub(super) goes_away_after: Option<u64>,
    /// The fault of the client's first request.
    pub(super) malformed: Option<Malformed>,
    /// Streams that it resets, per thousand.
    pub(super) resets: u64,
    /// Streams for which it gives no credit, per thousand.
    pub(super) stalls: u64,
    /// Whether the network and the origins have no delays, so that requests that the client does not stall must end at
    /// once.
    pub(super) is_prompt: bool,
    /// Whether the connection uses TLS.
    pub(super) is_over_tls: bool,
}

/// The way in which a client gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vanish {
    Reset,
    Close,
    /// Ends its stream, and keeps reading.
    End,
}

/// A fault in a client's first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// A field name with a space.
    Name,
    /// A body that is shorter than its `content-length`.
    Length,
    /// A head beyond the limit.
    Size,
    /// A frame that causes a connection error.
    Frame,
}

impl Behaviour {
    /// A random behaviour within the plan.
    pub(crate) fn by_chance(plan: &Plan, world: &mut World) -> Self {
        let concurrency = match world.below(4) {
            0 => 1,
            1..=2 => 2 + world.below(6) as usize,
            _ => 30,
        };
        // A client that changes its settings also changes its windows, so it must not hoard credit for half of one.
        let (fidgets, hoards) = (world.below(3) == 0, world.below(4) > 0);
        let ways = [Vanish::Reset, Vanish::Close, Vanish::End];
        let vanish = (world.below(200), ways[world.below(3) as usize]);
        let faults = [Malformed::Name, Malformed::Length, Malformed::Size, Malformed::Frame];
        let fault = faults[world.below(4) as usize];
        let unstalled = Plan { stalls: 0, ..plan.clone() };
        Self {
            concurrency,
            window: Self::window(world),
            has_narrow_connection: world.below(4) == 0,
            lateness: (plan.rough && world.below(3) == 0).then(|| 1 + world.below(2000)),
            // A slow client could outlast a drain, and so lose a response without a fault.
            is_slow: plan.rough && world.below(5) == 0 && !(plan.drains_clients() && plan.is_faultless()),
            trickles: world.below(3) == 0,
            fidgets,
            hoards: hoards && !fidgets,
            pads: world.below(3) == 0,
            naps: plan.rough && world.below(4) == 0,
            vanishes: (world.below(1000) < plan.vanishes).then_some(vanish),
            goes_away_after: (world.below(4) == 0).then(|| 1 + world.below(6)),
            malformed: (world.below(1000) < plan.garbage).then_some(fault),
            resets: plan.resets,
            stalls: plan.stalls,
            is_prompt: !plan.rough && unstalled.is_faultless() && plan.most_connections.is_none(),
            is_over_tls: plan.client_tls,
        }
    }

    /// A random window size for the client's streams.
    pub(super) fn window(world: &mut World) -> u32 {
        match world.below(4) {
            0 => 300 + world.below(2000) as u32,
            1 => 4000 + world.below(20_000) as u32,
            2 => 65_535,
            _ => 1 << 20,
        }
    }

    /// The end of the pause, if the client pauses now.
    pub(super) fn pause(&self, is_waiting: bool, world: &mut World) -> Option<Duration> {
        if !self.is_slow {
            return None;
        }
        let short = (world.below(20) == 0).then(|| Duration::from_millis(world.below(2000)));
        // A pause longer than the gateway's timeout for an origin's response, and shorter than its timeouts for
        // clients.
        let long = (is_waiting && world.below(300) == 0).then(|| Duration::from_secs(61 + world.below(9)));
        long.or(short).map(|pause| world.now + pause)
    }
}
