//! One run: open, warm up, measure, drain, add up.

use crate::accounting::Accounts;
use crate::conductor::{Conductor, Progress, Shared};
use crate::error::LoadError;
use crate::h2::Http2;
use crate::options::{HttpVersion, Options};
use crate::record::seconds::Outbox;
use crate::record::sum;
use crate::result::LoadResult;
use crate::route::destination;
use crate::route::ports::{self, Kernel};
use crate::share::{Share, shares};
use crate::team::{Draft, Run};
use crate::usage::Usage;
use crate::worker::Http1;
use std::io;
use std::sync::PoisonError;
use std::sync::mpsc::Receiver;
use std::thread;
use weir_reactor::{cores, run_workers};

/// Runs the engine. `watch` is called about once per second, from the calling thread. A message on `stop` ends the run
/// early; the result covers what was measured until then.
///
/// # Errors
/// When it cannot run at all. A server that refuses, fails or responds wrongly is a result.
pub fn run(
    options: &Options,
    stop: &Receiver<()>,
    mut watch: impl FnMut(&Progress),
) -> Result<LoadResult, LoadError> {
    options.check()?;
    let http1 = Draft::<Http1>::of(options, HttpVersion::Http1)?;
    let http2 = Draft::<Http2>::of(options, HttpVersion::Http2)?;
    let addresses = destination::resolve(options)?;
    let budget = ports::budget(options, &addresses[0], &Kernel::read())?;
    let accounts = Accounts::open(&options.servers)?;
    if let Some(cores) = &options.cores {
        check_cores(cores)?;
    }
    let http1 = http1.map(|draft| draft.tried(options, &addresses)).transpose()?;
    let http2 = http2.map(|draft| draft.tried(options, &addresses)).transpose()?;

    let shares = shares(options);
    let outboxes = (0..options.workers).map(|_| Outbox::default()).collect();
    let shared = Shared { outboxes, ..Shared::default() };
    let run = Run { options, accounts: &accounts, shared: &shared };
    let run_one = |index: usize, share: &Share| -> Result<(), io::Error> {
        let ended = match share.version {
            HttpVersion::Http1 => http1.as_ref().map(|team| team.work(&run, index, share)),
            HttpVersion::Http2 => http2.as_ref().map(|team| team.work(&run, index, share)),
        };
        // A version with a share has a team.
        ended.unwrap_or(Ok(()))
    };
    let conducted = thread::scope(|scope| -> Result<_, LoadError> {
        let workers = scope.spawn(|| run_workers(&shares, options.cores.as_ref(), run_one));
        // The live view runs on this thread, not between the workers' requests.
        let _kept_off = options.cores.as_ref().and_then(cores::keep_off);
        let conductor = Conductor { shared: &shared, accounts: &accounts, shares: &shares, options, stop };
        let conducted = conductor.conduct(|| workers.is_finished(), &mut watch);
        workers.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        conducted
    })?;
    let mut parts = shared.parts.into_inner().unwrap_or_else(PoisonError::into_inner);
    parts.sort_by_key(|(_, span)| span.index);
    let sum = conducted.and_then(|conducted| sum::up(options, &shares, &accounts, parts, conducted));
    let mut result = sum.ok_or(LoadError::NoWindow)?;
    let phases = options.phases;
    let load = phases.warmup + phases.settle + phases.window;
    result.warnings.extend(http1.iter().filter_map(|team| team.warning(options)));
    result.warnings.extend(http2.iter().filter_map(|team| team.warning(options)));
    result.warnings.extend(budget.and_then(|budget| budget.warning(result.connections_opened, load)));
    Ok(result)
}

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
