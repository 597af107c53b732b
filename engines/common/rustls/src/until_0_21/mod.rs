//! rustls until 0.21: ring is built in, and certificates, keys and names are types of rustls's own.

mod client;
mod client_store;
mod server;
mod verifier;

use rustls::{ALL_CIPHER_SUITES, ALL_KX_GROUPS, SupportedCipherSuite, SupportedKxGroup};
use rustls::{NamedGroup, ServerName, SupportedProtocolVersion, version};
use weir_engine::{Connection, Error, Group, Version};

pub(crate) use client::client;
pub(crate) use server::server;

/// What rustls is to calculate with: there is no choice.
pub struct Crypto;

/// The name of a server, as rustls takes it.
pub(crate) type Name = ServerName;

/// The one name that certificates have.
pub(crate) fn name() -> Result<Name, Error> {
    ServerName::try_from(crate::NAME).map_err(|error| Error::runner("name", error))
}

/// The version, as rustls takes it.
fn version(connection: &Connection) -> &'static SupportedProtocolVersion {
    match connection.version {
        Version::Tls12 => &version::TLS12,
        Version::Tls13 => &version::TLS13,
    }
}

/// The suite, as rustls takes it.
fn suite(connection: &Connection) -> Result<SupportedCipherSuite, Error> {
    let wanted = connection.suite_code();
    let suite = ALL_CIPHER_SUITES.iter().find(|suite| suite.suite().get_u16() == wanted);
    suite.copied().ok_or_else(|| Error::scenario(format!("suite: this stack has none of code {wanted:#06x}")))
}

/// The group, as rustls takes it.
fn group(connection: &Connection) -> Result<&'static SupportedKxGroup, Error> {
    let name = match connection.group {
        Group::X25519 => NamedGroup::X25519,
        Group::P256 => NamedGroup::secp256r1,
        Group::X25519MlKem768 => {
            return Err(Error::scenario("group `x25519mlkem768`: this stack can `x25519`, `p256`"));
        }
    };
    let group = ALL_KX_GROUPS.iter().copied().find(|group| group.name == name);
    group.ok_or_else(|| Error::scenario(format!("group: this stack has no {name:?}")))
}
