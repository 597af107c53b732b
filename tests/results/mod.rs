//! `weir report`, `weir compare` and `weir history` on stored results: their output parses, incomparable results are
//! rejected with the reason, and exit codes match the outcome.
//!
//! One tiny experiment provides the files; the observations of its runs are then rewritten, so that no test here
//! depends on the machine's load. That of two levels runs its own.

mod commands;
mod formats;
mod levels;
mod stored;
