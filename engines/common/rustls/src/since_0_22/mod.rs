//! rustls since 0.22: the cryptography is a provider, and keys and certificates have types of their own.

mod client;
mod client_store;
mod provider;
mod server;
mod verifier;

use rustls_pki_types::ServerName;
use weir_engine::Error;

pub(crate) use client::client;
pub use provider::Crypto;
pub(crate) use server::server;

/// The name of a server, as rustls takes it.
pub(crate) type Name = ServerName<'static>;

/// The one name that certificates have.
pub(crate) fn name() -> Result<Name, Error> {
    ServerName::try_from(crate::NAME).map_err(|error| Error::runner("name", error))
}
