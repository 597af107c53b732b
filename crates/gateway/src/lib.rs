//! The HTTP pass-through gateway: listeners, exchanges, pools, upstreams.
//!
//! One worker per core owns everything a request touches, so nothing is shared or locked on its path:
//! `socket -> [TLS] -> head -> framing decided once -> pool (or dial) -> [TLS] -> upstream`, and back. Both directions
//! stream, with back-pressure from the receiving side to the sending side.
//!
//! A client's connection (`downstream`), a request with its answer (`exchange`) and a connection to a server
//! (`upstream`) are different things, which know each other by key alone. What happens across them, a `worker`
//! carries out.

pub mod bare;
mod clock;

mod admin;
mod config;
mod control;
mod downstream;
mod drain;
mod ending;
mod exchange;
mod gate;
mod heads;
mod health;
mod in_force;
mod inherited;
mod keys;
mod limits;
mod mirror;
mod names;
mod notify;
mod observe;
mod opening;
mod plan;
mod reason;
mod reload;
mod remedy;
mod route;
mod secrets;
mod serve;
mod settled;
mod sockets;
mod standing;
mod text;
mod tunnel;
mod upgrade;
mod upstream;
mod variables;
mod worker;

pub use config::document::{self, Config, Timeouts};
pub use config::{
    Checked, Fault, Finding, Findings, Location, Network, PathPattern, Severity, parse, read, schema,
};
pub use inherited::Inherited;
pub use observe::Counters;
pub use reason::Reason;
pub use reload::Again;
pub use serve::{GatewayError, relay, serve};
