//! wolfSSL as a stack: configurations and sessions.

use weir_engine::{
    Certificate, Connection, Error, Facts, Group, Named, Operate, Primitive, Resumption, Side, Stack, Suite,
    Version, pem,
};

use crate::wolfssl::{self, Chosen, Config};

/// The library.
pub(crate) struct Wolfssl;

impl Stack for Wolfssl {
    type Client = Config;
    type Server = Config;

    fn facts(&self) -> Facts {
        let version = format!("wolfssl {}", wolfssl::version());
        Facts {
            stack: "wolfssl".to_owned(),
            tls: version.clone(),
            crypto: version,
            compiler: env!("ENGINE_COMPILER").to_owned(),
            // The library does not expose the features that it uses.
            features: Vec::new(),
        }
    }

    fn client(&self, connection: &Connection) -> Result<Config, Error> {
        let chosen = chosen(connection, Side::Client)?;
        let keeps = connection.resumption != Resumption::None;
        Config::client(&chosen, &pem::text("ca", &connection.ca)?, keeps)
    }

    fn server(&self, connection: &Connection) -> Result<Config, Error> {
        pem::check_leaf(&connection.chain, connection.certificate)?;
        let chosen = chosen(connection, Side::Server)?;
        let (chain, key) = (pem::text("chain", &connection.chain)?, pem::text("key", &connection.key)?);
        Config::server(&chosen, &chain, &key)
    }

    fn operation(&self, _: &Primitive) -> Result<Box<dyn Operate>, Error> {
        Err(Error::scenario("do primitive: expected one of facts, handshake, transfer, memory"))
    }
}

/// The scenario in wolfSSL's terms.
fn chosen(connection: &Connection, side: Side) -> Result<Chosen, Error> {
    if connection.locks {
        return Err(Error::scenario(
            "locks `time`: the library does not expose its locks: expected no such key",
        ));
    }
    if connection.resumption == Resumption::Psk && connection.tickets > 1 {
        let tickets = connection.tickets;
        return Err(Error::scenario(format!(
            "tickets `{tickets}`: one is sent after a resumed handshake: expected 1"
        )));
    }
    let group = match connection.group {
        Group::X25519 | Group::P256 => connection.group.code(),
        other => return Err(Error::scenario(format!("group `{}`: expected x25519 or p256", other.name()))),
    };
    let mut groups = vec![group];
    groups.extend(connection.certificate_curve().filter(|_| side == Side::Client));
    let key = if connection.certificate == Certificate::Rsa2048 { "RSA" } else { "ECDSA" };
    let suite = match (connection.version, connection.suite) {
        (Version::Tls13, Suite::Aes128Gcm) => "TLS13-AES128-GCM-SHA256".to_owned(),
        (Version::Tls13, Suite::Aes256Gcm) => "TLS13-AES256-GCM-SHA384".to_owned(),
        (Version::Tls13, Suite::ChaCha20Poly1305) => "TLS13-CHACHA20-POLY1305-SHA256".to_owned(),
        (Version::Tls12, Suite::Aes128Gcm) => format!("ECDHE-{key}-AES128-GCM-SHA256"),
        (Version::Tls12, Suite::Aes256Gcm) => format!("ECDHE-{key}-AES256-GCM-SHA384"),
        (Version::Tls12, Suite::ChaCha20Poly1305) => format!("ECDHE-{key}-CHACHA20-POLY1305"),
    };
    let signature = match connection.certificate {
        Certificate::Rsa2048 => "RSA-PSS+SHA256",
        Certificate::EcdsaP256 => "ECDSA+SHA256",
        Certificate::EcdsaP384 => "ECDSA+SHA384",
    };
    Ok(Chosen {
        new: connection.version == Version::Tls13,
        suite,
        groups,
        signature,
        store: connection.resumption == Resumption::Id,
        tickets: connection.tickets,
        fragment: fragment(connection.record)?,
    })
}

/// The code of TLS's maximum fragment length, which both sides negotiate: wolfSSL has no other setting.
fn fragment(record: usize) -> Result<Option<u8>, Error> {
    match record {
        16384 => Ok(None),
        512 => Ok(Some(1)),
        1024 => Ok(Some(2)),
        2048 => Ok(Some(3)),
        4096 => Ok(Some(4)),
        _ => Err(Error::scenario(format!("record `{record}`: expected one of 512, 1024, 2048, 4096, 16384"))),
    }
}
