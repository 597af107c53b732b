//! The HTTP pass-through gateway: listeners, exchanges, pools, upstreams.
//!
//! One worker per core owns everything a request touches, so nothing is shared or locked on its path:
//! `socket -> [TLS] -> head -> framing decided once -> pool (or dial) -> [TLS] -> upstream`, and back. Both directions
//! stream, with back-pressure from the receiving side to the sending side.

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
