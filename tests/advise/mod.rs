//! `weir advise` against services in Go, Python and Node.js that nobody here configured for it: each fault is named first
//! or second, and a well-configured service has none.

mod faults;
mod flags;
mod services;
mod sessions;
