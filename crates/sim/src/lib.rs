//! Deterministic simulation of the gateway's worker: clients and origins are state machines with faults, driven by one
//! virtual clock and one seed.
//!
//! The worker is the production code; only its `Net` is simulated. So the simulation can produce any order of events,
//! the same seed reproduces the same run, and an hour passes in a millisecond. [`run()`] runs a [`Plan`] to its end and
//! checks these invariants throughout; a run without violations proves them for its plan and seed:
//!
//! 1. **Bytes.** Each body, head and byte after an upgrade arrives complete and unchanged, and nothing else arrives.
//! 2. **Messages.** Clients and origins receive only valid HTTP and valid PROXY headers.
//! 3. **Owner.** A response reaches the client of its request; an origin learns the client's address; a connection that
//!    belongs to one client serves no other.
//! 4. **Once.** A request arrives once. It arrives again only if its method and size allow that, after a reused
//!    connection closed without a byte of a response, or at another server after an error, and retries stay within
//!    their budget. A request that an origin has reported as not processed may arrive again, whatever its method.
//! 5. **Outcome.** Each request ends once: with its response, with an error from the gateway, with a reset stream, or
//!    with a closed connection.
//! 6. **Reason.** Each request that ends early has a reason in the log.
//! 7. **Access line.** Each request that an origin received has one line in the access log, and the line is complete.
//! 8. **Servers.** No request or connection goes to a drained server, and none to a server that is down or ejected
//!    while another one is available.
//! 9. **Limits.** No server has more connections than its limit, and no request waits while a connection is free.
//! 10. **Configuration.** A request follows one configuration from beginning to end, never one that was replaced before
//!     the request.
//! 11. **Leftovers.** At the end no connection, exchange, tunnel, mirror, queue entry or timer remains.
//! 12. **Progress.** The worker never turns without effect, no client waits indefinitely, a drain ends in time, and the
//!     worker never fails or reports an internal error.
//! 13. **Calm.** Without a fault in the plan, every request gets its response at once, and nothing is logged.
//! 14. **Counters.** The counters of requests, responses and early ends agree.
//! 15. **Windows.** No DATA exceeds a window, no stream gets credit for more bytes than its client or origin has sent,
//!     and a connection whose streams have all ended keeps no stream and no uncredited byte.
//! 16. **Neighbours.** A stream whose response the client does not read delays no other stream.
//! 17. **GOAWAY.** A drain sends a GOAWAY in advance before the one that names the last stream, which never grows. A
//!     request up to that stream gets its outcome, and a later or refused one never reaches an origin.
//! 18. **Streams.** No connection to a server has more streams than the server's acknowledged SETTINGS and the service
//!     allow.
//!
//! A violation begins with the number and name of its invariant. [`shrink`] reduces a failing run.

mod arrivals;
mod client;
mod clients;
mod gateway;
mod h2;
mod h2_origin;
mod host;
mod invariant;
mod judge;
mod ledger;
mod message;
mod net;
mod origin;
mod origins;
mod peer;
mod plan;
mod raw;
mod request;
mod response;
mod run;
mod setting;
mod standing;
mod switch;
mod tls;
mod tunnels;
mod world;

pub use arrivals::{Arrivals, Outcomes};
pub use host::Host;
pub(crate) use invariant::Invariant;
pub use plan::{Plan, shrink};
pub use raw::connection;
pub use run::{Report, Steady, run};
pub use tunnels::Tunnels;
