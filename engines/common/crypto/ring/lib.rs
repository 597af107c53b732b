//! ring's primitives.

mod api;
#[path = "../src/no_hybrid.rs"]
mod hybrid;
#[path = "../src/operations.rs"]
mod operations;

pub use operations::operation;
