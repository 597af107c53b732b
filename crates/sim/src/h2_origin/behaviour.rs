//! The behaviour of an HTTP/2 origin, drawn per connection, and its faults, drawn per request.

use crate::plan::Plan;
use crate::world::World;
use std::time::Duration;
use weir_http2::ErrorCode;

/// An origin's behaviour on one connection. An action whose number is `None` never happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    /// The instant before which the origin sends no frame, not even its SETTINGS.
    pub(super) speaks_at: Duration,
    /// The limit of concurrent streams in its first SETTINGS; `None`: no limit.
    pub(super) most_streams: Option<u32>,
    /// Lowers the limit of concurrent streams after this many requests.
    pub(super) shrinks_after: Option<u64>,
    /// Refuses streams beyond its limit until the gateway has acknowledged the limit.
    pub(super) refuses: bool,
    /// The initial window of the origin's streams.
    pub(super) window: u32,
    /// Leaves its connection's window at the initial 65,535 bytes.
    pub(super) has_narrow_connection: bool,
    /// Gives credit once half of a window is used up.
    pub(super) hoards: bool,
    /// Gives credit for received bytes after up to this many milliseconds; `None`: at once.
    pub(super) lateness: Option<u64>,
    /// Sends bodies in small pieces.
    pub(super) trickles: bool,
    /// Pads the first frames of bodies.
    pub(super) pads: bool,
    /// Sends frames without effect, and changes windows.
    pub(super) fidgets: bool,
    /// Delays each response by up to this many milliseconds, so that responses start in any order.
    pub(super) dawdles: Option<u64>,
    /// Announces its end with GOAWAY, in two steps, after this many requests.
    pub(super) goes_away_after: Option<u64>,
    /// Closes the connection if it is idle at this instant, with or without GOAWAY.
    pub(super) idle_until: Option<Duration>,
    /// Sends some responses before it has received the whole request.
    pub(super) hastens: bool,
    pub(super) tunnels: Tunnels,
}

/// Whether, and from when, an origin's SETTINGS allow tunnels (extended CONNECT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tunnels {
    /// The first SETTINGS allow tunnels.
    Taken,
    /// SETTINGS after this many requests allow tunnels.
    TakenAfter(u64),
    /// No SETTINGS allow tunnels.
    NotTaken,
}

/// A fault of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Resets the stream without a response.
    Reset(ErrorCode),
    /// Resets the stream within the response.
    ResetWithin(ErrorCode),
    /// Refuses the stream.
    Refuse,
    /// Sends GOAWAY with a last stream below this request's, and serves the remaining streams.
    GoAway,
    /// As `GoAway`, but closes the connection at once.
    GoAwayAndClose,
    /// Closes the connection without GOAWAY.
    End,
    /// Closes the connection within the response.
    EndWithin,
    /// Resets the connection without a response.
    Abort,
    /// Resets the connection within the response.
    AbortWithin,
    /// Sends a malformed head.
    BadHead,
    /// Sends a body that is shorter than its `content-length`.
    Short,
    /// Sends a frame that causes a connection error.
    BadFrame,
    /// Never responds.
    Silence,
    /// Never responds, and gives no credit.
    Stall,
    /// Stops reading and sending on the connection.
    Mute,
}

const FAULTS: [Fault; 20] = [
    Fault::Reset(ErrorCode::CANCEL),
    Fault::Reset(ErrorCode::INTERNAL_ERROR),
    Fault::Reset(ErrorCode::NO_ERROR),
    Fault::ResetWithin(ErrorCode::CANCEL),
    Fault::ResetWithin(ErrorCode::INTERNAL_ERROR),
    Fault::Refuse,
    Fault::Refuse,
    Fault::Refuse,
    Fault::GoAway,
    Fault::GoAway,
    Fault::GoAwayAndClose,
    Fault::End,
    Fault::EndWithin,
    Fault::Abort,
    Fault::AbortWithin,
    Fault::BadHead,
    Fault::Short,
    Fault::BadFrame,
    Fault::Silence,
    Fault::Stall,
];

impl Fault {
    /// Selects a random fault.
    pub(super) fn by_chance(world: &mut World) -> Self {
        // This fault makes the connection useless, so it is rare.
        match world.below(40) {
            0 => Self::Mute,
            _ => FAULTS[world.below(FAULTS.len() as u64) as usize],
        }
    }
}

impl Behaviour {
    /// A random behaviour within the plan.
    pub(crate) fn by_chance(plan: &Plan, world: &mut World) -> Self {
        let is_faulty = !plan.is_faultless();
        let millis = Duration::from_millis;
        let is_late = plan.rough && world.below(3) == 0;
        let speaks_at = if is_late { world.now + millis(world.below(3000)) } else { Duration::ZERO };
        let most_streams = match world.below(5) {
            0 => Some(1),
            1 => Some(2 + world.below(4) as u32),
            2 => Some(100),
            _ => None,
        };
        let tunnels = match world.below(6) {
            0 if is_faulty => Tunnels::NotTaken,
            1 if is_faulty => Tunnels::TakenAfter(world.below(6)),
            _ => Tunnels::Taken,
        };
        // An origin that changes its settings also changes its windows, so it must not hoard credit for half of one.
        let (fidgets, hoards) = (world.below(3) == 0, world.below(4) > 0);
        Self {
            speaks_at,
            most_streams,
            shrinks_after: (world.below(3) == 0).then(|| 1 + world.below(6)),
            refuses: is_faulty && world.below(2) == 0,
            window: Self::window(world),
            has_narrow_connection: world.below(3) == 0,
            hoards: hoards && !fidgets,
            lateness: (plan.rough && world.below(3) == 0).then(|| 1 + world.below(2000)),
            trickles: world.below(3) == 0,
            pads: world.below(3) == 0,
            fidgets,
            dawdles: (plan.rough && world.below(2) == 0).then(|| 1 + world.below(1000)),
            goes_away_after: (world.below(4) == 0).then(|| 1 + world.below(12)),
            idle_until: (plan.bad_answers > 0 && world.below(4) == 0)
                .then(|| world.now + millis(world.below(3000))),
            hastens: is_faulty && world.below(3) == 0,
            tunnels,
        }
    }

    /// A random window size for the origin's streams.
    pub(super) fn window(world: &mut World) -> u32 {
        match world.below(4) {
            0 => 300 + world.below(2000) as u32,
            1 => 4000 + world.below(20_000) as u32,
            2 => 65_535,
            _ => 1 << 20,
        }
    }
}
