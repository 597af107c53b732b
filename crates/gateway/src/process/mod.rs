//! A gateway process from start to exit: sockets, worker threads, signals, reload, upgrade, supervisor.
//!
//! [`serve`] prepares everything and waits at the [`StartBarrier`]; [`startup`] takes over from an old process, if
//! there is one, and opens the barrier. Then the threads of `reload`, `watch` and the admin address change the workers'
//! configuration through the [`ActiveConfig`]. `upgrade` passes the sockets to a new process, and `shutdown` stops the
//! workers together.

mod active_config;
mod admin_listener;
mod certificates;
mod config_status;
mod endpoints;
mod error;
mod inherited;
mod notify;
mod reload;
mod reports;
mod serve;
mod shutdown;
mod sockets;
mod start_barrier;
mod startup;
mod upgrade;
mod watch;

pub(crate) use active_config::ActiveConfig;
pub(crate) use admin_listener::{AdminListener, Counted, Next};
pub(crate) use certificates::{CertificateChange, CertificateEdit};
pub(crate) use config_status::{ConfigStatus, Current, Reloads};
pub(crate) use endpoints::{Edit, EndpointChange, Refusal};
pub use error::GatewayError;
pub use inherited::Inherited;
pub use reload::Again;
pub(crate) use reload::{Ask, Outcome as ReloadOutcome};
pub(crate) use reports::{Partial, gather, gather_service};
pub use serve::{relay, serve};
pub(crate) use start_barrier::StartBarrier;
pub(crate) use upgrade::{Outcome as UpgradeOutcome, Upgrades};
pub(crate) use watch::SecretsFile;
