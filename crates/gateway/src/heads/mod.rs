//! Heads as the gateway writes them: those that it passes on, and those of its own responses.

pub(crate) mod date;
mod elements;
pub(crate) mod forwarded;
pub(crate) mod hops;
pub(crate) mod ids;
pub(crate) mod imitations;
pub(crate) mod origin;
pub(crate) mod own;
pub(crate) mod rewrite;
