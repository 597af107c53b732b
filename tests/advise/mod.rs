//! `weir advise` against services in Go, Java, Python, Node.js and nginx that nobody here configured for it: each fault is
//! named first or second, and a well-configured service has none.

mod faults;
mod flags;
mod planted;
mod services;
mod sessions;
