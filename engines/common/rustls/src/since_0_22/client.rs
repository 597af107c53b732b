//! The client's configuration.

use std::sync::Arc;

use rustls::client::{Resumption as Sessions, Tls12Resumption, WebPkiServerVerifier};
use rustls::{ClientConfig, RootCertStore};
use weir_engine::{Connection, Error, Resumption, pem};

use super::client_store::ClientStore;
use super::provider::{Crypto, version};
use super::verifier::Verifier;
use crate::fragment;

/// A client that offers what the scenario asks for and nothing else.
pub(crate) fn client(crypto: &Crypto, connection: &Connection) -> Result<ClientConfig, Error> {
    let provider = Arc::new(crypto.narrowed(connection)?);
    let mut roots = RootCertStore::empty();
    for root in pem::certificates("ca", &connection.ca)? {
        roots.add(root.into()).map_err(|error| Error::scenario(format!("ca: a root is allowed: {error}")))?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| Error::stack("verifier", error))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version(connection)])
        .map_err(|error| Error::stack("client", error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier(verifier)))
        .with_no_client_auth();
    config.resumption = sessions(connection);
    config.max_fragment_size = fragment(connection);
    Ok(config)
}

/// Without resumption nothing is kept; but a server that is to send tickets must be asked for them.
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
