//! rustls since 0.22: the cryptography is a provider, and keys and certificates have types of their own.

mod provider;
mod verifier;

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::server::ProducesTickets;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier};
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use weir_engine::{Connection, Error, pem};

use crate::restricted::Restricted;
use crate::version;
pub use provider::Crypto;
use verifier::Verifier;

/// A server name in rustls's type.
pub(crate) type Name = ServerName<'static>;

/// The type stored by a client's store.
pub(crate) type GivenName<'a> = ServerName<'static>;

/// The type looked up in a client's store.
pub(crate) type KnownName<'a> = ServerName<'a>;

/// A client with one suite, group and version, which verifies as rustls does.
pub(crate) fn client(crypto: &Crypto, connection: &Connection) -> Result<ClientConfig, Error> {
    let provider = Arc::new(crypto.narrowed(connection)?);
    let mut roots = RootCertStore::empty();
    for root in pem::certificates("ca", &connection.ca)? {
        roots
            .add(root.into())
            .map_err(|error| Error::scenario(format!("ca: {error}: expected a root certificate")))?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| Error::stack("verifier", error))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version(connection)])
        .map_err(|error| Error::stack("client", error))?;
    let verified = builder.dangerous().with_custom_certificate_verifier(Arc::new(Verifier(verifier)));
    Ok(verified.with_no_client_auth())
}

/// The parts of a server with one suite, group and version.
pub(crate) fn server(
    crypto: &Crypto,
    connection: &Connection,
) -> Result<ConfigBuilder<ServerConfig, WantsVerifier>, Error> {
    ServerConfig::builder_with_provider(Arc::new(crypto.narrowed(connection)?))
        .with_protocol_versions(&[version(connection)])
        .map_err(|error| Error::stack("server", error))
}

/// The server's chain and its key.
pub(crate) fn certified(crypto: &Crypto, connection: &Connection) -> Result<CertifiedKey, Error> {
    let key = PrivatePkcs8KeyDer::from(pem::private_key(&connection.key)?).into();
    let key = (crypto.provider)()
        .key_provider
        .load_private_key(key)
        .map_err(|error| Error::scenario(format!("key: {error}: expected a key supported by the library")))?;
    let chain =
        pem::certificates("chain", &connection.chain)?.into_iter().map(CertificateDer::from).collect();
    Ok(CertifiedKey::new(chain, Arc::new(Restricted::new(key, connection.certificate)?)))
}

/// The ticket keys.
pub(crate) fn ticketer(crypto: &Crypto) -> Result<Arc<dyn ProducesTickets>, Error> {
    (crypto.ticketer)().map_err(|error| Error::stack("ticket keys", error))
}
