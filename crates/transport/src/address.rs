//! Where a connection goes, once its host has been resolved.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a connection goes, once its host has been resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A stream socket in the file system.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
