//! Deadlines: timeouts of waits, and limits on bodies. Exchanges and connections store them; `worker/timeouts.rs`
//! handles the timers that fire.
//!
//! | timer of | its current wait | set in |
//! | --- | --- | --- |
//! | a client's connection | `downstream/current_wait.rs` | `worker/settle.rs` |
//! | a client that reads the last bytes of a response | the same | `worker/timers.rs` |
//! | an exchange | `exchange/timing.rs` | `worker/timers.rs` |
//! | a server's connection | `upstream/current_wait.rs` | `worker/settle.rs` |

mod bodies;
mod client_wait;
mod rate_meter;
mod server_wait;

pub(crate) use bodies::{BodyDeadlines, BodyProgress, Limit};
pub(crate) use client_wait::{Cause, Wait, deadline_of, nearest};
pub(crate) use server_wait::ServerWait;
