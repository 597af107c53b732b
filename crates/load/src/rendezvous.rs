//! A synchronised start of several engines: each reports that its connections are open, and all get the same start.

use crate::accounting::since_boot;
use crate::error::LoadError;
use std::io::{self, BufRead as _, Write as _};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Printed by an engine once its connections are open.
pub const OPEN: &str = "open";

/// A requested start that has not arrived.
pub(crate) struct Rendezvous(Receiver<io::Result<String>>);

impl Rendezvous {
    /// Reports that the connections are open, and waits for the start on standard input.
    pub(crate) fn ask() -> Result<Self, LoadError> {
        writeln!(io::stderr(), "{OPEN}")?;
        let (sender, receiver) = channel();
        std::thread::Builder::new().name("rendezvous".into()).spawn(move || {
            let mut line = String::new();
            // A run that was stopped meanwhile no longer listens.
            let _ = sender.send(io::stdin().lock().read_line(&mut line).map(|_| line));
        })?;
        Ok(Self(receiver))
    }

    /// The start, once it is known.
    pub(crate) fn start(&self) -> Result<Option<Instant>, LoadError> {
        match self.0.try_recv() {
            Ok(line) => at(line?.trim()).map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// The instant this many seconds after boot; a time in the past is now.
fn at(text: &str) -> Result<Instant, LoadError> {
    let asked = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let asked = asked.ok_or_else(|| LoadError::Rendezvous(text.to_owned()))?;
    let now = Instant::now();
    let up = since_boot(now).ok_or_else(|| io::Error::other("cannot read the time since boot"))?;
    Ok(now + asked.saturating_sub(up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_in_seconds_since_boot() {
        let up = since_boot(Instant::now()).expect("a clock");
        let start = at(&(up + Duration::from_secs(60)).as_secs_f64().to_string()).expect("a time");
        let left = start.saturating_duration_since(Instant::now());
        assert!(left > Duration::from_secs(50) && left <= Duration::from_secs(60), "{left:?}");
        assert!(at("1").expect("a time") <= Instant::now(), "over already");
        for text in ["", "soon", "-1", "inf", "NaN"] {
            assert!(matches!(at(text), Err(LoadError::Rendezvous(said)) if said == text), "{text}");
        }
    }
}
