//! One run: open, warm up, measure, drain, add up.

use crate::accounting::{Accounts, Edge, Edges, Threads, cost};
use crate::check::ErrorClass;
use crate::connection::Desk;
use crate::destination;
use crate::options::{Options, PerConnection};
use crate::ports::{self, Kernel};
use crate::recorder::{Recorder, Window};
use crate::request::Mix;
use crate::result::{Asked, EngineCost, Limit, LoadResult, Pacer, SCHEMA, Unsent};
use crate::schedule::Arrivals;
use crate::source;
use crate::trial::{Unreachable, trial};
use crate::usage::Usage;
use crate::validity;
use crate::worker::{Policy, Worker};
use rustix::process::setpriority_process;
use rustix::thread::set_current_timer_slack;
use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use weir_reactor::{cores, run_workers};
use weir_tls::{Client, ClientSettings, Identity, PeerName, Roots, SettingsError};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A flag that cannot be followed.
    #[error(transparent)]
    Usage(#[from] Usage),
    /// A TLS setting or file.
    #[error(transparent)]
    Tls(#[from] SettingsError),
    /// The server is not there, or is not what the URL says.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The system.
    #[error("the system refused: {0}")]
    System(#[from] io::Error),
}

impl LoadError {
    /// Whether what was asked for is at fault, not the system.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_) | Self::Tls(_))
    }
}

/// How far a run is, for whoever watches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Connections are being made, the warm-up runs, the window, the drain.
    pub phase: Phase,
    /// What is left of the phase; zero where that is not known.
    pub left: Duration,
    /// Right answers so far, the warm-up's included.
    pub answered: u64,
}

/// The phases of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Connections are being made.
    Opening,
    /// Requests flow and are not measured yet.
    WarmUp,
    /// The measured window.
    Window,
    /// Requests that have begun come to their end.
    Drain,
}

/// Runs the engine. `watch` is called about once per second, from the calling thread.
///
/// # Errors
/// When it cannot run at all. A server that refuses, fails or answers wrongly is a result.
pub fn run(options: &Options, mut watch: impl FnMut(&Progress)) -> Result<LoadResult, LoadError> {
    options.check()?;
    let mix = Mix::new(options)?;
    let endpoint = &options.endpoint;
    let addresses = destination::resolve(options)?;
    let budget = ports::budget(options, &addresses[0], &Kernel::read())?;
    let client = if endpoint.tls { Some(client(options)?) } else { None };
    let name: Option<PeerName> = match endpoint.tls {
        true => Some(endpoint.host.parse().map_err(SettingsError::UnknownName)?),
        false => None,
    };
    let accounts = Accounts::open(&options.servers)?;
    if let Some(cores) = &options.cores {
        check_cores(cores)?;
    }

    // A store of its own: what the server gives it is none of the run's.
    let connector = client.as_ref().map(weir_tls::Client::core);
    let trial = trial(options, &addresses, connector.as_ref().zip(name.as_ref()))?;

    let shared = Shared::new(options.workers);
    let work = |index: usize| -> Result<(), io::Error> {
        let policy = Policy {
            address: trial.address.clone(),
            sources: source::in_turn(&options.route.sources, index, options.workers),
            tls: client.as_ref().map(weir_tls::Client::core).zip(name.clone()),
            connections: share(options.connections, index, options.workers),
            per_connection: per_connection(options),
            timeout: options.timeout,
        };
        let waits = options.schedule.rate().is_some() || options.policy.per_connection.is_single();
        let place = index as u64 * PLACES_APART;
        let desk = Desk::new(&mix, place, Recorder::new(waits), Instant::now());
        let edges = Edges::new((index == 0).then_some(&accounts));
        let outcome = Worker::new(policy, desk, edges).and_then(|worker| shared.work(worker, index, options));
        if outcome.is_err() {
            shared.failed.store(true, Ordering::Release);
        }
        outcome
    };
    let threads = thread::scope(|scope| -> Result<_, LoadError> {
        let run = scope.spawn(|| run_workers(options.workers, options.cores.as_ref(), work));
        let threads = shared.conduct(&accounts, options, || run.is_finished(), &mut watch);
        run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(threads)
    })?;
    let parts = shared.parts.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut result = threads
        .and_then(|threads| add_up(options, &accounts, parts, &threads))
        .ok_or_else(|| io::Error::other("the run ended before its window"))?;
    let phases = options.phases;
    let load = phases.warmup + phases.settle + phases.window;
    result.warnings.extend(trial.warning(options));
    result.warnings.extend(budget.and_then(|budget| budget.warning(result.connections_opened, load)));
    Ok(result)
}

