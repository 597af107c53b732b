//! SIGINT and SIGTERM to the lab itself: a flag that every wait checks, so that no process is left behind.

use crate::base::error::LabError;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the lab was interrupted.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Makes SIGINT and SIGTERM set the flag.
    pub fn on_signals() -> Result<Self, LabError> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))
                .map_err(|source| LabError::System { action: "installing signal handlers", source })?;
        }
        Ok(interrupt)
    }

    /// Whether a signal came.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the flag, as a signal does.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
