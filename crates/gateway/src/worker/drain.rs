//! Drain, stop, new settings, and questions: what comes by mail.

use super::Worker;
use crate::config::Snapshot;
use crate::downstream::Phase;
use crate::observe::{Context, Counters};
use crate::reason::Reason;
use crate::upstream::Job;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use weir_reactor::Net;
use weir_reactor::stop::Stop;

/// A message to a worker.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    /// Drain, or end.
    Stop(Stop),
    /// Go on with these settings; exchanges in progress keep theirs.
    Adopt(Arc<Snapshot>),
    /// Tell what was counted so far.
    Tell(Sender<Counters>),
}

impl From<Stop> for Control {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl<N: Net> Worker<N> {
    /// Handles a message.
    pub(crate) fn control(&mut self, message: Control) {
        match message {
            Control::Stop(stop) => self.stop(stop),
            Control::Adopt(snapshot) => self.adopt(&snapshot),
            // Who asked may have gone.
            Control::Tell(reply) => drop(reply.send(self.core.counters.clone())),
        }
        self.settle();
    }

    /// Whether a stop is complete: then nothing is left to do.
    pub(crate) fn is_drained(&mut self) -> bool {
        let Some(by) = self.drained_by else { return false };
        let is_over = by <= self.core.net.now();
        if is_over {
            self.end_all();
        }
        self.frontends.is_closed() && self.clients.is_empty() && (is_over || self.upstreams_have_all())
    }

    /// Whether nothing is left that a client has sent and an upstream has not taken.
    fn upstreams_have_all(&self) -> bool {
        let ids = self.upstreams.ids().into_iter();
        let mut upstreams = ids.filter_map(|id| self.upstreams.get(id));
        upstreams.all(|upstream| upstream.job == Job::Idle)
    }

    fn stop(&mut self, stop: Stop) {
        let now = self.core.net.now();
        if stop == Stop::Now {
            self.drained_by = Some(now);
            return;
        }
        if self.core.draining {
            return;
        }
        self.core.draining = true;
        self.drained_by = Some(now + self.core.policy.timeouts.drain);
        self.frontends.drain(&mut self.core.net);
        for id in self.clients.ids() {
            let Some(client) = self.clients.get_mut(id) else { continue };
            if client.is_idle() || matches!(client.phase, Phase::Tunnel(_)) {
                // Its time is another one now.
                client.timer.clear();
                self.touch_client(id);
            }
        }
    }

    fn adopt(&mut self, snapshot: &Snapshot) {
        self.core.policy = Rc::new(snapshot.policy.clone());
        if self.service.adopt(&snapshot.service) {
            while let Some(id) = self.service.pool.take(&mut self.upstreams) {
                self.drop_upstream(id);
            }
        }
    }

    /// The drain's time is over.
    fn end_all(&mut self) {
        self.frontends.close();
        for id in self.clients.ids() {
            let Some(client) = self.clients.get(id) else { continue };
            match client.phase {
                Phase::Exchange(_) => self.end(id, Reason::DrainTimeout),
                Phase::Tunnel(tunnel) => self.end_tunnel(tunnel, Reason::DrainTimeout),
                Phase::Head { .. } | Phase::Closing if client.transport.pending() > 0 => {
                    self.note_end_of(id, &Reason::DrainTimeout);
                }
                Phase::Head { .. } | Phase::Closing => {}
            }
            self.settle();
            self.cut(id);
        }
        for id in self.upstreams.ids() {
            let Some(upstream) = self.upstreams.get(id) else { continue };
            if upstream.job == Job::Closing && upstream.transport.pending() > 0 {
                // It must not take what it got for all there was.
                upstream.transport.reset();
                self.core.note_end(&Reason::DrainTimeout, Context::default());
                self.drop_upstream(id);
            }
        }
    }
}
