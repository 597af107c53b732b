//! Checks of the invariants that concern a run as a whole, made during the run and at its end.

use crate::Invariant;
use crate::clients::AnyClient;
use crate::ledger::{Entry, Outcome, Unprocessed};
use crate::net::peer_address;
use crate::run::Run;
use std::collections::HashMap;
use std::time::Duration;
use weir_gateway::harness::{LeakCheck, StreamCheck};

impl Run<'_> {
    /// Checks that no request arrives at a server that must not receive it.
    pub(crate) fn judge_arrivals(&mut self) {
        let world = self.world.borrow();
        let is_limited = self.plan.most_connections.is_some();
        for (id, arrival) in std::mem::take(&mut self.ledger.arrived) {
            let link = &world.links[arrival.link];
            let (Some(to), Some(entry)) = (link.to, self.ledger.entries.get(id)) else { continue };
            let wrong = self.gateway.standing().wrong_request(link.worker, to, entry.at, &world);
            if let Some(why) = wrong.filter(|_| !is_limited) {
                self.ledger.violation(Invariant::Servers, format!("#{id} came to {to:?}: {why}"));
            }
        }
    }

    /// Checks that the gateway keeps no stream and no uncredited byte of a connection whose streams have all ended.
    pub(crate) fn judge_idle(&mut self) {
        for client in self.clients.iter_mut().filter_map(AnyClient::take_idle) {
            let Some(StreamCheck { streams, held }) = self.gateway.streams_of(client) else { continue };
            if streams > 0 || held > 0 {
                let what =
                    format!("{streams} streams and {held} bytes of {client} are left, and all have ended");
                self.ledger.violation(Invariant::Windows, what);
            }
        }
    }

    /// Checks, while nothing happens, that no request waits if a connection is idle or the limit allows another
    /// connection.
    pub(crate) fn judge_quiet(&mut self) {
        let plan = self.plan;
        let Some(most) = plan.most_connections else { return };
        let is_simple = plan.servers == 1 && !plan.adopts && !plan.health && !plan.mirrors;
        if !is_simple || self.gateway.has_mail() || !self.gateway.is_whole() {
            return;
        }
        let LeakCheck { waiting, pooled, slots, .. } = self.gateway.leak_check();
        if waiting > 0 && (pooled > 0 || slots < most) {
            let what =
                format!("{waiting} requests wait, {pooled} connections are idle, {slots} of {most} are open");
            if !self.ledger.violations.iter().any(|known| known.ends_with(&what)) {
                self.ledger.violation(Invariant::Limits, what);
            }
        }
    }

    /// Checks, while nothing happens and no request is in progress, that no connection to a server keeps a stream or an
    /// uncredited byte.
    pub(crate) fn judge_servers(&mut self) {
        let world = self.world.borrow();
        // A frame, or the end of a connection, may end a stream whose response is already complete.
        let is_quiet =
            world.next_arrival().is_none() && self.origins.iter().all(|origin| origin.is_quiet(&world));
        if !self.plan.http2_servers || !is_quiet || self.gateway.leak_check().exchanges > 0 {
            return;
        }
        let StreamCheck { streams, held } = self.gateway.server_streams();
        if streams > 0 || held > 0 {
            let what = format!("{streams} streams and {held} bytes of servers are left without a request");
            if !self.ledger.violations.iter().any(|known| known.ends_with(&what)) {
                self.ledger.violation(Invariant::Windows, what);
            }
        }
    }

    /// Lets all timeouts pass; afterwards no state may remain.
    pub(crate) fn wind_down(&mut self) {
        self.played = self.world.borrow().now;
        if let Some(client) = self.clients.first() {
            let text = format!("{client:?}").chars().take(300).collect::<String>();
            self.ledger.violation(Invariant::Progress, format!("a client waits for ever: {text}"));
            return;
        }
        let end = self.world.borrow().now + Duration::from_secs(4000);
        while self.world.borrow().now < end && self.is_anything_left() {
            if !self.step() {
                break;
            }
        }
        let leak_check = self.gateway.leak_check();
        if leak_check != LeakCheck::default() {
            self.ledger.violation(Invariant::Leftovers, format!("left behind: {leak_check:?}"));
        }
        let timers = self.gateway.timers();
        if timers > 0 {
            self.ledger.violation(Invariant::Leftovers, format!("left behind: {timers} timers"));
        }
        let (open, queued) = {
            let world = self.world.borrow();
            let open = world.links.iter().filter(|link| !link.gateway_gone).count();
            (open, world.listeners.iter().map(|listener| listener.backlog.len()).sum::<usize>())
        };
        if open > queued {
            self.ledger
                .violation(Invariant::Leftovers, format!("left behind: {} connections", open - queued));
        }
        if self.draining.is_some() && self.gateway.is_there() {
            self.ledger.violation(Invariant::Progress, "the drain does not end".to_owned());
        }
    }

    fn is_anything_left(&self) -> bool {
        self.gateway.leak_check() != LeakCheck::default()
            || self.gateway.timers() > 0
            || self.gateway.has_mail()
            || (self.draining.is_some() && self.gateway.is_there())
    }

    /// Checks that every request has one outcome, and that the log contains a reason for every loss.
    pub(crate) fn judge(&mut self) {
        let mut wrong = Vec::new();
        for (id, entry) in self.ledger.entries.iter().enumerate() {
            let has_reason = self.has_reason(entry);
            let reasons = self.reasons(id);
            if reasons > 1 {
                wrong.push((Invariant::Outcome, format!("#{id} has ended for {reasons} reasons")));
            }
            if entry.unprocessed.is_some() && !entry.arrivals.is_empty() {
                let what = format!("#{id} arrived, and the gateway told its client that it would not");
                wrong.push((Invariant::GoAway, what));
            }
            match entry.outcome {
                None => wrong.push((Invariant::Outcome, format!("#{id} has no outcome"))),
                Some(Outcome::Answered) => {
                    self.outcomes[0] += 1;
                    if entry.is_passed_on == Some(false) && !has_reason {
                        wrong.push((
                            Invariant::Bytes,
                            format!("#{id} was not passed on to its end after the switch"),
                        ));
                    }
                }
                Some(Outcome::Refused(status)) => {
                    self.outcomes[1] += 1;
                    if !has_reason {
                        wrong.push((
                            Invariant::Reason,
                            format!("#{id} got {status}, and the log does not say why"),
                        ));
                    }
                }
                Some(Outcome::Lost) => {
                    self.outcomes[2] += 1;
                    // A tunnelled connection may end in any way.
                    let may_be_lost = self.plan.tunnels || entry.is_passed || self.came_too_late(entry);
                    let may_be_lost = may_be_lost || self.follows_early_response(id);
                    if !has_reason && !may_be_lost {
                        wrong.push((
                            Invariant::Reason,
                            format!("#{id} is lost, and the log does not say why"),
                        ));
                    }
                }
                // Not counted: the client has sent the request again, on another connection.
                Some(Outcome::Forgone) if entry.unprocessed == Some(Unprocessed::GoAway) => {}
                Some(Outcome::Forgone) => self.outcomes[3] += 1,
            }
        }
        if self.plan.is_faultless() {
            let is_excused = |entry: &&Entry| self.plan.drains_clients() && self.came_too_late(entry);
            let lost = self.ledger.entries.iter().filter(|entry| entry.outcome == Some(Outcome::Lost));
            let lost = lost.filter(|entry| !is_excused(entry)).count();
            let foregone = self.outcomes[3] > 0 && !self.plan.drains_clients();
            if lost > 0 || self.outcomes[1] > 0 || foregone {
                wrong.push((
                    Invariant::Calm,
                    format!("nothing was wrong, and not all were answered: {:?}", self.outcomes),
                ));
            }
            if !self.plan.rough && self.played > Duration::from_secs(1) {
                wrong.push((Invariant::Calm, format!("nothing takes time, and it took {:?}", self.played)));
            }
            if let Some(line) = self.gateway.log.first() {
                wrong.push((Invariant::Calm, format!("nothing was wrong, and the log says: {line}")));
            }
        }
        wrong.extend(self.wrong_counts());
        wrong.extend(self.wrong_lines());
        wrong.extend(self.wrong_configurations());
        for (invariant, what) in wrong {
            self.ledger.violation(invariant, what);
        }
    }

    /// Whether the log has a line about this client, or may have omitted it.
    fn has_reason(&self, entry: &Entry) -> bool {
        let mut names = vec![format!("client={}", peer_address(entry.link))];
        names.extend(entry.source.map(|source| format!("client={source}")));
        let says = |line: &String| names.iter().any(|name| line.split(' ').any(|word| word == name));
        self.gateway.log.iter().any(says) || self.is_log_cut()
    }

    /// Whether the log omits early ends, since the gateway limits the lines per second.
    fn is_log_cut(&self) -> bool {
        let is_end = |line: &&String| {
            let word = line.split(' ').nth(1).unwrap_or_default();
            word == "-" || word.parse::<u16>().is_ok_and(|status| status >= 400)
        };
        let told = self.gateway.log.iter().filter(is_end).count() as u64;
        let ended: u64 = self.gateway.counters().ended().map(|(_, count)| count).sum();
        ended > told
    }

    /// The number of log lines about the early end of a request; excludes those about stray bytes after a response.
    fn reasons(&self, id: usize) -> usize {
        let named = format!("/{id}\"");
        let ends = |line: &&String| line.contains(&named) && !line.contains(" upstream_stray ");
        self.gateway.log.iter().filter(ends).count()
    }

    /// Whether the client may lose this request without a reason in the log. Either the gateway closed an idle
    /// connection while the request was in transit, or the client read so late that a reset discarded the response.
    fn came_too_late(&self, entry: &Entry) -> bool {
        if entry.is_accepted {
            return false;
        }
        let link = &self.world.borrow().links[entry.link];
        let was_slow = link.is_finished && !self.plan.is_faultless();
        // The worker may never have accepted the connection.
        let was_late = link.heard.is_none_or(|heard| heard <= entry.from || self.plan.client_tls);
        let drains = self.draining.is_some() || self.plan.renames;
        // Without free descriptors, the gateway closes idle connections too.
        let ends_idle = drains || self.plan.shortages > 0;
        // A response before the end of the request body closes the connection as well.
        let is_cut_short = entry.arrivals.last().is_some_and(|arrival| arrival.is_early);
        ends_idle && was_late || (drains || is_cut_short) && was_slow
    }

    /// Whether the client sent this request after one with an early response. The connection closes after such a
    /// response. The head of a successful response does not announce the close, since the request might have ended
    /// before the response did.
    fn follows_early_response(&self, id: usize) -> bool {
        let entry = &self.ledger.entries[id];
        let before = self.ledger.entries[..id].iter().rev();
        let mut answered =
            before.filter(|known| known.link == entry.link && known.outcome == Some(Outcome::Answered));
        let is_early = |known: &Entry| known.arrivals.last().is_some_and(|arrival| arrival.is_early);
        entry.arrivals.is_empty() && answered.next().is_some_and(is_early)
    }

    /// Checks that the access log has one complete line for each request with a complete head. Returns the violations.
    fn wrong_lines(&self) -> Vec<(Invariant, String)> {
        const ALWAYS: [&str; 3] = ["time", "listener", "status"];
        const OF_A_HEAD: [&str; 3] = ["method", "host", "target"];
        let (mut wrong, mut counts) = (Vec::new(), HashMap::<String, usize>::new());
        for line in &self.gateway.requests {
            let is_exchange = line.contains("\"service\":");
            let needed = ALWAYS.iter().chain(OF_A_HEAD.iter().filter(|_| is_exchange));
            let missing: Vec<_> = needed.filter(|name| !line.contains(&format!("\"{name}\":"))).collect();
            if !missing.is_empty() {
                wrong.push((Invariant::AccessLine, format!("a line without {missing:?}: {line}")));
            }
            if is_exchange && let Some(id) = target(line) {
                *counts.entry(id.to_owned()).or_default() += 1;
            }
        }
        let is_logged = self.plan.access_log && !self.plan.tunnels;
        for (id, entry) in self.ledger.entries.iter().enumerate() {
            let count = counts.remove(&id.to_string()).unwrap_or_default();
            let has_arrived = !entry.arrivals.is_empty() && !entry.is_passed && is_logged;
            if count > 1 || (count == 0 && has_arrived) {
                wrong.push((Invariant::AccessLine, format!("#{id} has {count} lines in the access log")));
            }
        }
        wrong
    }

    /// Checks that no request on a connection accepted before its listener was renamed used the renaming configuration
    /// or a later one. Returns the violations.
    fn wrong_configurations(&self) -> Vec<(Invariant, String)> {
        let world = self.world.borrow();
        let mut wrong = Vec::new();
        for (id, entry) in self.ledger.entries.iter().enumerate() {
            let Some(last) = world.last_configuration(entry.link) else { continue };
            if let Some(arrival) = entry.arrivals.iter().find(|arrival| arrival.version > last) {
                let what = format!(
                    "#{id} follows configuration {}, and its listener's last is {last}",
                    arrival.version
                );
                wrong.push((Invariant::Configuration, what));
            }
        }
        wrong
    }

    /// Checks that each exchange ended once, and that retries stayed within their budget. Returns the violations.
    fn wrong_counts(&self) -> Vec<(Invariant, String)> {
        let mut wrong = Vec::new();
        let counters = self.gateway.counters();
        let ended: u64 = counters.ended().map(|(_, count)| count).sum();
        let answers: u64 = counters.responses.0.iter().sum();
        let requests = counters.requests;
        if !(requests..=requests + ended).contains(&answers) {
            wrong.push((
                Invariant::Counters,
                format!("{requests} requests have {answers} ends, of which {ended} early"),
            ));
        }
        let budgets = self.plan.workers as u64;
        let percent = u64::from(self.plan.retry_percent);
        let most = if percent == 0 { 0 } else { 100 * budgets + (requests + ended) * percent / 100 };
        // Retries of requests that a server has not processed do not count against the budget.
        if counters.retries - counters.unprocessed_retries > most {
            wrong.push((Invariant::Once, format!("{} retries for {requests} requests", counters.retries)));
        }
        let repeated: usize =
            self.ledger.entries.iter().map(|entry| entry.arrivals.len().saturating_sub(1)).sum();
        if repeated as u64 > counters.retries {
            wrong.push((
                Invariant::Once,
                format!("{repeated} requests came again, and {} retries are counted", counters.retries),
            ));
        }
        wrong
    }
}

/// The ID of the request in a line of the access log, which is the last part of the path.
fn target(line: &str) -> Option<&str> {
    let target = line.split_once("\"target\":\"")?.1.split_once('"')?.0;
    target.rsplit('/').next()
}
