//! One run: open, warm up, measure, drain, add up.

use crate::accounting::{Accounts, Edges};
use crate::conductor::{Conducted, Conductor, Progress};
use crate::connection::Desk;
use crate::error::LoadError;
use crate::options::{Options, Schedule};
use crate::record::recorder::Recorder;
use crate::record::sum::{self, Remains};
use crate::request::Mix;
use crate::result::LoadResult;
use crate::route::destination;
use crate::route::ports::{self, Kernel};
use crate::route::source;
use crate::route::trial::trial;
use crate::shared::Shared;
use crate::tls_client;
use crate::usage::Usage;
use crate::worker::{Link, Policy, Worker};
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};
use weir_reactor::{cores, run_workers};
use weir_stats::rng::Rng;

/// Runs the engine. `watch` is called about once per second, from the calling thread. A message on `stop` ends the run
/// early: what was measured until then is the result.
///
/// # Errors
/// When it cannot run at all. A server that refuses, fails or answers wrongly is a result.
pub fn run(
    options: &Options,
    stop: &Receiver<()>,
    mut watch: impl FnMut(&Progress),
) -> Result<LoadResult, LoadError> {
    options.check()?;
    let mix = Mix::new(options)?;
    let addresses = destination::resolve(options)?;
    let budget = ports::budget(options, &addresses[0], &Kernel::read())?;
    let client = tls_client::client(options)?;
    let accounts = Accounts::open(&options.servers)?;
    if let Some(cores) = &options.cores {
        check_cores(cores)?;
    }
    // A store of its own: what the server gives it is none of the run's.
    let own = client.as_ref().map(|(client, name)| (client.core(), name));
    let trial = trial(options, &addresses, own.as_ref().map(|(connector, name)| (connector, *name)))?;

    let shared = Shared::new(options.workers);
    let work = |index: usize, (): ()| -> Result<(), io::Error> {
        let policy = Policy {
            address: trial.address.clone(),
            sources: source::in_turn(&options.route.sources, index, options.workers),
            tls: client.as_ref().map(|(client, name)| (client.core(), name.clone())),
            connections: share(options.connections, index, options.workers),
            per_connection: options.policy.per_connection,
            resume: options.policy.resume,
            close: options.policy.close,
            think: match options.schedule {
                Schedule::Closed { think } => think,
                Schedule::Open { .. } => Duration::ZERO,
            },
            timeout: options.timeout,
            // Not the schedule's numbers, nor another worker's.
            rng: Rng::new(options.seed ^ (index as u64 + 1) << 32),
        };
        let keeps = options.policy.per_connection.keeps();
        let waits = options.schedule != (Schedule::Closed { think: Duration::ZERO }) || !keeps;
        let place = index as u64 * PLACES_APART;
        let desk = Desk::new(&mix, place, Recorder::new(waits), Instant::now());
        let edges = Edges::new(index, &accounts);
        let link = Link { outbox: &shared.outboxes[index], stop: &shared.stop };
        let outcome =
            Worker::new(policy, desk, edges, link).and_then(|worker| shared.work(worker, index, options));
        if outcome.is_err() {
            shared.failed.store(true, Ordering::Release);
        }
        outcome
    };
    let conducted = thread::scope(|scope| -> Result<_, LoadError> {
        let run = scope.spawn(|| run_workers(vec![(); options.workers], options.cores.as_ref(), work));
        // What is shown meanwhile is drawn beside the workers, not between their requests.
        let _kept_off = options.cores.as_ref().and_then(cores::keep_off);
        let conductor = Conductor { shared: &shared, accounts: &accounts, options, stop };
        let conducted = conductor.conduct(|| run.is_finished(), &mut watch);
        run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(conducted)
    })?;
    let mut parts = shared.parts.into_inner().unwrap_or_else(PoisonError::into_inner);
    parts.sort_by_key(|(index, ..)| *index);
    let parts = parts.into_iter().map(|(_, recorder, span)| (recorder, span)).collect();
    let Some(Conducted { looks, phases, mut seconds, partial }) = conducted else {
        return Err(LoadError::NoWindow);
    };
    seconds.collect(&shared.outboxes);
    let seconds = seconds.into_window();
    let remains = Remains { options, accounts: &accounts, parts, looks, phases, seconds, partial };
    let mut result = sum::up(remains).ok_or(LoadError::NoWindow)?;
    let phases = options.phases;
    let load = phases.warmup + phases.settle + phases.window;
    result.warnings.extend(trial.warning(options));
    result.warnings.extend(budget.and_then(|budget| budget.warning(result.connections_opened, load)));
    Ok(result)
}

/// So far are the workers from each other in the mix: a prime, so that it is no multiple of a turn's length.
const PLACES_APART: u64 = 1_000_003;

/// Pinning fails here, with the flag's name, instead of in a worker.
fn check_cores(list: &cores::Cores) -> Result<(), Usage> {
    for core in &list.0 {
        let pinned = thread::scope(|scope| scope.spawn(|| cores::pin(*core)).join());
        if !matches!(pinned, Ok(Ok(()))) {
            let allowed = cores::allowed().map_or("?".into(), |cores| cores.to_string());
            return Err(Usage::new("--cores", &core.to_string(), &allowed));
        }
    }
    Ok(())
}

/// One worker's share of the connections.
fn share(connections: u32, index: usize, workers: usize) -> u32 {
    let (index, workers) = (index as u32, workers as u32);
    connections / workers + u32::from(index < connections % workers)
}
