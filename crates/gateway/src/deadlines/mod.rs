//! Deadlines: timeouts of waits, and limits on bodies. Exchanges and connections store them.

mod bodies;
mod rate_meter;
mod server_wait;
mod wait;

pub(crate) use bodies::{BodyDeadlines, BodyProgress, Limit};
pub(crate) use server_wait::ServerWait;
pub(crate) use wait::{Cause, Wait, deadline_of, nearest};
