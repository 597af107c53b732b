//! The gateway's workers, the messages between them, and their log.

use crate::Invariant;
use crate::ledger::Ledger;
use crate::net::{SimListener, SimNet};
use crate::plan::Plan;
use crate::setting::{Setting, ejected};
use crate::standing::Standing;
use crate::world::World;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use weir_gateway::harness::{Bound, LeakCheck, Message, StreamCheck, WorkerHarness};
use weir_gateway::{Counters, Timeouts};
use weir_reactor::stop::Stop;

/// The gateway: its workers, and the messages between them.
#[derive(Debug)]
pub(crate) struct Gateway {
    world: Rc<RefCell<World>>,
    /// A worker's slot is `None` once it has drained.
    workers: Vec<Option<WorkerHarness<SimNet>>>,
    /// Messages in transit to each worker, with their time of arrival.
    mail: Vec<VecDeque<(Duration, Mail)>>,
    bound: Bound,
    setting: Setting,
    standing: Standing,
    down: Vec<bool>,
    /// Counters of drained workers.
    counters: Counters,
    /// Log lines of all workers.
    pub(crate) log: Vec<String>,
    /// Access log lines of all workers.
    pub(crate) requests: Vec<String>,
    most_connections: usize,
}

#[derive(Debug)]
struct Mail {
    message: Message<SimNet>,
    news: News,
}

/// The content of a message to a worker.
#[derive(Debug)]
enum News {
    /// A message from another worker.
    Theirs,
    /// A new configuration.
    Setting(Box<Setting>),
    /// A change of a server's health.
    Health { server: usize, moves: u8, is_down: bool },
    /// The start of a drain.
    Drain,
}

impl Gateway {
    /// Starts a plan's workers.
    pub(crate) fn new(world: &Rc<RefCell<World>>, plan: &Plan, timeouts: Timeouts) -> Self {
        let setting = Setting::new(plan, timeouts);
        let bound = setting.bound(plan);
        let net = |worker| SimNet::new(Rc::clone(world), worker);
        let workers = match plan.workers {
            1 => WorkerHarness::new(net(0), bound.clone(), vec![SimListener]).map(|worker| vec![worker]),
            count => WorkerHarness::several(
                (0..count).map(|worker| (net(worker), vec![SimListener])).collect(),
                &bound,
            ),
        };
        let workers = workers.expect("nothing here can fail").into_iter();
        let logging = |worker: WorkerHarness<SimNet>| match plan.access_log {
            true => worker.logging_requests(),
            false => worker,
        };
        let workers: Vec<_> = workers.map(logging).map(Some).collect();
        Self {
            world: Rc::clone(world),
            mail: workers.iter().map(|_| VecDeque::new()).collect(),
            workers,
            bound,
            setting,
            standing: Standing::new(plan.workers, plan.servers),
            down: vec![false; plan.servers],
            counters: Counters::default(),
            log: Vec::new(),
            requests: Vec::new(),
            most_connections: plan.most_connections.unwrap_or(usize::MAX),
        }
    }

    /// The servers that may receive requests.
    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Lookups of connections, exchanges, services and servers by the running workers; 0 in release builds.
    pub(crate) fn look_ups(&self) -> u64 {
        self.workers.iter().flatten().map(WorkerHarness::look_ups).sum()
    }

    /// Whether any worker is running.
    pub(crate) fn is_there(&self) -> bool {
        self.workers.iter().any(Option::is_some)
    }

    /// Whether all workers are running.
    pub(crate) fn is_whole(&self) -> bool {
        self.workers.iter().all(Option::is_some)
    }

    /// The sum of all workers' connections, exchanges and queues.
    pub(crate) fn leak_check(&self) -> LeakCheck {
        let mut all = LeakCheck::default();
        for leak_check in self.workers.iter().flatten().map(WorkerHarness::leak_check) {
            all.clients += leak_check.clients;
            all.upstreams += leak_check.upstreams;
            all.pooled += leak_check.pooled;
            all.exchanges += leak_check.exchanges;
            all.tunnels += leak_check.tunnels;
            all.mirrors += leak_check.mirrors;
            all.waiting += leak_check.waiting;
            all.in_flight += leak_check.in_flight;
            // All workers share the slots, so their counts are not added.
            all.slots = all.slots.max(leak_check.slots);
        }
        all
    }

    /// The streams of a client's connection.
    pub(crate) fn streams_of(&self, client: SocketAddr) -> Option<StreamCheck> {
        self.workers.iter().flatten().find_map(|worker| worker.streams_of(client))
    }

    /// The streams of all workers' connections to servers.
    pub(crate) fn server_streams(&self) -> StreamCheck {
        let all = self.workers.iter().flatten().map(WorkerHarness::server_streams);
        all.fold(StreamCheck::default(), |sum, of| StreamCheck {
            streams: sum.streams + of.streams,
            held: sum.held + of.held,
        })
    }

