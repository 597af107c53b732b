//! aws-lc-rs's primitives and AWS-LC's facts.

mod api;
mod facts;
#[cfg_attr(not(feature = "ml-kem"), path = "../src/no_hybrid.rs")]
mod hybrid;
#[path = "../src/operations.rs"]
mod operations;

pub use facts::facts;
pub use operations::operation;
