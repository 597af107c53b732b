//! Signals for every loop.

use crate::mailbox::Sender;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::io::{self, Write as _};

/// How to stop a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The first signal: finish requests in flight, start nothing.
    Drain,
    /// A second signal: stop at once.
    Now,
}

/// Says on stderr how the loops fare.
pub type Tell<M> = fn(&[Sender<M>]);

/// Asks for a reload, without waiting for it.
pub type Reload = Box<dyn Fn() + Send>;

/// Sends a message to every loop for each SIGTERM and SIGINT: [`Stop::Drain`] for the first, [`Stop::Now`] for
/// further ones. SIGUSR1 calls `tell` and SIGHUP `reload`, if there are any. SIGUSR2, and those two otherwise, with which
/// other servers upgrade, reopen a log or reload, are ignored with a message on stderr that says what to do instead.
/// Errors: when the handlers cannot be installed.
pub fn forward_signals<M: From<Stop> + Send + 'static>(
    loops: Vec<Sender<M>>,
    tell: Option<Tell<M>>,
    reload: Option<Reload>,
) -> io::Result<()> {
    let ignored = IGNORED.iter().map(|(signal, _)| *signal);
    let mut signals = Signals::new([SIGTERM, SIGINT].into_iter().chain(ignored))?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut stop = Stop::Drain;
        for signal in signals.forever() {
            if let (SIGUSR1, Some(tell)) = (signal, tell) {
                tell(&loops);
                continue;
            }
            if let (SIGHUP, Some(reload)) = (signal, &reload) {
                reload();
                continue;
            }
            if let Some((_, words)) = IGNORED.iter().find(|(ignored, _)| *ignored == signal) {
                // A closed stderr must not stop the process.
                let _ = io::stderr().write_all(format!("weir: {words}\n").as_bytes());
                continue;
            }
            for sender in &loops {
                sender.send(M::from(stop));
            }
            stop = Stop::Now;
        }
    })?;
    Ok(())
}

const IGNORED: [(i32, &str); 3] = [
    (SIGHUP, "SIGHUP ignored: flags, certificates and keys are only read at startup; restart to change them"),
    (SIGUSR1, "SIGUSR1 ignored: there is no log file to reopen; the log goes to stderr"),
    (
        SIGUSR2,
        "SIGUSR2 ignored: there is no in-place upgrade; stop this process with SIGTERM and start the new one",
    ),
];
