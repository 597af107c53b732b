//! Forwarding of a request and its response between two connections: decisions and bytes. The worker dials, pools and
//! removes the connections.

mod flow;
mod respond;
mod send;
mod values;

pub(crate) use flow::Flow;
pub(crate) use respond::{Completed, Next, note_recovered, rules_of};
pub(crate) use send::{Taken, send_request, upgrade};
pub(crate) use values::values;
