//! What the engine and the servers cost: CPU at the edges of the window, and who was the limit.
//!
//! Three kinds of servers are accounted:
//!
//! - **A process** with its descendants, by their CPU clocks, which count nanoseconds, read at the edges. What
//!   descendants used that came later is told by a look at the family near the edges; of those that ended in between,
//!   only their parents tell, in ticks of 10 ms. The looks tell memory, switches, page faults and open files as well.
//! - **A cgroup**, by its own account, read at the edges.
//! - **A command**'s numbers, for other machines. It is run near the edges, never on a worker's thread, its figure is
//!   taken for the middle of its run, and the CPU between both is scaled to the length of the window.

mod accounts;
mod cgroup;
mod clock;
mod command;
mod counters;
mod edges;
mod family;
mod process;
mod server;
mod since;
mod span;

pub(crate) use accounts::{Accounts, Look, Work};
pub(crate) use edges::Edges;
pub(crate) use span::Span;

#[cfg(test)]
mod tests;
