//! `weir probe` against servers whose settings are known: our own origin, OpenSSL, nginx and HAProxy.

#![allow(clippy::print_stdout)]

#[path = "../common/mod.rs"]
mod common;

mod openssl;
mod own;
mod proxies;
mod report;
mod servers;
