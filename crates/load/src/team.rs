//! The workers of one version of HTTP.

use crate::accounting::{Accounts, Edges};
use crate::conductor::Shared;
use crate::connection::Context;
use crate::error::LoadError;
use crate::options::{HttpVersion, Options, Schedule};
use crate::record::recorder::{Recorder, Window};
use crate::request::mix::Mix;
use crate::route::source;
use crate::route::trial::{Trial, trial};
use crate::schedule::{Arrivals, Plan};
use crate::share::Share;
use crate::tls_client;
use crate::worker::{Link, Policy, Protocol, Worker};
use rustix::process::setpriority_process;
use rustix::thread::set_current_timer_slack;
use std::io;
use std::num::NonZeroU64;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use weir_stats::rng::Rng;
use weir_tls::{Client, PeerName};
use weir_transport::Address;

/// A team before its trial connection.
pub(crate) struct Draft<P: Protocol> {
    version: HttpVersion,
    mix: Mix<P::Request>,
    client: Option<(Client, PeerName)>,
}

/// What the workers of one version share.
pub(crate) struct Team<P: Protocol> {
    mix: Mix<P::Request>,
    client: Option<(Client, PeerName)>,
    trial: Trial,
}

/// What all workers of a run share.
pub(crate) struct Run<'a> {
    pub(crate) options: &'a Options,
    pub(crate) accounts: &'a Accounts,
    pub(crate) shared: &'a Shared,
}

/// Offset between workers in the mix: a prime, so not a multiple of the cycle length.
const PLACES_APART: u64 = 1_000_003;

impl<P: Protocol> Draft<P> {
    /// The draft for this version; `None` if no connection speaks it.
    pub(crate) fn of(options: &Options, version: HttpVersion) -> Result<Option<Self>, LoadError> {
        if !options.http.speak(version) {
            return Ok(None);
        }
        let mix = Mix::new(options, P::request)?;
        Ok(Some(Self { version, mix, client: tls_client::client(options, version)? }))
    }

    /// The team, if a server at one of these addresses speaks the version.
    pub(crate) fn tried(self, options: &Options, addresses: &[Address]) -> Result<Team<P>, LoadError> {
        let Self { version, mix, client } = self;
        // Its own store: the trial's sessions must not be used in the run.
        let own = client.as_ref().map(|(client, name)| (client.core(), name));
        let tls = own.as_ref().map(|(connector, name)| (connector, *name));
        let trial = trial(options, version, addresses, tls)?;
        Ok(Team { mix, client, trial })
    }
}

impl<P: Protocol> Team<P> {
    /// The trial's warning.
    pub(crate) fn warning(&self, options: &Options) -> Option<String> {
        self.trial.warning(options)
    }

    /// Runs worker `index`, on its own thread.
    pub(crate) fn work(&self, run: &Run<'_>, index: usize, share: &Share) -> io::Result<()> {
        let Run { options, accounts, shared } = *run;
        let policy = self.policy(options, index, share);
        let keeps = options.policy.per_connection.keeps();
        let waits = options.schedule != (Schedule::Closed { think: Duration::ZERO }) || !keeps;
        let place = index as u64 * PLACES_APART;
        let context = Context::<P>::new(&self.mix, place, Recorder::new(waits), Instant::now());
        let edges = Edges::new(index, accounts);
        let link = Link { outbox: &shared.outboxes[index], stop: &shared.stop };
        let outcome = Worker::new(policy, context, edges, link)
            .and_then(|worker| conduct(shared, worker, share, options));
        if outcome.is_err() {
            shared.failed.store(true, Ordering::Release);
        }
        outcome
    }

    fn policy(&self, options: &Options, index: usize, share: &Share) -> Policy {
        Policy {
            address: self.trial.address.clone(),
            sources: source::in_turn(&options.route.sources, index, options.workers),
            tls: self.client.as_ref().map(|(client, name)| (client.core(), name.clone())),
            connections: share.connections,
            streams: options.streams,
            stream_window: options.stream_window,
            per_connection: options.policy.per_connection,
            resume: options.policy.resume,
            close: options.policy.close,
            think: match options.schedule {
                Schedule::Closed { think } => think,
                Schedule::Open { .. } => Duration::ZERO,
            },
            timeout: options.timeout,
            // Distinct from the schedule's and the other workers' seeds.
            rng: Rng::new(options.seed ^ (index as u64 + 1) << 32),
        }
    }
}

/// Opens the connections, waits for the start, and runs the worker to the end.
fn conduct<P: Protocol>(
    shared: &Shared,
    mut worker: Worker<'_, P>,
    share: &Share,
    options: &Options,
) -> io::Result<()> {
    if options.schedule.rate().is_some() {
        // The default timer slack is 50 us; if this fails, the lag shows it.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        // On a shared core (with the origin, on a small machine) a pacer that waits to be scheduled is late. Raising
        // a thread's priority (setpriority(2)) needs privileges; without them the lag shows it.
        let _ = setpriority_process(None, HIGHEST_PRIORITY);
    }
    let mut reported = false;
    worker.open(|settled| {
        if settled && !reported {
            reported = true;
            shared.opened.fetch_add(1, Ordering::AcqRel);
        }
        shared.times.get().is_none() && !shared.failed.load(Ordering::Acquire)
    })?;
    let Some(&(start, window)) = shared.times.get() else { return Ok(()) };
    let arrivals = match &options.schedule {
        Schedule::Closed { .. } => None,
        Schedule::Open { arrivals, steps } => {
            let plan = Plan { start, window: window.from, kind: *arrivals, steps, seed: options.seed };
            Some(Arrivals::new(&plan, share.turns.clone()))
        }
    };
    let (recorder, edges) = worker.run(start, window, arrivals, &step_ends(options, window))?;
    if let Some(edges) = edges.both() {
        shared.parts.lock().unwrap_or_else(PoisonError::into_inner).push((recorder, edges));
    }
    Ok(())
}

/// The ends of the rate's steps.
fn step_ends(options: &Options, window: Window) -> Vec<Instant> {
    match &options.schedule {
        Schedule::Open { steps, .. } if steps.len() > 1 => steps
            .iter()
            .scan(window.from, |end, step| {
                *end += step.time;
                Some(*end)
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The highest priority.
const HIGHEST_PRIORITY: i32 = -20;
