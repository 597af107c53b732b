//! The engine, in this process, against servers in this process.

mod accounts;
mod engine;
mod route;
mod schema;
