//! Threads that follow the outside world while the process serves: the wall clock, the addresses of servers' names, files of
//! ticket secrets.

pub(super) mod clock;
mod debounce;
mod names;
mod secrets;

pub(super) use debounce::Debounce;
pub(super) use names::NameWatch;
pub(crate) use secrets::SecretsFile;
pub(super) use secrets::SecretsWatch;
