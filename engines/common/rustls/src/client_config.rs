//! The client's configuration.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::{Resumption as Sessions, Tls12Resumption};
use weir_engine::{Connection, Error, Resumption};

use crate::client_store::ClientStore;
use crate::{fragment, generation};

/// A client that offers exactly what the scenario specifies.
pub(crate) fn client(crypto: &generation::Crypto, connection: &Connection) -> Result<ClientConfig, Error> {
    let mut config = generation::client(crypto, connection)?;
    config.resumption = sessions(connection);
    config.max_fragment_size = fragment(connection);
    Ok(config)
}

/// Without resumption nothing is stored, but a client must still ask for tickets.
fn sessions(connection: &Connection) -> Sessions {
    match (connection.resumption, connection.tickets) {
        (Resumption::None, 0) => Sessions::disabled(),
        (Resumption::None, _) => Sessions::store(Arc::new(ClientStore::forgetting())),
        (Resumption::Id, _) => {
            Sessions::store(Arc::new(ClientStore::keeping())).tls12_resumption(Tls12Resumption::SessionIdOnly)
        }
        (Resumption::Ticket | Resumption::Psk, _) => Sessions::store(Arc::new(ClientStore::keeping())),
    }
}
