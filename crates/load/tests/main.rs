//! The engine, in this process, against servers in this process.

mod accounts;
mod engine;
mod http2;
mod route;
mod schema;