/// So far are the workers from each other in the mix: a prime, so that it is no multiple of a turn's length.
const PLACES_APART: u64 = 1_000_003;

/// What the workers and the thread that conducts them share; nothing of it is touched for each request.
struct Shared {
    /// Workers whose connections have been made, or have failed.
    opened: AtomicUsize,
    failed: AtomicBool,
    times: OnceLock<(Instant, Window)>,
    answered: Vec<Published>,
    parts: Mutex<Vec<(Recorder, (Edge, Edge))>>,
}

/// A number that one worker writes once per turn, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Published(AtomicU64);

impl Shared {
    fn new(workers: usize) -> Self {
        Self {
            opened: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            times: OnceLock::new(),
            answered: (0..workers).map(|_| Published::default()).collect(),
            parts: Mutex::new(Vec::new()),
        }
    }

    fn work(&self, mut worker: Worker<'_>, index: usize, options: &Options) -> io::Result<()> {
        if options.schedule.rate().is_some() {
            // The kernel gathers the wake-ups of 50 us by default; where it does not let us, the lag will tell.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            // On a core that it shares (with the origin, on a small machine), a pacer that waits for its turn is late. A
            // thread's own priority (setpriority(2)) needs the right to raise it; without, the lag will tell as well.
            let _ = setpriority_process(None, HIGHEST_PRIORITY);
        }
        let mut told = false;
        worker.open(|settled| {
            if settled && !told {
                told = true;
                self.opened.fetch_add(1, Ordering::AcqRel);
            }
            self.times.get().is_none() && !self.failed.load(Ordering::Acquire)
        })?;
        let Some(&(start, window)) = self.times.get() else { return Ok(()) };
        let arrivals = options.schedule.rate().map(|rate| Arrivals::new(start, rate, index, options.workers));
        let published = &self.answered[index].0;
        let (recorder, edges) =
            worker.run(start, window, arrivals, |answered| published.store(answered, Ordering::Relaxed))?;
        if let Some(edges) = edges.both() {
            self.parts.lock().unwrap_or_else(PoisonError::into_inner).push((recorder, edges));
        }
        Ok(())
    }

    /// Starts the workers together once all have their connections, looks at the servers' threads near the edges of
    /// the window, and tells `watch`.
    fn conduct(
        &self,
        accounts: &Accounts,
        options: &Options,
        finished: impl Fn() -> bool,
        watch: &mut impl FnMut(&Progress),
    ) -> Option<(Threads, Threads)> {
        let mut tell = |phase, left| {
            let answered = self.answered.iter().map(|published| published.0.load(Ordering::Relaxed)).sum();
            watch(&Progress { phase, left, answered });
        };
        tell(Phase::Opening, Duration::ZERO);
        let patience = Instant::now() + options.timeout + OPENING_MARGIN;
        while self.opened.load(Ordering::Acquire) < options.workers && Instant::now() < patience {
            if finished() {
                return None;
            }
            thread::sleep(POLL);
        }
        // Far enough ahead for every worker to notice.
        let start = Instant::now() + 5 * POLL;
        let from = start + options.phases.warmup + options.phases.settle;
        let to = from + options.phases.window;
        self.times.get_or_init(|| (start, Window { from, to }));
        let mut sleep = |phase, until: Instant| {
            loop {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() || finished() {
                    return;
                }
                tell(phase, left);
                thread::sleep(left.min(TICK));
            }
        };
        sleep(Phase::WarmUp, from - POLL);
        let before = accounts.threads();
        sleep(Phase::Window, to);
        let after = accounts.threads();
        while !finished() {
            sleep(Phase::Drain, Instant::now() + 5 * POLL);
        }
        Some((before, after))
    }
}

/// The nice value that goes first.
const HIGHEST_PRIORITY: i32 = -20;

/// How long the making of connections may take beyond the time-out of a single one.
const OPENING_MARGIN: Duration = Duration::from_secs(1);

/// How often the conductor looks while it waits for the workers.
const POLL: Duration = Duration::from_millis(2);

/// How often the conductor wakes up within the window, perhaps on a measured core.
const TICK: Duration = Duration::from_secs(1);

