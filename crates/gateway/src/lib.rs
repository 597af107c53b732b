//! The HTTP pass-through gateway: listeners, exchanges, pools, upstreams.
//!
//! One worker per core owns its connections and exchanges. A request passes through one worker only:
//! `socket -> [TLS] -> head -> framing decided once -> pool (or dial) -> [TLS] -> upstream`, and back. Both directions
//! stream, with back-pressure from the receiving side to the sending side. Workers share the state of limits, such as
//! the token buckets of a route's `rate`; a request that no shared limit concerns takes no lock.
//!
//! A client's connection (`downstream`), a request with its response (`exchange`) and a connection to a server
//! (`upstream`) refer to each other only by key. A `worker` performs each step that involves more than one of them.
//! `process` starts the workers, reloads their configuration, and upgrades the program. `config` contains values
//! without state, and `limits` the state of the limits on clients and servers.

pub mod harness;

mod admin;
mod config;
mod deadlines;
mod downstream;
mod drain;
mod exchange;
mod grpc;
mod h2;
mod hash;
mod heads;
mod health;
mod keys;
mod limits;
mod log_fields;
mod mirror;
mod network;
mod observe;
mod plan;
mod process;
mod proxy;
mod reason;
mod resolve;
mod route;
mod text;
mod tunnel;
mod upstream;
mod variables;
mod worker;
mod worker_latencies;

pub use config::document::{self, Config, Timeouts};
pub use config::{
    Checked, Fault, Finding, Findings, Location, Network, PathPattern, Severity, parse, read, read_after,
    schema,
};
pub use observe::{Counters, ROWS, Row, ServerReport, Source, State};
pub use process::{Again, GatewayError, Inherited, relay, serve};
pub use reason::Reason;
