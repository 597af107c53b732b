//! Forwards a request and its response between two connections: moves the bytes, as `exchange` decides. The worker
//! dials, pools and removes the connections. The PROXY protocol is in `worker/preface.rs`.

mod client_request;
mod flow;
mod server_response;
mod template_values;

pub(crate) use client_request::{Taken, send_request, upgrade};
pub(crate) use flow::Flow;
pub(crate) use server_response::{Completed, Next, note_recovered, rules_of};
pub(crate) use template_values::values;
