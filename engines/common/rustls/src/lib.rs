//! rustls as a stack, for all its versions: engines pin the version and choose the crypto backend.
//!
//! One crate per generation of rustls's API (directories 0.21, 0.22, 0.23) compiles these sources. The crate's feature
//! selects the module `generation`, where they differ. Since 0.22 rustls requires `Debug` of its callbacks; earlier,
//! its own types lack it.

mod client_config;
mod client_store;
mod restricted;
mod server_config;
mod session;
mod verification;
mod watched;

#[cfg_attr(feature = "until-0-21", path = "until_0_21/mod.rs")]
#[cfg_attr(not(feature = "until-0-21"), path = "since_0_22/mod.rs")]
mod generation;

#[cfg_attr(not(feature = "since-0-23"), path = "inferred.rs")]
mod negotiated;

use std::sync::Arc;

use rustls::{
    ClientConfig, ClientConnection, ServerConfig, ServerConnection, SupportedProtocolVersion, version,
};
use weir_engine::{Connection, End, Error, Facts, Operate, Primitive, Side, Stack, Version};

pub use generation::Crypto;
use session::Ended;

/// rustls with an engine's crypto backend.
pub struct Rustls {
    /// The engine's facts.
    pub facts: Facts,
    /// The crypto backend.
    pub crypto: Crypto,
    /// Creates the operations of the same crypto backend.
    pub operation: fn(&Primitive) -> Result<Box<dyn Operate>, Error>,
}

impl Stack for Rustls {
    type Client = Client;
    type Server = Server;

    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    fn client(&self, connection: &Connection) -> Result<Client, Error> {
        let config = Arc::new(client_config::client(&self.crypto, connection)?);
        let name = generation::Name::try_from("localhost").map_err(|error| Error::runner("name", error))?;
        Ok(Client { config, name })
    }

    fn server(&self, connection: &Connection) -> Result<Server, Error> {
        Ok(Server { config: Arc::new(server_config::server(&self.crypto, connection)?) })
    }

    fn operation(&self, primitive: &Primitive) -> Result<Box<dyn Operate>, Error> {
        (self.operation)(primitive)
    }
}

/// A client's configuration.
pub struct Client {
    config: Arc<ClientConfig>,
    name: generation::Name,
}

impl End for Client {
    type Session = Ended<ClientConnection>;

    fn session(&self) -> Result<Ended<ClientConnection>, Error> {
        let connection = ClientConnection::new(self.config.clone(), self.name.clone());
        Ok(Ended::new(Side::Client, connection.map_err(|error| Error::stack("client", error))?))
    }
}

/// The server's configuration.
pub struct Server {
    config: Arc<ServerConfig>,
}

impl End for Server {
    type Session = Ended<ServerConnection>;

    fn session(&self) -> Result<Ended<ServerConnection>, Error> {
        let connection = ServerConnection::new(self.config.clone());
        Ok(Ended::new(Side::Server, connection.map_err(|error| Error::stack("server", error))?))
    }
}

/// The version, as rustls takes it.
fn version(connection: &Connection) -> &'static SupportedProtocolVersion {
    match connection.version {
        Version::Tls12 => &version::TLS12,
        Version::Tls13 => &version::TLS13,
    }
}

/// The limit of rustls's records, which counts the five bytes of a record's header.
fn fragment(connection: &Connection) -> Option<usize> {
    const LARGEST: usize = 16384;
    (connection.record < LARGEST).then_some(connection.record + 5)
}
