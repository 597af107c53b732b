//! `weir report`, `weir compare` and `weir history` on stored results: what they write can be read, what does not fit is
//! refused with the reason, and exit codes say what happened.
//!
//! One tiny experiment is run for the form of its files; what its runs saw is then written anew, so that nothing here
//! depends on how busy the machine is.

mod commands;
mod formats;
mod stored;
