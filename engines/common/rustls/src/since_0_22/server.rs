//! The server's configuration.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{
    ClientHello, NoServerSessionStorage, ProducesTickets, ResolvesServerCert, ServerSessionMemoryCache,
    StoresServerSessions,
};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use weir_engine::{Connection, Error, Resumption, pem};

use super::provider::{Crypto, version};
use crate::restricted::Restricted;
use crate::{SERVER_SESSIONS, fragment, server_store, tickets};

/// A server that accepts what the scenario asks for and nothing else.
pub(crate) fn server(crypto: &Crypto, connection: &Connection) -> Result<ServerConfig, Error> {
    let provider = crypto.narrowed(connection)?;
    let key = provider
        .key_provider
        .load_private_key(PrivatePkcs8KeyDer::from(pem::private_key(&connection.key)?).into())
        .map_err(|error| Error::scenario(format!("key: one that the library reads is allowed: {error}")))?;
    let key = Restricted::new(key, connection.certificate)?;
    let chain =
        pem::certificates("chain", &connection.chain)?.into_iter().map(CertificateDer::from).collect();
    let certified = CertifiedKey::new(chain, Arc::new(key));
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version(connection)])
        .map_err(|error| Error::stack("server", error))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Resolver(Arc::new(certified))));
    config.session_storage = store(connection);
    if connection.tickets > 0 {
        config.ticketer = ticketer(crypto, connection)?;
    }
    config.send_tls13_tickets = connection.tickets as usize;
    config.max_fragment_size = fragment(connection);
    Ok(config)
}

fn store(connection: &Connection) -> Arc<dyn StoresServerSessions> {
    if connection.resumption != Resumption::Id {
        return Arc::new(NoServerSessionStorage {});
    }
    let store = ServerSessionMemoryCache::new(SERVER_SESSIONS);
    if connection.locks { Arc::new(server_store::Watched(store)) } else { store }
}

fn ticketer(crypto: &Crypto, connection: &Connection) -> Result<Arc<dyn ProducesTickets>, Error> {
    let ticketer = (crypto.ticketer)().map_err(|error| Error::stack("ticket keys", error))?;
    Ok(if connection.locks { Arc::new(tickets::Watched(ticketer)) } else { ticketer })
}

/// Gives everyone the same certificate.
#[derive(Debug)]
struct Resolver(Arc<CertifiedKey>);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}
