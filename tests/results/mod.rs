//! `weir report`, `weir compare` and `weir history` on stored results: their output parses, incomparable results are
//! rejected with the reason, and exit codes match the outcome.
//!
//! One tiny experiment provides the files; the observations of its runs are then rewritten, so that no test here
//! depends on the machine's load. Those of two levels and of a study are run.

mod commands;
mod formats;
mod levels;
mod stored;
mod studies;
