//! The allocator of glibc, set up so that a large configuration that is gone leaves the process as small as before. With another C
//! library nothing happens.

#[cfg(target_env = "gnu")]
mod glibc;
#[cfg(target_env = "gnu")]
pub use glibc::{return_early, trim};

/// Does nothing.
#[cfg(not(target_env = "gnu"))]
pub fn return_early() {}

/// Does nothing.
#[cfg(not(target_env = "gnu"))]
pub fn trim() {}
