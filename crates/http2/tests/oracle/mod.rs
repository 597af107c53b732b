//! Whole exchanges with another implementation, in both roles: each side reads what the other wrote.

mod message;
mod ours;
mod pipe;
mod theirs;
mod theirs_client;
mod theirs_server;
