//! Deadlines: timeouts of waits, and limits on bodies. Exchanges and connections store them.

mod bodies;
mod client_wait;
mod rate_meter;
mod server_wait;

pub(crate) use bodies::{BodyDeadlines, BodyProgress, Limit};
pub(crate) use client_wait::{Cause, Wait, deadline_of, nearest};
pub(crate) use server_wait::ServerWait;
