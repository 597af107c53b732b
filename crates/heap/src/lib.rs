//! Tunes glibc's allocator to return the memory of a freed configuration to the system. Does nothing with another C
//! library.

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
