//! Sessions as their users see them: settings, handshakes, resumption.

#![allow(clippy::print_stdout)]

mod common;

mod bytes;
mod client;
mod handshake;
mod names;
mod openssl;
mod reconnect;
mod pem;
mod resumption;
mod settings;
