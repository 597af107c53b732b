//! HTTP/2 through the crate's public API.

mod connection;
mod frames;
mod heads;
mod hpack;
mod settings;
