//! Sessions through the crate's public API: settings, handshakes, resumption.

#![allow(clippy::print_stdout)]

mod common;

mod bytes;
mod certificates;
mod choice;
mod client;
mod curves;
mod handshake;
mod masked;
mod names;
mod ocsp;
mod openssl;
mod pem;
mod reconnect;
mod resumption;
mod revocation;
mod settings;
