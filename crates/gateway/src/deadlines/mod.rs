//! The deadlines for clients: timeouts of waits, and limits on bodies. Exchanges and client connections own them.

mod bodies;
mod rate_meter;
mod wait;

pub(crate) use bodies::{BodyDeadlines, BodyProgress, Limit};
pub(crate) use wait::{Cause, Wait, deadline_of, nearest};
