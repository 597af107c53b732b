//! What may wait is done beside the workers, which get the result by mail.

use crate::admin::Partial;
use crate::observe::Report;
use crate::observe::journal;
use crate::worker::Control;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use weir_reactor::mailbox::Sender;

/// Writes what all workers have counted so far.
pub(crate) fn tell(workers: &[Sender<Control>]) {
    match gather(workers) {
        Ok(report) => journal::err(format_args!("weir: so far: {}", report.counters)),
        Err(Partial { answered, workers }) => {
            journal::err(format_args!("weir: so far: {answered} of {workers} workers answer"));
        }
    }
}

/// Asks all workers. Errors: some do not reply in time, or have ended.
pub(crate) fn gather(workers: &[Sender<Control>]) -> Result<Report, Partial> {
    let (reply, replies) = channel();
    for worker in workers {
        worker.send(Control::Tell(reply.clone()));
    }
    drop(reply);
    let mut total = Report::default();
    let by = Instant::now() + WITHIN;
    for answered in 0..workers.len() {
        match replies.recv_timeout(by.saturating_duration_since(Instant::now())) {
            Ok(report) => total.add(&report),
            Err(_) => return Err(Partial { answered, workers: workers.len() }),
        }
    }
    Ok(total)
}

/// A turn takes milliseconds.
const WITHIN: Duration = Duration::from_secs(1);
