//! Room for new connections: the worker closes idle ones, and pauses its listeners while there is no room.

use super::{Control, Worker};
use crate::deadlines::{Cause, Wait};
use crate::downstream::Client;
use crate::keys::{ClientId, UpstreamId};
use crate::limits::{Descriptor, EXHAUSTED, Exhausted, Kind};
use crate::upstream::{Upstream, Use};
use std::io;
use std::time::{Duration, Instant};
use weir_reactor::{Net, Socket, frontends};

/// A worker's state during a shortage of connections, descriptors or memory.
#[derive(Debug, Default)]
pub(super) struct Overload {
    resting: Option<Exhausted>,
    reported: Option<Instant>,
    swept: Option<Instant>,
    /// The number of connections to close in one step, and the time at which it was set.
    need: Option<(Instant, usize)>,
    /// The time of the last request to other workers, per exhausted resource.
    asked: [Option<Instant>; EXHAUSTED.len()],
}

/// A worker's request that other workers close idle connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EvictRequest {
    scarce: Exhausted,
    /// The number of connections still to close.
    need: usize,
    /// The index of the worker that needs room.
    from: usize,
}

impl Overload {
    /// The number of connections to close: [`LEAST_AT_ONCE`], doubled up to [`MOST_AT_ONCE`] while demand continues.
    fn need(&mut self, now: Instant) -> usize {
        let since = self.need.map(|(at, need)| (now.saturating_duration_since(at), need));
        match since {
            Some((since, need)) if since < frontends::REST => return need,
            Some((since, need)) if since < 3 * frontends::REST => {
                self.need = Some((now, (2 * need).min(MOST_AT_ONCE)));
            }
            Some(_) | None => self.need = Some((now, LEAST_AT_ONCE)),
        }
        self.need.map_or(LEAST_AT_ONCE, |(_, need)| need)
    }

    /// Whether to ask other workers for room: at most once per [`frontends::REST`] and exhausted resource, since the
    /// other workers' searches take time.
    fn may_ask(&mut self, scarce: Exhausted, now: Instant) -> bool {
        let asked = &mut self.asked[scarce as usize];
        let may = asked.is_none_or(|asked| now.saturating_duration_since(asked) >= frontends::REST);
        if may {
            *asked = Some(now);
        }
        may
    }
}

impl<N: Net> Worker<N> {
    /// Counts a descriptor for a listener's next client, and evicts idle connections if necessary. Pauses the listener
    /// if there is still no room.
    pub(super) fn place_for_client(&mut self, index: u32) -> Option<Descriptor> {
        let scarce = match self.peers.descriptors.client() {
            Ok(_) if self.core.is_short => Exhausted::Memory,
            Ok(descriptor) => return Some(descriptor),
            Err(scarce) => scarce,
        };
        let need = self.overload.need(self.core.net.now());
        self.make_room(scarce, need);
        match self.peers.descriptors.client() {
            Ok(descriptor) if !self.core.is_short => Some(descriptor),
            found => {
                let scarce = found.err().unwrap_or(Exhausted::Memory);
                self.pause(index, scarce);
                None
            }
        }
    }

    /// An accept failed: makes room, or pauses the listener. Returns whether to accept again now.
    pub(super) fn accept_failed(&mut self, index: u32, error: &io::Error) -> bool {
        let is_scarce = Exhausted::is(error);
        if is_scarce {
            let need = self.overload.need(self.core.net.now());
            if self.make_room(Exhausted::System, need) > 0 {
                return true;
            }
        }
        self.frontends.rest(index, &mut self.core.net);
        self.core.counters.rested(Exhausted::System);
        if self.is_report_due() {
            let pause = frontends::REST.as_millis();
            self.core.log.line(format_args!("weir: accept: {error}; retrying in {pause} ms"));
        }
        if is_scarce {
            self.ask_for_room(Exhausted::System);
        }
        false
    }

    /// A descriptor for a server connection while connections use their whole budget. Closes an idle connection to free
    /// a descriptor or, if this worker has none, uses the reserve until other workers close some. Errors: the reserve
    /// is used up.
    #[cold]
    pub(super) fn place_for_upstream(&mut self) -> Result<Descriptor, Exhausted> {
        if !self.evict_upstream(Exhausted::Descriptors) {
            self.ask_for_room(Exhausted::Descriptors);
        }
        // `upstream` would fail here while connections use part of the reserve, even if one was just closed.
        self.peers.descriptors.one_more()
    }

