//! Facts from probes, loads and profiles, and from the service's process, connections and configuration.

mod accepted;
mod configured;
mod loaded;
mod paths;
mod probed;
mod process;
mod profiled;
mod returning;
mod sockets;
mod upstream;
mod visit;
mod visited;

pub use process::Process;

pub(crate) use accepted::Accepted;
pub(crate) use process::{Activity, is_at_work};
pub(crate) use returning::{Clients, Returned};
pub(crate) use upstream::{Counted, Rounds, Upstream, Watched};
pub(crate) use visit::Visitor;
pub(crate) use visited::{Visited, requests_in_turn};