    /// The number of timer wheel entries of all running workers.
    pub(crate) fn timers(&self) -> usize {
        let world = self.world.borrow();
        let there = self.workers.iter().zip(&world.listeners).filter(|(worker, _)| worker.is_some());
        there.map(|(_, listener)| listener.timers).sum()
    }

    /// The sum of all workers' counters.
    pub(crate) fn counters(&self) -> Counters {
        let mut counters = self.counters.clone();
        for worker in self.workers.iter().flatten() {
            counters.add(worker.counters());
        }
        counters
    }

    /// The bytes of incomplete heads that the running workers have parsed, counted again at each attempt.
    pub(crate) fn parsed_in_vain(&self) -> u64 {
        self.workers.iter().flatten().map(WorkerHarness::parsed_in_vain).sum()
    }

    /// The next instant at which a message arrives or a timer is due.
    pub(crate) fn next(&self) -> Option<Duration> {
        let world = self.world.borrow();
        let there = self.workers.iter().zip(&world.listeners).filter(|(worker, _)| worker.is_some());
        let timers = there.filter_map(|(_, listener)| listener.timer);
        let messages = self.mail.iter().filter_map(|mail| mail.front()).map(|(at, _)| *at);
        timers.chain(messages).min()
    }

    /// Whether messages are in transit.
    pub(crate) fn has_mail(&self) -> bool {
        self.mail.iter().any(|mail| !mail.is_empty())
    }

    /// Reloads the configuration: one upstream server gets another address, or the idle timeout of pooled connections
    /// changes. The HTTP version towards servers and the listener's name may also change.
    pub(crate) fn adopt(&mut self, plan: &Plan, ledger: &mut Ledger) {
        let mut world = self.world.borrow_mut();
        self.setting.version += 1;
        if world.below(2) == 0 {
            let server = world.below(plan.servers as u64) as usize;
            self.setting.moves[server] = self.setting.moves[server].wrapping_add(1);
            // A server at a new address has no health state and no drain setting.
            self.down[server] = false;
            self.setting.drained[server] = false;
        } else {
            self.setting.timeouts.pooled = Duration::from_millis(1 + world.below(60_000));
        }
        if plan.flips_http2 && world.below(3) == 0 {
            self.setting.http2 = !self.setting.http2;
        }
        if plan.renames && world.below(3) == 0 {
            self.setting.renamed = !self.setting.renamed;
            world.renames.push(self.setting.version);
        }
        drop(world);
        let Setting { version, moves, http2, .. } = &self.setting;
        let by = if *http2 { ", and speak HTTP/2" } else { "" };
        ledger.note(|| format!("configuration {version}: the servers have moved {moves:?} times{by}"));
        self.bound = self.setting.bound(plan).after(&self.bound);
        self.spread();
    }

    /// Drains a server or restores it, but never drains the last one.
    pub(crate) fn drain_server(&mut self, ledger: &mut Ledger) {
        let drained = &mut self.setting.drained;
        let server = self.world.borrow_mut().below(drained.len() as u64) as usize;
        if !drained[server] && drained.iter().filter(|is_drained| !**is_drained).count() == 1 {
            return;
        }
        drained[server] = !drained[server];
        let is_drained = drained[server];
        ledger.note(|| {
            format!("server {server} is {}", if is_drained { "drained" } else { "drained no more" })
        });
        self.bound.drain("upstream", server, is_drained);
        self.spread();
    }

    fn spread(&mut self) {
        for worker in 0..self.workers.len() {
            let news = News::Setting(Box::new(self.setting.clone()));
            self.post(worker, Message::adopt(&self.bound), news);
        }
    }

    /// Marks a random server as down, or as up again.
    pub(crate) fn turn_health(&mut self, ledger: &mut Ledger) {
        let server = self.world.borrow_mut().below(self.down.len() as u64) as usize;
        self.down[server] = !self.down[server];
        let (is_down, moves) = (self.down[server], self.setting.moves[server]);
        ledger.note(|| format!("server {server} is {}", if is_down { "down" } else { "up" }));
        for worker in 0..self.workers.len() {
            if let Some(message) = self.bound.health("upstream", server, !is_down) {
                self.post(worker, message, News::Health { server, moves, is_down });
            }
        }
    }

    /// Drains all workers.
    pub(crate) fn drain(&mut self) {
        for worker in 0..self.workers.len() {
            self.post(worker, Message::stop(Stop::Drain), News::Drain);
        }
    }

