//! Writes the errors that pingora logs to stderr, which the lab stores. Nothing else is logged.

use log::{LevelFilter, Log, Metadata, Record, SetLoggerError};

struct Stderr;

/// Logs errors to stderr from now on; fails if a logger is already set.
pub fn to_stderr() -> Result<(), SetLoggerError> {
    log::set_logger(&Stderr)?;
    log::set_max_level(LevelFilter::Error);
    Ok(())
}

impl Log for Stderr {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        eprintln!("{}: {}", record.target(), record.args());
    }

    fn flush(&self) {}
}
