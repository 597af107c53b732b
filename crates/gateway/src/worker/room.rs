//! Room for new connections: idle connections close to make some, and listeners pause while there is none.

use super::{Control, Worker};
use crate::downstream::{Cause, Client, Wait};
use crate::keys::{ClientId, ServerId, UpstreamId};
use crate::limits::{Descriptor, EXHAUSTED, Exhausted, Kind};
use std::io;
use std::time::{Duration, Instant};
use weir_reactor::{Net, Socket, frontends};

/// What a worker remembers of a lack.
#[derive(Debug, Default)]
pub(super) struct Overload {
    /// Listeners rest for this.
    resting: Option<Exhausted>,
    /// When it was said last.
    said: Option<Instant>,
    /// When idle clients were looked for last.
    swept: Option<Instant>,
    /// How many connections are to be closed at once, and since when it is so many.
    need: Option<(Instant, usize)>,
    /// When other workers were asked for room last, for each cause.
    asked: [Option<Instant>; EXHAUSTED.len()],
}

/// Another worker needs room for connections, and closes none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EvictRequest {
    scarce: Exhausted,
    /// How many.
    need: usize,
    /// That worker.
    from: usize,
}

impl Overload {
    /// How many connections to close: few for somebody who is alone, more each time while others follow.
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

    /// Whether to ask other workers for room. To look for it costs them something, and what they have found comes within a rest.
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
    /// The descriptor of a listener's next client. Without one, the listener rests.
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
                self.rest(index, scarce);
                None
            }
        }
    }

    /// A connection could not be accepted; whether it may succeed now.
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
        if self.is_news() {
            let pause = frontends::REST.as_millis();
            self.core.log.line(format_args!("weir: accept: {error}; retrying in {pause} ms"));
        }
        if is_scarce {
            self.ask_for_room(Exhausted::System);
        }
        false
    }

    /// A descriptor for a connection to a server, where connections have all that are theirs: that of an idle one, or one of those
    /// that are kept for this until other workers have closed some. Errors: there is none.
    #[cold]
    pub(super) fn place_for_upstream(&mut self) -> Result<Descriptor, Exhausted> {
        if !self.evict_upstream(Exhausted::Descriptors) {
            self.ask_for_room(Exhausted::Descriptors);
        }
        // While some of those that are kept are in use, the place of an idle one is one of them, too.
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

    /// Another worker asks for room: closes what is idle, and asks the next one for the rest.
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

    /// Closes at most this many idle connections: to servers, the oldest first, and if there are none, those of clients. Returns
    /// how many.
    fn make_room(&mut self, scarce: Exhausted, need: usize) -> usize {
        let more = |_: &usize| scarce != Exhausted::Connections && self.evict_upstream(scarce);
        match (0..need.min(UPSTREAMS_AT_ONCE)).take_while(more).count() {
            0 => self.evict_clients(scarce, need),
            closed => closed,
        }
    }

    /// Closes the connection to a server that has been idle longest; whether there was one.
    pub(super) fn evict_upstream(&mut self, scarce: Exhausted) -> bool {
        let since = |id: UpstreamId| Some((self.upstreams.get(id)?.timer.pending()?.0, id));
        let oldest = |id: &ServerId| since(self.servers.get(*id)?.pool.oldest()?);
        let oldest = self.servers.ids().iter().filter_map(oldest).min_by_key(|(at, _)| *at);
        let Some((_, id)) = oldest else { return false };
        self.retire_pooled(id);
        self.core.counters.evicted(Kind::Upstream, scarce);
        true
    }

    /// Ends rests for which there is no reason any more.
    pub(super) fn wake_listeners(&mut self) {
        if self.overload.resting.is_some() && !self.core.is_short && self.peers.descriptors.room().is_ok() {
            self.overload.resting = None;
            self.frontends.wake(&mut self.core.net);
        }
    }

    /// A connection has ended: other workers may wait for its place.
    #[inline]
    pub(super) fn offer_descriptor(&mut self) {
        if self.peers.descriptors.is_wanted() {
            self.peers.tell(|| Control::Room);
        }
    }

    /// A listener rests until there is room.
    fn rest(&mut self, index: u32, scarce: Exhausted) {
        self.frontends.rest(index, &mut self.core.net);
        self.core.counters.rested(scarce);
        self.overload.resting = Some(scarce);
        self.peers.descriptors.want();
        self.ask_for_room(scarce);
        if self.is_news() {
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
        // One may have ended before others knew that it is waited for.
        self.wake_listeners();
    }

    /// Whether a lack has not been told of for a while.
    fn is_news(&mut self) -> bool {
        let now = self.core.net.now();
        let is_news = self.overload.said.is_none_or(|said| now.saturating_duration_since(said) >= SAID_EVERY);
        if is_news {
            self.overload.said = Some(now);
        }
        is_news
    }

    /// Closes the clients' connections that have been idle longest, at most this many. Looking for them takes a while, so that is
    /// not done often. Returns how many.
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
            // Its next request may be here.
            if client.transport.is_quiet() {
                // A clean close is a courtesy.
                let _ = client.transport.finish(&mut self.core.wire);
                self.drop_client(id);
                self.core.counters.evicted(Kind::Client, scarce);
                closed += 1;
            }
        }
        closed
    }
}

/// When a client will have been idle for too long, if it is idle.
fn idle_until<S: Socket>(client: &Client<S>) -> Option<Instant> {
    let (until, why) = client.timer.pending()?;
    let is_idle = why == Cause::Waited(Wait::Idle) && client.is_idle() && client.held.is_empty();
    (is_idle && client.transport.pending() == 0).then_some(until)
}

/// Enough for what is accepted in a few turns.
const UPSTREAMS_AT_ONCE: usize = 8;

/// Likewise: a client that finds no room is rarely alone.
const LEAST_AT_ONCE: usize = 8;

/// It takes some milliseconds.
const MOST_AT_ONCE: usize = 64;

/// A client that just had a response is about to send its next request.
const LEAST_IDLE: Duration = Duration::from_secs(1);

/// Lines about one lack are few.
const SAID_EVERY: Duration = Duration::from_secs(10);

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
