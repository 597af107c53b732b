//! Whole exchanges with the h2 crate as an oracle, in both roles: each side reads what the other side wrote.

mod message;
mod ours;
mod pipe;
mod theirs;
mod theirs_client;
mod theirs_server;
