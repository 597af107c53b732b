//! SIGINT and SIGTERM to a run: the first ends it early, with what was measured; the second ends it at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::mpsc::{Receiver, channel};

/// What [`crate::run`] listens to; from now on the signals send to it.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn stop_on_signals() -> io::Result<Receiver<()>> {
    let (sender, receiver) = channel();
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut told = false;
        for signal in signals.forever() {
            if told {
                // As a shell counts the end by a signal.
                std::process::exit(128 + signal);
            }
            told = true;
            // The run may be over already.
            let _ = sender.send(());
        }
    })?;
    Ok(receiver)
}
