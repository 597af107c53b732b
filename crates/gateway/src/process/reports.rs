//! Collects the reports of all workers by message.

use crate::observe::Report;
use crate::observe::journal;
use crate::worker::Control;
use std::iter;
use std::sync::Arc;
use std::sync::mpsc::{self, channel};
use std::time::{Duration, Instant};
use weir_reactor::mailbox::Sender;

pub(crate) fn print(workers: &[Sender<Control>]) {
    match gather(workers) {
        Ok(report) => journal::err(format_args!("weir: so far: {}", report.counters)),
        Err(Partial { responded, workers }) => {
            journal::err(format_args!("weir: so far: {responded} of {workers} workers responded"));
        }
    }
}

/// The error of [`gather`]: only some workers responded in time.
#[derive(Debug)]
pub(crate) struct Partial {
    pub responded: usize,
    pub workers: usize,
}

/// Requests the reports of all workers, and adds them up. Errors: some workers did not respond in time, or have exited.
pub(crate) fn gather(workers: &[Sender<Control>]) -> Result<Report, Partial> {
    ask(workers, Control::Tell)
}

/// As [`gather`], for the servers of one service alone: a worker's whole report can take milliseconds.
pub(crate) fn gather_service(workers: &[Sender<Control>], service: &str) -> Result<Report, Partial> {
    let service: Arc<str> = service.into();
    ask(workers, |reply| Control::TellService(Arc::clone(&service), reply))
}

fn ask(
    workers: &[Sender<Control>],
    question: impl Fn(mpsc::Sender<Report>) -> Control,
) -> Result<Report, Partial> {
    let (mut total, mut responded) = (Report::default(), 0);
    for report in replies(workers, question) {
        total.add(&report);
        responded += 1;
    }
    if responded == workers.len() { Ok(total) } else { Err(Partial { responded, workers: workers.len() }) }
}

/// Waits until all workers have handled their messages, except workers that do not respond in time, or have exited.
pub(crate) fn confirm(workers: &[Sender<Control>]) {
    replies(workers, Control::Confirm).for_each(drop);
}

/// Sends a request to all workers. Yields the replies that arrive in time.
fn replies<T>(
    workers: &[Sender<Control>],
    question: impl Fn(mpsc::Sender<T>) -> Control,
) -> impl Iterator<Item = T> {
    let (reply, replies) = channel();
    for worker in workers {
        worker.send(question(reply.clone()));
    }
    drop(reply);
    let by = Instant::now() + WITHIN;
    let next = move || replies.recv_timeout(by.saturating_duration_since(Instant::now())).ok();
    iter::from_fn(next).take(workers.len())
}

/// The timeout for replies. A worker's turn takes only milliseconds.
const WITHIN: Duration = Duration::from_secs(1);
