//! Threads that watch external state while the process serves: the wall clock, the addresses of servers' names, files
//! of ticket secrets.

mod addresses;
pub(super) mod clock;
mod debounce;
mod secrets;

pub(super) use addresses::NameWatch;
pub(super) use debounce::Debounce;
pub(crate) use secrets::SecretsFile;
pub(super) use secrets::SecretsWatch;
