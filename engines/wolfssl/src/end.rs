//! wolfSSL as a stack: configurations and sessions.

use std::fs;
use std::path::Path;

use weir_engine::{
    Certificate, Connection, End, Error, Facts, Group, Kind, Named, Operate, Outcome, Primitive, Resumption,
    Session, Side, Stack, Suite, Version,
};

use crate::wolfssl::{self, Chosen, Config};

/// The library.
pub(crate) struct Wolfssl;

impl Stack for Wolfssl {
    type Client = Configured;
    type Server = Configured;

    fn facts(&self) -> Facts {
        let version = format!("wolfssl {}", wolfssl::version());
        Facts {
            stack: "wolfssl".to_owned(),
            tls: version.clone(),
            crypto: version,
            compiler: env!("ENGINE_COMPILER").to_owned(),
            // Which it uses is internal to it.
            features: Vec::new(),
        }
    }

    fn client(&self, connection: &Connection) -> Result<Configured, Error> {
        let chosen = chosen(connection, Side::Client)?;
        let keeps = connection.resumption != Resumption::None;
        let config = Config::client(&chosen, &read("ca", &connection.ca)?, keeps)?;
        Ok(Configured { side: Side::Client, config })
    }

    fn server(&self, connection: &Connection) -> Result<Configured, Error> {
        check_certificate(connection)?;
        let chosen = chosen(connection, Side::Server)?;
        let (chain, key) = (read("chain", &connection.chain)?, read("key", &connection.key)?);
        let config = Config::server(&chosen, &chain, &key)?;
        Ok(Configured { side: Side::Server, config })
    }

    fn operation(&self, _: &Primitive) -> Result<Box<dyn Operate>, Error> {
        Err(Error::scenario("do primitive: allowed for this stack is facts, handshake, transfer, memory"))
    }
}

/// One end's configuration.
pub(crate) struct Configured {
    side: Side,
    config: Config,
}

impl End for Configured {
    type Session = Ended;

    fn session(&self) -> Result<Ended, Error> {
        Ok(Ended { connection: self.config.connect(self.side)?, over: false, output: Vec::new() })
    }
}

/// One end of a connection.
pub(crate) struct Ended {
    connection: wolfssl::Connection,
    /// Whether the handshake is.
    over: bool,
    /// What the peer is to be sent next.
    output: Vec<u8>,
}

impl Session for Ended {
    fn receive(&mut self, mut input: &[u8]) -> Result<(), Error> {
        if !self.over {
            self.over = self.connection.negotiate(&mut input, &mut self.output)?;
        }
        if self.over {
            // What follows the handshake, tickets, is found by reading data, of which there is none.
            if !input.is_empty() && self.connection.read(input, &mut [0])? > 0 {
                return Err(Error::stack("handshake", "data came that nobody sent"));
            }
            self.connection.keep();
        }
        Ok(())
    }

    fn send(&mut self, output: &mut Vec<u8>) -> Result<(), Error> {
        // A client speaks first.
        if !self.over && self.output.is_empty() && self.connection.side() == Side::Client {
            self.over = self.connection.negotiate(&mut &[][..], &mut self.output)?;
        }
        output.append(&mut self.output);
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        let resumed = self.connection.resumed();
        self.over.then(|| Outcome {
            version: self.connection.version(),
            kind: if resumed { Kind::Resumed } else { Kind::Full },
            suite: self.connection.suite(),
            // Told in names that differ from release to release: what the server says on the wire stands in. Of the
            // signature it tells the hash alone.
            group: None,
            signature: None,
        })
    }

    fn write(&mut self, plain: &[u8], output: &mut Vec<u8>) -> Result<(), Error> {
        self.connection.write(plain, output)
    }

    fn read(&mut self, input: &[u8], plain: &mut [u8]) -> Result<usize, Error> {
        self.connection.read(input, plain)
    }
}

/// The scenario in wolfSSL's words.
fn chosen(connection: &Connection, side: Side) -> Result<Chosen, Error> {
    if connection.locks {
        return Err(Error::scenario("locks `time`: allowed is none: the library does not tell of its locks"));
    }
    if connection.resumption == Resumption::Psk && connection.tickets > 1 {
        let tickets = connection.tickets;
        return Err(Error::scenario(format!(
            "tickets `{tickets}`: after a resumed handshake one is sent: allowed is 1"
        )));
    }
    let group = match connection.group {
        Group::X25519 | Group::P256 => connection.group.code(),
        other => return Err(Error::scenario(format!("group `{}`: allowed is x25519, p256", other.name()))),
    };
    // In TLS 1.2 a client's list also says which curves a certificate may be of.
    let curve = match connection.certificate {
        Certificate::EcdsaP256 if group != Group::P256.code() => Some(Group::P256.code()),
        Certificate::EcdsaP384 => Some(P384),
        _ => None,
    };
    let old = connection.version == Version::Tls12;
    let mut groups = vec![group];
    groups.extend(curve.filter(|_| old && side == Side::Client));
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
        new: !old,
        suite,
        groups,
        signature,
        store: connection.resumption == Resumption::Id,
        tickets: connection.tickets,
        fragment: fragment(connection.record)?,
    })
}

const P384: u16 = 24;

/// TLS's code of a limit on records, which both ends agree on: wolfSSL has no other setting.
fn fragment(record: usize) -> Result<Option<u8>, Error> {
    match record {
        16384 => Ok(None),
        512 => Ok(Some(1)),
        1024 => Ok(Some(2)),
        2048 => Ok(Some(3)),
        4096 => Ok(Some(4)),
        _ => Err(Error::scenario(format!("record `{record}`: allowed is 512, 1024, 2048, 4096, 16384"))),
    }
}

/// wolfSSL would take any key.
fn check_certificate(connection: &Connection) -> Result<(), Error> {
    let leaf = weir_engine::pem::certificates("chain", &connection.chain)?.swap_remove(0);
    // The object identifiers of the leaf's key.
    let identifier: &[u8] = match connection.certificate {
        Certificate::Rsa2048 => &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01],
        Certificate::EcdsaP256 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        Certificate::EcdsaP384 => &[0x2b, 0x81, 0x04, 0x00, 0x22],
    };
    if leaf.windows(identifier.len()).any(|part| part == identifier) {
        return Ok(());
    }
    let (chain, kind) = (connection.chain.display(), connection.certificate.name());
    Err(Error::scenario(format!("certificate `{kind}`: the leaf of chain `{chain}` has another kind of key")))
}

fn read(key: &str, path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| {
        Error::scenario(format!("{key} `{}`: a PEM file is allowed: {error}", path.display()))
    })
}