    /// Asks the other workers to close idle connections.
    #[cold]
    pub(super) fn ask_for_room(&mut self, scarce: Exhausted) {
        let now = self.core.net.now();
        if self.overload.may_ask(scarce, now) {
            let need = self.overload.need(now);
            self.pass_shed(EvictRequest { scarce, need, from: self.peers.own });
        }
    }

    /// Another worker asks for room: closes idle connections, and asks the next worker to close the remainder.
    pub(super) fn evict_for(&mut self, shed: EvictRequest) {
        let closed = self.make_room(shed.scarce, shed.need);
        if closed < shed.need {
            self.pass_shed(EvictRequest { need: shed.need - closed, ..shed });
        }
    }

    fn pass_shed(&self, shed: EvictRequest) {
        let all = &self.peers.all;
        let next = (self.peers.own + 1) % all.len().max(1);
        if next != shed.from
            && let Some(worker) = all.get(next)
        {
            worker.send(Control::EvictRequest(shed));
        }
    }

    /// Closes at most `need` idle connections, longest idle first, and returns their number. Closes connections to
    /// servers, unless only clients have reached their maximum number. If it can close none, it closes clients'
    /// connections.
    fn make_room(&mut self, scarce: Exhausted, need: usize) -> usize {
        let more = |_: &usize| scarce != Exhausted::Connections && self.evict_upstream(scarce);
        match (0..need.min(UPSTREAMS_AT_ONCE)).take_while(more).count() {
            0 => self.evict_clients(scarce, need),
            closed => closed,
        }
    }

    /// Closes the connection to a server that has been idle longest; returns whether there was one.
    pub(super) fn evict_upstream(&mut self, scarce: Exhausted) -> bool {
        let since = |id: UpstreamId| Some((self.upstreams.get(id)?.timer.pending()?.0, id));
        let ids = self.servers.ids();
        let servers = ids.iter().filter_map(|id| self.servers.get(*id));
        let idle = |id: &&UpstreamId| self.upstreams.get(**id).is_some_and(Upstream::is_idle);
        let candidates = servers.flat_map(|server| {
            server.pool.oldest().into_iter().chain(server.multiplexed.iter().filter(idle).copied())
        });
        let Some((_, id)) = candidates.filter_map(since).min_by_key(|(at, _)| *at) else { return false };
        match self.upstreams.get(id).is_some_and(|upstream| upstream.used_for == Use::Streams) {
            true => self.finish_multiplexed(id),
            false => self.retire_pooled(id),
        }
        self.core.counters.evicted(Kind::Upstream, scarce);
        true
    }

    /// Resumes paused listeners once there is room.
    #[inline]
    pub(super) fn wake_listeners(&mut self) {
        if self.overload.resting.is_some() {
            self.wake_paused();
        }
    }

    #[cold]
    fn wake_paused(&mut self) {
        if !self.core.is_short && self.peers.descriptors.room().is_ok() {
            self.overload.resting = None;
            self.frontends.wake(&mut self.core.net);
        }
    }

    /// A connection was closed: wakes the other workers if one of them needs a descriptor.
    #[inline]
    pub(super) fn offer_descriptor(&mut self) {
        if self.peers.descriptors.is_wanted() {
            self.peers.tell(|| Control::Room);
        }
    }

    /// Pauses a listener until there is room.
    fn pause(&mut self, index: u32, scarce: Exhausted) {
        self.frontends.rest(index, &mut self.core.net);
        self.core.counters.rested(scarce);
        self.overload.resting = Some(scarce);
        self.peers.descriptors.want();
        self.ask_for_room(scarce);
        if self.is_report_due() {
            let open = self.peers.descriptors.open();
            let log = &mut self.core.log;
            match scarce {
                Exhausted::Connections => log.line(format_args!(
                    "weir: accept: clients have all {} connections that limits.connections allows; others wait",
                    open.most_clients
                )),
                Exhausted::Memory => log.line(format_args!(
                    "weir: accept: connections have {} bytes of memory, and limits.memory is {}; clients wait",
                    self.peers.memory.used(),
                    self.core.plan.snapshot.memory.unwrap_or_default()
                )),
                Exhausted::Descriptors | Exhausted::System => log.line(format_args!(
                    "weir: accept: connections have all {} descriptors that an open-file limit of {} leaves them; \
                     clients wait",
                    open.connections, open.limit
                )),
            }
        }
        // A connection may have closed before `want` announced the need, so check again.
        self.wake_listeners();
    }

