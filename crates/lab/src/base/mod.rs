//! What every room may use: errors, and small helpers that know nothing of measuring.

pub(crate) mod cache;
pub(crate) mod duration;
pub mod error;
pub(crate) mod files;
pub(crate) mod hash;
pub(crate) mod leaves;
