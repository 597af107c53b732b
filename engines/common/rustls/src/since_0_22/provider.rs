//! The crypto provider, restricted to the scenario.

use std::sync::Arc;

use rustls::NamedGroup;
use rustls::crypto::CryptoProvider;
use rustls::server::ProducesTickets;
use weir_engine::{Connection, Error, Group, Named, Suite};

use crate::negotiated::code;

/// The crypto backend.
pub struct Crypto {
    /// Creates the full provider.
    pub provider: fn() -> CryptoProvider,
    /// Creates its ticket keys.
    pub ticketer: fn() -> Result<Arc<dyn ProducesTickets>, rustls::Error>,
}

impl Crypto {
    /// The provider with one suite and one group.
    pub(crate) fn narrowed(&self, connection: &Connection) -> Result<CryptoProvider, Error> {
        let mut provider = (self.provider)();
        provider.cipher_suites.retain(|suite| code(suite.suite()) == connection.suite_code());
        if provider.cipher_suites.is_empty() {
            let has = |suite: Suite| {
                let wanted = suite.code(connection.version, connection.certificate);
                (self.provider)().cipher_suites.iter().any(|suite| code(suite.suite()) == wanted)
            };
            return Err(refused("suite", connection.suite, has));
        }
        provider.kx_groups.retain(|group| group.name() == NamedGroup::from(connection.group.code()));
        if provider.kx_groups.is_empty() {
            let has = |group: Group| {
                (self.provider)().kx_groups.iter().any(|one| one.name() == NamedGroup::from(group.code()))
            };
            return Err(refused("group", connection.group, has));
        }
        Ok(provider)
    }
}

fn refused<T: Named>(key: &str, value: T, has: impl Fn(T) -> bool) -> Error {
    let expected = T::all().filter(|one| has(*one)).map(|one| format!("`{}`", one.name()));
    let expected = expected.collect::<Vec<_>>().join(", ");
    Error::scenario(format!("{key} `{}`: expected one of {expected}", value.name()))
}