    fn post(&mut self, worker: usize, message: Message<SimNet>, news: News) {
        let mut world = self.world.borrow_mut();
        let last = self.mail[worker].back().map_or(Duration::ZERO, |(at, _)| *at);
        let at = (world.now + world.delay()).max(last);
        world.moves += 1;
        self.mail[worker].push_back((at, Mail { message, news }));
    }

    /// Runs one turn of each worker, starting with a random one.
    pub(crate) fn turn(&mut self, ledger: &mut Ledger) {
        let count = self.workers.len();
        let first = match count {
            1 => 0,
            _ => self.world.borrow_mut().below(count as u64) as usize,
        };
        for worker in (0..count).map(|at| (first + at) % count) {
            self.turn_of(worker, ledger);
            self.deliver(worker, ledger);
            let messages = self.workers.iter_mut().map(|harness| match harness {
                Some(harness) => harness.messages(),
                None => Vec::new(),
            });
            for (to, messages) in messages.collect::<Vec<_>>().into_iter().enumerate() {
                for message in messages {
                    self.post(to, message, News::Theirs);
                }
            }
        }
    }

    fn deliver(&mut self, worker: usize, ledger: &mut Ledger) {
        let now = self.world.borrow().now;
        while let Some((_, Mail { message, news })) = self.mail[worker].pop_front_if(|(at, _)| *at <= now) {
            self.world.borrow_mut().moves += 1;
            let Some(harness) = &mut self.workers[worker] else { continue };
            harness.receive(message);
            self.judge(worker, ledger);
            match news {
                News::Theirs | News::Drain => {}
                News::Setting(setting) => {
                    let Setting { version, moves, drained, .. } = *setting;
                    self.standing.adopted(worker, &moves, &drained, now);
                    self.world.borrow_mut().listeners[worker].version = version;
                }
                News::Health { server, moves, is_down } => {
                    self.standing.is(worker, server, moves, is_down, now);
                }
            }
        }
    }

    fn turn_of(&mut self, worker: usize, ledger: &mut Ledger) {
        let Some(harness) = &mut self.workers[worker] else { return };
        let LeakCheck { clients, upstreams, exchanges, .. } = harness.leak_check();
        let turned = harness.turn();
        let timers = self.world.borrow().listeners[worker].timers;
        // A worker needs one timer per connection and exchange, one for the listener's pause in accepting, one for the
        // drain, and one for the clients of a renamed listener.
        if timers > clients + upstreams + exchanges + 3 {
            ledger.violation(
                Invariant::Leftovers,
                format!(
                    "{timers} timers for {clients} clients, {exchanges} exchanges and {upstreams} upstreams"
                ),
            );
        }
        if let Err(error) = turned {
            ledger.violation(Invariant::Progress, format!("the gateway failed: {error}"));
        }
        let is_drained = harness.is_drained();
        self.judge(worker, ledger);
        if is_drained && let Some(harness) = self.workers[worker].take() {
            ledger.note(|| format!("worker {worker} is drained"));
            self.counters.add(harness.counters());
        }
    }

    /// Checks a worker's new connections and log lines.
    fn judge(&mut self, worker: usize, ledger: &mut Ledger) {
        let (lines, requests) =
            self.workers[worker].as_mut().map(|bare| (bare.lines(), bare.requests())).unwrap_or_default();
        for line in &requests {
            // Omit the time, which is real and differs between runs of one seed.
            ledger.note(|| line.split_once(',').map_or("", |(_time, rest)| rest).to_owned());
        }
        self.requests.extend(requests);
        let now = self.world.borrow().now;
        let ejections: Vec<_> = lines.iter().filter_map(|line| ejected(line, now)).collect();
        let attempts = std::mem::take(&mut self.world.borrow_mut().attempts);
        for link in attempts {
            let world = self.world.borrow();
            let Some(to) = world.links[link].to else { continue };
            let is_open = |link: &&crate::world::Link| link.to == Some(to) && !link.gateway_gone;
            let open = world.live().filter(is_open).count();
            if open > self.most_connections && to[1] == 18 {
                let most = self.most_connections;
                ledger.violation(
                    Invariant::Limits,
                    format!("{open} connections to {to:?}, and {most} are allowed"),
                );
            }
            if self.most_connections == usize::MAX
                && let Some(why) = self.standing.wrong_connection(worker, to, &ejections, &world)
            {
                ledger.violation(Invariant::Servers, format!("a connection to {to:?}: {why}"));
            }
        }
        for ejection in ejections {
            self.standing.ejected(worker, ejection, now);
        }
        for line in lines {
            // The reason `internal_error`, not the server's error code of the same name.
            if line.contains(" internal_error ") {
                ledger.violation(Invariant::Progress, line.clone());
            }
            ledger.note(|| line.clone());
            self.log.push(line);
        }
    }
}
