//! rustls until 0.21: ring is built in, and certificates, keys and names are types of rustls's own.

mod verifier;

use std::sync::Arc;

use rustls::client::WebPkiVerifier;
use rustls::server::ProducesTickets;
use rustls::sign::{CertifiedKey, any_supported_type};
use rustls::{ALL_CIPHER_SUITES, ALL_KX_GROUPS, NamedGroup, SupportedCipherSuite, SupportedKxGroup};
use rustls::{Certificate, PrivateKey, RootCertStore, ServerName, Ticketer};
use rustls::{ClientConfig, ConfigBuilder, ConfigSide, ServerConfig, WantsCipherSuites, WantsVerifier};
use weir_engine::{Connection, Error, Named, pem};

use crate::restricted::Restricted;
use crate::version;
use verifier::Verifier;

/// The crypto backend: there is no choice.
pub struct Crypto;

/// A server name in rustls's type.
pub(crate) type Name = ServerName;

/// The type stored by a client's store.
pub(crate) type GivenName<'a> = &'a ServerName;

/// The type looked up in a client's store.
pub(crate) type KnownName<'a> = ServerName;

/// A client with one suite, group and version, which verifies as rustls does.
pub(crate) fn client(_crypto: &Crypto, connection: &Connection) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    for root in pem::certificates("ca", &connection.ca)? {
        roots
            .add(&Certificate(root))
            .map_err(|error| Error::scenario(format!("ca: {error}: expected a root certificate")))?;
    }
    let verifier = Verifier(WebPkiVerifier::new(roots, None));
    let builder = narrowed(ClientConfig::builder(), connection)?;
    Ok(builder.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// The parts of a server with one suite, group and version.
pub(crate) fn server(
    _crypto: &Crypto,
    connection: &Connection,
) -> Result<ConfigBuilder<ServerConfig, WantsVerifier>, Error> {
    narrowed(ServerConfig::builder(), connection)
}

/// The server's chain and its key.
pub(crate) fn certified(_crypto: &Crypto, connection: &Connection) -> Result<CertifiedKey, Error> {
    let key = any_supported_type(&PrivateKey(pem::private_key(&connection.key)?))
        .map_err(|error| Error::scenario(format!("key: {error}: expected a key supported by the library")))?;
    let chain = pem::certificates("chain", &connection.chain)?.into_iter().map(Certificate).collect();
    Ok(CertifiedKey::new(chain, Arc::new(Restricted::new(key, connection.certificate)?)))
}

/// The ticket keys.
pub(crate) fn ticketer(_crypto: &Crypto) -> Result<Arc<dyn ProducesTickets>, Error> {
    Ticketer::new().map_err(|_| Error::stack("ticket keys", "no random bytes"))
}

/// One suite, one group, one version.
fn narrowed<S: ConfigSide>(
    builder: ConfigBuilder<S, WantsCipherSuites>,
    connection: &Connection,
) -> Result<ConfigBuilder<S, WantsVerifier>, Error> {
    builder
        .with_cipher_suites(&[suite(connection)?])
        .with_kx_groups(&[group(connection)?])
        .with_protocol_versions(&[version(connection)])
        .map_err(|error| Error::stack("configuration", error))
}

/// The suite, as rustls takes it.
fn suite(connection: &Connection) -> Result<SupportedCipherSuite, Error> {
    let wanted = connection.suite_code();
    let suite = ALL_CIPHER_SUITES.iter().find(|suite| suite.suite().get_u16() == wanted);
    suite.copied().ok_or_else(|| Error::scenario(format!("suite: this stack has none of code {wanted:#06x}")))
}

/// The group, as rustls takes it.
fn group(connection: &Connection) -> Result<&'static SupportedKxGroup, Error> {
    let wanted = NamedGroup::from(connection.group.code());
    let group = ALL_KX_GROUPS.iter().copied().find(|group| group.name == wanted);
    let name = connection.group.name();
    group.ok_or_else(|| Error::scenario(format!("group `{name}`: this stack can `x25519`, `p256`")))
}