    /// Whether a shortage may be logged now: at most once per [`REPORT_INTERVAL`].
    fn is_report_due(&mut self) -> bool {
        let now = self.core.net.now();
        let is_report_due =
            self.overload.reported.is_none_or(|then| now.saturating_duration_since(then) >= REPORT_INTERVAL);
        if is_report_due {
            self.overload.reported = Some(now);
        }
        is_report_due
    }

    /// Closes at most `need` connections of clients, longest idle first, and returns their number. The search visits
    /// all clients, so it runs at most once per [`frontends::REST`].
    fn evict_clients(&mut self, scarce: Exhausted, need: usize) -> usize {
        let now = self.core.net.now();
        if self.overload.swept.is_some_and(|swept| now.saturating_duration_since(swept) < frontends::REST) {
            return 0;
        }
        self.overload.swept = Some(now);
        let idle = self.core.plan.policy().timeouts.idle;
        let latest = now + idle.saturating_sub(LEAST_IDLE);
        let until = |id: ClientId| Some((idle_until(self.clients.get(id)?)?, id));
        let ids = self.clients.ids().into_iter();
        let mut idle: Vec<_> = ids.filter_map(until).filter(|(until, _)| *until <= latest).collect();
        idle.sort_unstable_by_key(|(until, _)| *until);
        idle.truncate(need);
        let mut closed = 0;
        for (_, id) in idle {
            let Some(client) = self.clients.get_mut(id) else { continue };
            // Keeps a client that has sent its next request, which the gateway has not read yet.
            if client.transport.is_quiet() {
                // Best effort: a clean close.
                let _ = client.finish(&mut self.core.wire);
                self.drop_client(id);
                self.core.counters.evicted(Kind::Client, scarce);
                closed += 1;
            }
        }
        closed
    }
}

/// The end of a client's idle timeout, if the client is idle.
fn idle_until<S: Socket>(client: &Client<S>) -> Option<Instant> {
    let (until, why) = client.timer.pending()?;
    let is_idle = why == Cause::Waited(Wait::Idle) && client.is_idle() && client.held.is_empty();
    (is_idle && client.transport.pending() == 0).then_some(until)
}

/// The maximum number of connections to servers to close in one step: enough for the accepts of a few turns.
const UPSTREAMS_AT_ONCE: usize = 8;

/// The number of connections to close at first: if one client finds no room, others usually follow.
const LEAST_AT_ONCE: usize = 8;

/// The maximum number of connections to close in one step, which takes a few milliseconds.
const MOST_AT_ONCE: usize = 64;

/// The minimum idle time of a connection to close: after a response, the client may be about to send its next request.
const LEAST_IDLE: Duration = Duration::from_secs(1);

const REPORT_INTERVAL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_workers_are_asked_once_in_a_while_for_each_cause() {
        let (mut lack, start) = (Overload::default(), Instant::now());
        let mut asked = [0; 2];
        for ms in 0..1000 {
            let now = start + Duration::from_millis(ms);
            for (asked, scarce) in asked.iter_mut().zip([Exhausted::Descriptors, Exhausted::System]) {
                *asked += u32::from(lack.may_ask(scarce, now));
            }
        }
        assert_eq!(asked, [10, 10]);
    }

    #[test]
    fn who_is_alone_costs_few_connections_and_a_crowd_more() {
        let (mut lack, start) = (Overload::default(), Instant::now());
        let mut need = |ms| lack.need(start + Duration::from_millis(ms));
        let crowd = [0, 99, 100, 199, 200, 300, 400, 500].map(&mut need);
        assert_eq!(crowd, [8, 8, 16, 16, 32, 64, 64, 64]);
        assert_eq!([800, 1100, 1200].map(need), [8, 8, 16]);
    }
}
