//! `weir advise` with independent services in Go, Java, Python, Node.js and nginx: each fault is the first or second
//! finding, and a well-configured service has none.

mod faults;
mod flags;
mod planted;
mod services;
mod sessions;
