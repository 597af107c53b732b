//! Signals: a thread receives them and sends a message to every loop.

use crate::mailbox::Sender;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::io::{self, Write as _};

/// The way in which a worker stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The first signal: finish requests in flight, start no new ones.
    Drain,
    /// A second signal: stop immediately.
    Now,
}

/// Optional handlers. Without a handler, its signal (SIGUSR1, SIGHUP or SIGUSR2) only prints a message on stderr that
/// names the alternative.
pub struct Handlers<M> {
    /// SIGUSR1: prints the loops' state to stderr.
    pub tell: Option<fn(&[Sender<M>])>,
    /// SIGHUP: requests a reload without waiting for it.
    pub reload: Option<Box<dyn Fn() + Send>>,
    /// SIGUSR2: requests an upgrade of the program without waiting for it.
    pub upgrade: Option<Box<dyn Fn() + Send>>,
    /// SIGTERM and SIGINT: called before the loops receive their message.
    pub stopping: Option<Box<dyn Fn(Stop) + Send>>,
}

impl<M> Default for Handlers<M> {
    fn default() -> Self {
        Self { tell: None, reload: None, upgrade: None, stopping: None }
    }
}

/// Sends a message to every loop for each SIGTERM and SIGINT: [`Stop::Drain`] for the first, [`Stop::Now`] for later
/// ones. Passes SIGUSR1, SIGHUP and SIGUSR2 to `handlers`; other servers use these signals to reopen a log, reload or
/// upgrade. Fails if the signal handlers cannot be installed.
pub fn forward_signals<M: From<Stop> + Send + 'static>(
    loops: Vec<Sender<M>>,
    handlers: Handlers<M>,
) -> io::Result<()> {
    let others = IGNORED.iter().map(|(signal, _)| *signal);
    let mut signals = Signals::new([SIGTERM, SIGINT].into_iter().chain(others))?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let Handlers { tell, reload, upgrade, stopping } = handlers;
        let mut stop = Stop::Drain;
        for signal in signals.forever() {
            match (signal, tell, &reload, &upgrade) {
                (SIGUSR1, Some(tell), ..) => tell(&loops),
                (SIGHUP, _, Some(ask), _) | (SIGUSR2, _, _, Some(ask)) => ask(),
                (SIGUSR1 | SIGHUP | SIGUSR2, ..) => ignore(signal),
                _ => {
                    if let Some(stopping) = &stopping {
                        stopping(stop);
                    }
                    for sender in &loops {
                        sender.send(M::from(stop));
                    }
                    stop = Stop::Now;
                }
            }
        }
    })?;
    Ok(())
}

fn ignore(signal: i32) {
    if let Some((_, words)) = IGNORED.iter().find(|(ignored, _)| *ignored == signal) {
        // A closed stderr must not stop the process.
        let _ = io::stderr().write_all(format!("weir: {words}\n").as_bytes());
    }
}

const IGNORED: [(i32, &str); 3] = [
    (SIGHUP, "SIGHUP ignored: flags, certificates and keys are only read at startup; restart to change them"),
    (SIGUSR1, "SIGUSR1 ignored: there is no log file to reopen; the log goes to stderr"),
    (
        SIGUSR2,
        "SIGUSR2 ignored: there is no in-place upgrade; stop this process with SIGTERM and start the new one",
    ),
];
