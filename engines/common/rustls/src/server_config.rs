//! The server's configuration.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{
    ClientHello, NoServerSessionStorage, ProducesTickets, ResolvesServerCert, ServerSessionMemoryCache,
    StoresServerSessions,
};
use rustls::sign::CertifiedKey;
use weir_engine::{Connection, Error, Resumption};

use crate::generation::{self, Crypto};
use crate::{fragment, watched};

/// A server that accepts exactly what the scenario specifies.
pub(crate) fn server(crypto: &Crypto, connection: &Connection) -> Result<ServerConfig, Error> {
    let certified = Arc::new(generation::certified(crypto, connection)?);
    let mut config = generation::server(crypto, connection)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Resolver(certified)));
    config.session_storage = store(connection);
    if connection.tickets > 0 {
        config.ticketer = ticketer(crypto, connection)?;
    }
    config.send_tls13_tickets = connection.tickets as usize;
    config.max_fragment_size = fragment(connection);
    Ok(config)
}

/// Store capacity: more than the threads, so that no session is evicted.
const SESSIONS: usize = 4096;

fn store(connection: &Connection) -> Arc<dyn StoresServerSessions> {
    if connection.resumption != Resumption::Id {
        return Arc::new(NoServerSessionStorage {});
    }
    let store = ServerSessionMemoryCache::new(SESSIONS);
    if connection.locks { Arc::new(watched::Store(store)) } else { store }
}

fn ticketer(crypto: &Crypto, connection: &Connection) -> Result<Arc<dyn ProducesTickets>, Error> {
    let ticketer = generation::ticketer(crypto)?;
    Ok(if connection.locks { Arc::new(watched::Tickets(ticketer)) } else { ticketer })
}

/// Presents the same certificate to every client.
#[cfg_attr(not(feature = "until-0-21"), derive(Debug))]
struct Resolver(Arc<CertifiedKey>);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}
