//! Connections: frames in, events and frames out, as lines of text.

mod abuse;
mod client;
mod flow;
mod peer;
mod priority;
mod server;
