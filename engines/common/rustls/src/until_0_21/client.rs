//! The client's configuration.

use std::sync::Arc;

use rustls::client::{Resumption as Sessions, Tls12Resumption, WebPkiVerifier};
use rustls::{Certificate, ClientConfig, RootCertStore};
use weir_engine::{Connection, Error, Resumption, pem};

use super::client_store::ClientStore;
use super::verifier::Verifier;
use super::{Crypto, group, suite, version};
use crate::fragment;

/// A client that offers what the scenario asks for and nothing else.
pub(crate) fn client(_crypto: &Crypto, connection: &Connection) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    for root in pem::certificates("ca", &connection.ca)? {
        roots
            .add(&Certificate(root))
            .map_err(|error| Error::scenario(format!("ca: a root is allowed: {error}")))?;
    }
    let mut config = ClientConfig::builder()
        .with_cipher_suites(&[suite(connection)?])
        .with_kx_groups(&[group(connection)?])
        .with_protocol_versions(&[version(connection)])
        .map_err(|error| Error::stack("client", error))?
        .with_custom_certificate_verifier(Arc::new(Verifier(WebPkiVerifier::new(roots, None))))
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
