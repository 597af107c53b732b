//! aws-lc-rs's primitives, and what AWS-LC says of itself.

mod api;
mod facts;
#[cfg_attr(not(feature = "ml-kem"), path = "../src/no_hybrid.rs")]
mod hybrid;
#[path = "../src/operations.rs"]
mod operations;

pub use facts::facts;
pub use operations::operation;
