//! One run: open, warm up, measure, drain, add up.

use crate::accounting::{Accounts, Edges};
use crate::conductor::{Conductor, Progress, Shared};
use crate::connection::Context;
use crate::error::LoadError;
use crate::h2::Http2;
use crate::options::{HttpVersion, Options, Schedule};
use crate::record::recorder::{Recorder, Window};
use crate::record::seconds::Outbox;
use crate::record::sum;
use crate::request::mix::Mix;
use crate::result::LoadResult;
use crate::route::destination;
use crate::route::ports::{self, Kernel};
use crate::route::source;
use crate::route::trial::trial;
use crate::schedule::{Arrivals, Plan};
use crate::tls_client;
use crate::usage::Usage;
use crate::worker::{Http1, Link, Policy, Protocol, Worker};
use rustix::process::setpriority_process;
use rustix::thread::set_current_timer_slack;
use std::io;
use std::num::NonZeroU64;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};
use weir_reactor::{cores, run_workers};
use weir_stats::rng::Rng;

/// Runs the engine. `watch` is called about once per second, from the calling thread. A message on `stop` ends the run
/// early; the result covers what was measured until then.
///
/// # Errors
/// When it cannot run at all. A server that refuses, fails or responds wrongly is a result.
pub fn run(
    options: &Options,
    stop: &Receiver<()>,
    watch: impl FnMut(&Progress),
) -> Result<LoadResult, LoadError> {
    options.check()?;
    match options.http {
        HttpVersion::Http1 => run_with::<Http1>(options, stop, watch),
        HttpVersion::Http2 => run_with::<Http2>(options, stop, watch),
    }
}

fn run_with<P: Protocol>(
    options: &Options,
    stop: &Receiver<()>,
    mut watch: impl FnMut(&Progress),
) -> Result<LoadResult, LoadError>
where
    P::Request: Sync,
{
    let mix = Mix::new(options, P::request)?;
    let addresses = destination::resolve(options)?;
    let budget = ports::budget(options, &addresses[0], &Kernel::read())?;
    let client = tls_client::client(options)?;
    let accounts = Accounts::open(&options.servers)?;
    if let Some(cores) = &options.cores {
        check_cores(cores)?;
    }
    // Its own store: the trial's sessions must not be used in the run.
    let own = client.as_ref().map(|(client, name)| (client.core(), name));
    let trial = trial(options, &addresses, own.as_ref().map(|(connector, name)| (connector, *name)))?;

    let outboxes = (0..options.workers).map(|_| Outbox::default()).collect();
    let shared = Shared { outboxes, ..Shared::default() };
    let run_one = |index: usize, (): ()| -> Result<(), io::Error> {
        let policy = Policy {
            address: trial.address.clone(),
            sources: source::in_turn(&options.route.sources, index, options.workers),
            tls: client.as_ref().map(|(client, name)| (client.core(), name.clone())),
            connections: share(options.connections, index, options.workers),
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
        };
        let keeps = options.policy.per_connection.keeps();
        let waits = options.schedule != (Schedule::Closed { think: Duration::ZERO }) || !keeps;
        let place = index as u64 * PLACES_APART;
        let context = Context::<P>::new(&mix, place, Recorder::new(waits), Instant::now());
        let edges = Edges::new(index, &accounts);
        let link = Link { outbox: &shared.outboxes[index], stop: &shared.stop };
        let outcome = Worker::new(policy, context, edges, link)
            .and_then(|worker| work(&shared, worker, index, options));
        if outcome.is_err() {
            shared.failed.store(true, Ordering::Release);
        }
        outcome
    };
    let conducted = thread::scope(|scope| -> Result<_, LoadError> {
        let run = scope.spawn(|| run_workers(vec![(); options.workers], options.cores.as_ref(), run_one));
        // The live view runs on this thread, not between the workers' requests.
        let _kept_off = options.cores.as_ref().and_then(cores::keep_off);
        let conductor = Conductor { shared: &shared, accounts: &accounts, options, stop };
        let conducted = conductor.conduct(|| run.is_finished(), &mut watch);
        run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        conducted
    })?;
    let mut parts = shared.parts.into_inner().unwrap_or_else(PoisonError::into_inner);
    parts.sort_by_key(|(_, span)| span.index);
    let sum = conducted.and_then(|conducted| sum::up(options, &accounts, parts, conducted));
    let mut result = sum.ok_or(LoadError::NoWindow)?;
    let phases = options.phases;
    let load = phases.warmup + phases.settle + phases.window;
    result.warnings.extend(trial.warning(options));
    result.warnings.extend(budget.and_then(|budget| budget.warning(result.connections_opened, load)));
    Ok(result)
}

/// Offset between workers in the mix: a prime, so not a multiple of the cycle length.
const PLACES_APART: u64 = 1_000_003;

/// One worker's run, on its own thread.
fn work<P: Protocol>(
    shared: &Shared,
    mut worker: Worker<'_, P>,
    index: usize,
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
            Some(Arrivals::new(&plan, index, options.workers))
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

/// Report a pinning failure here, with the flag's name, not in a worker.
fn check_cores(list: &cores::Cores) -> Result<(), Usage> {
    for core in &list.0 {
        let pinned = thread::scope(|scope| scope.spawn(|| cores::pin(*core)).join());
        if !matches!(pinned, Ok(Ok(()))) {
            let expected = cores::allowed().map_or("?".into(), |cores| cores.to_string());
            return Err(Usage::new("--cores", &core.to_string(), &expected));
        }
    }
    Ok(())
}

/// One worker's share of the connections.
fn share(connections: u32, index: usize, workers: usize) -> u32 {
    let (index, workers) = (index as u32, workers as u32);
    connections / workers + u32::from(index < connections % workers)
}
