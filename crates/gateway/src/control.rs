//! What may wait is done beside the workers, which get the result by mail.

use crate::config::{Server, Snapshot};
use crate::observe::Counters;
use crate::observe::journal::{self, Journal};
use crate::worker::Control;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use weir_reactor::mailbox::Sender;
use weir_transport::Endpoint;

/// Resolves the upstream's name again and again, and mails a new snapshot when its address is gone from the answer.
/// An address needs none of this. Errors: when the thread cannot be started.
pub(crate) fn keep_resolving(
    snapshot: Snapshot,
    to: Endpoint,
    workers: Vec<Sender<Control>>,
    journal: Journal,
) -> io::Result<()> {
    if to.is_address() {
        return Ok(());
    }
    thread::Builder::new().name("control".into()).spawn(move || {
        let mut snapshot = snapshot;
        let mut failing = false;
        loop {
            thread::sleep(EVERY);
            let found = to.addresses();
            match &found {
                // The last good answer stays.
                Err(error) if !failing => journal
                    .line(format_args!("weir: --to: {error}; {} stays", snapshot.service.server.address)),
                _ => {}
            }
            failing = found.is_err();
            if let Some(server) = found.ok().and_then(|found| moved(&snapshot.service.server, &found)) {
                let name = &snapshot.service.name;
                journal.line(format_args!("weir: --to: {name} is at {} now", server.address));
                snapshot.service.server = server;
                let shared = Arc::new(snapshot.clone());
                for worker in &workers {
                    worker.send(Control::Adopt(Arc::clone(&shared)));
                }
            }
        }
    })?;
    Ok(())
}

/// The server at its new address, if it is no longer at the one in use. The order of the answers says nothing: name servers
/// turn it around.
fn moved(server: &Server, found: &[SocketAddr]) -> Option<Server> {
    let first = found.first().filter(|_| !found.contains(&server.address))?;
    Some(Server { address: *first, ..server.clone() })
}

/// Writes what all workers have counted so far.
pub(crate) fn tell(workers: &[Sender<Control>]) {
    let (reply, replies) = channel();
    for worker in workers {
        worker.send(Control::Tell(reply.clone()));
    }
    drop(reply);
    let mut total = Counters::default();
    let by = Instant::now() + WITHIN;
    for at in 0..workers.len() {
        match replies.recv_timeout(by.saturating_duration_since(Instant::now())) {
            Ok(counters) => total.add(&counters),
            Err(_) => {
                let count = workers.len();
                return journal::err(format_args!("weir: so far, of {at} of {count} workers: {total}"));
            }
        }
    }
    journal::err(format_args!("weir: so far: {total}"));
}

/// A turn takes milliseconds.
const WITHIN: Duration = Duration::from_secs(1);

/// The system's resolver does not say how long an answer holds; between one second and a minute is usual.
const EVERY: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stays_as_long_as_it_is_among_the_answers() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let server = Server { address: at("192.0.2.1:80"), authority: "a".into() };
        assert_eq!(moved(&server, &[at("192.0.2.2:80"), at("192.0.2.1:80")]), None);
        assert_eq!(moved(&server, &[]), None);
        let now = moved(&server, &[at("192.0.2.3:80"), at("192.0.2.2:80")]).unwrap();
        assert_eq!((now.address, now.authority), (at("192.0.2.3:80"), "a".to_owned()));
    }
}
