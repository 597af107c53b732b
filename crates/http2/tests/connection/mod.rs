//! Feeds frames to connections, and compares the resulting events and frames as lines of text.

mod abuse;
mod client;
mod flow;
mod peer;
mod priority;
mod server;
