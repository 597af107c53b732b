//! SIGINT and SIGTERM: the first ends a run early with a partial result; the second kills it.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::mpsc::{Receiver, channel};

/// The channel that [`crate::run`] watches; the signals now send to it.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn stop_on_signals() -> io::Result<Receiver<()>> {
    let (sender, receiver) = channel();
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut stopping = false;
        for signal in signals.forever() {
            if stopping {
                // The shell's exit status for a signal.
                std::process::exit(128 + signal);
            }
            stopping = true;
            // The run may already be over.
            let _ = sender.send(());
        }
    })?;
    Ok(receiver)
}