fn client(options: &Options) -> Result<Client, SettingsError> {
    let tls = &options.tls;
    let mut settings =
        ClientSettings { resumption: options.policy.resume > 0.0, ..ClientSettings::default() };
    settings.roots = match (&tls.ca, tls.insecure) {
        (_, true) => Roots::DangerouslyNone,
        (Some(file), false) => Roots::File(file.clone()),
        (None, false) => Roots::Native,
    };
    if let Some(version) = tls.versions.first().copied().or(tls.suites.first().map(|suite| suite.version())) {
        settings.versions = vec![version];
        settings.suites.retain(|suite| suite.version() == version);
        settings.groups.retain(|group| group.fits(version));
    }
    if !tls.suites.is_empty() {
        settings.suites = tls.suites.clone();
    }
    if !tls.groups.is_empty() {
        settings.groups = tls.groups.clone();
    }
    settings.identity = tls.identity.as_ref().map(|(chain, key)| Identity::files(chain, key));
    Client::new(&settings)
}

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

fn per_connection(options: &Options) -> Option<u64> {
    match options.policy.per_connection {
        PerConnection::Requests { most, .. } => Some(most),
        PerConnection::Unlimited | PerConnection::Handshake => None,
    }
}

/// One worker's share of the connections.
fn share(connections: u32, index: usize, workers: usize) -> u32 {
    let (index, workers) = (index as u32, workers as u32);
    connections / workers + u32::from(index < connections % workers)
}

fn add_up(
    options: &Options,
    accounts: &Accounts,
    parts: Vec<(Recorder, (Edge, Edge))>,
    threads: &(Threads, Threads),
) -> Option<LoadResult> {
    let mut busiest: f64 = 0.0;
    let mut readings = None;
    let mut all: Option<Recorder> = None;
    for (recorder, (from, to)) in parts {
        let window = to.at - from.at;
        busiest = busiest.max(to.thread.saturating_sub(from.thread).as_secs_f64() / window.as_secs_f64());
        if let (Some(from), Some(to)) = (from.processes, to.processes) {
            readings = Some((from, to, window));
        }
        match &mut all {
            None => all = Some(recorder),
            Some(all) => all.merge(&recorder),
        }
    }
    let (all, (from, to, window)) = (all?, readings?);
    let within = all.within();
    let seconds = window.as_secs_f64();
    let error_count: u64 = within.errors.iter().sum();
    let ended = within.answered + error_count;
    let errors = ErrorClass::ALL.into_iter().zip(within.errors).filter(|(_, count)| *count > 0);
    let cores = options.workers.min(cores::allowed().map_or(usize::MAX, |cores| cores.0.len())) as u32;
    let mut result = LoadResult {
        schema: SCHEMA,
        weir: env!("CARGO_PKG_VERSION").to_string(),
        url: options.url(),
        asked: Asked { connections: options.connections, rate: options.schedule.rate(), ..Asked::default() },
        window_s: seconds,
        requests: within.answered,
        requests_per_second: within.answered as f64 / seconds,
        bytes_received: within.bytes_received,
        bytes_sent: within.bytes_sent,
        errors: errors.map(|(class, count)| (class.name().to_string(), count)).collect(),
        error_examples: all
            .examples()
            .iter()
            .map(|(class, text)| ((*class).to_string(), text.clone()))
            .collect(),
        error_ratio: if ended == 0 { 0.0 } else { error_count as f64 / ended as f64 },
        unsent: Unsent { count: all.planned - all.sent, ..Unsent::default() },
        answered_in_all: all.counters.answered,
        response: all.latency.distribution(),
        service: all.service().distribution(),
        connections_opened: all.counters.connections,
        handshakes: all.handshakes(within.handshakes),
        engine: EngineCost {
            cost: cost(to.own_since(&from), window, cores, within.answered),
            ..EngineCost::default()
        },
        servers: accounts.servers((&from, &to), (&threads.0, &threads.1), window, within.answered),
        pacer: options.schedule.rate().map(|_| Pacer {
            planned: all.planned,
            sent: all.sent,
            achieved_ratio: if all.planned == 0 { 0.0 } else { all.sent as f64 / all.planned as f64 },
            lag_p99_us: all.lag.quantile_us(0.99).unwrap_or_else(|| all.lag.max_us()),
            lag_max_us: all.lag.max_us(),
        }),
        limit: if busiest >= LIMIT { Limit::Load } else { Limit::Neither },
        ..LoadResult::default()
    };
    result.validity = validity::of(&result, &accounts.gone(), options.policy.resume > 0.0);
    Some(result)
}

/// A worker that is busy for this share of the window could not have done much more.
const LIMIT: f64 = 0.95;
