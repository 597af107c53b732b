//! How connections on both sides are kept, shared, ended and given up.

#[path = "../common/mod.rs"]
mod common;

mod ends;
mod given_up;
mod pipelining;
mod pool;
mod scripts;
