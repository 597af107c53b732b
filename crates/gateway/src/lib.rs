//! The HTTP pass-through gateway: listeners, exchanges, pools, upstreams.
//!
//! One worker per core owns all that a request touches, so nothing is shared and nothing is locked on its way:
//! `socket -> [TLS] -> head -> framing decided once -> pool (or dial) -> [TLS] -> upstream`, and back. Both directions
//! stream; what the receiving side does not take stops the reading from the sending side.

mod answer;
mod client;
mod core;
mod deadline;
mod ending;
mod exchange;
mod lines;
mod log;
mod reason;
mod relay;
mod request;
mod response;
mod rewrite;
mod serve;
mod settings;
mod upstream;
mod worker;

pub use reason::Reason;
pub use relay::relay;
pub use serve::{GatewayError, serve};
pub use settings::{Settings, Timeouts, UpstreamTls};
