//! `weir report`, `weir compare` and `weir history` on stored results: their output parses, incomparable results are
//! rejected with the reason, and exit codes match the outcome.
//!
//! One tiny experiment provides the files. The tests then replace its measurements, so that they do not depend on the
//! machine's load. The tests of two levels and of a study run their own experiments.

mod commands;
mod formats;
mod levels;
mod stored;
mod studies;
