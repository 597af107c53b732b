//! s2n-tls as a stack: configurations and sessions.

use std::fs;
use std::path::Path;

use weir_engine::{
    Certificate, Connection, End, Error, Facts, Group, Kind, Operate, Outcome, Primitive, Resumption,
    Session, Side, Stack, Version,
};
use weir_engine_s2n_policy::Chosen;

use crate::s2n;

/// The library.
pub(crate) struct S2n;

impl Stack for S2n {
    type Client = Configured;
    type Server = Configured;

    fn facts(&self) -> Facts {
        weir_engine_aws_lc_rs::facts(weir_engine::built!())
    }

    fn client(&self, connection: &Connection) -> Result<Configured, Error> {
        choose(connection)?;
        // A client without tickets would not read those that the server sends all the same.
        let tickets = connection.tickets > 0;
        let keeps = connection.resumption != Resumption::None;
        let config = s2n::Config::client(&read("ca", &connection.ca)?, tickets, keeps)?;
        Ok(Configured { side: Side::Client, config })
    }

    fn server(&self, connection: &Connection) -> Result<Configured, Error> {
        choose(connection)?;
        check_certificate(connection)?;
        let (chain, key) = (read("chain", &connection.chain)?, read("key", &connection.key)?);
        let config = s2n::Config::server(&chain, &key, connection.tickets as u8, connection.record as u16)?;
        Ok(Configured { side: Side::Server, config })
    }

    fn operation(&self, primitive: &Primitive) -> Result<Box<dyn Operate>, Error> {
        weir_engine_aws_lc_rs::operation(primitive)
    }
}

/// One end's configuration.
pub(crate) struct Configured {
    side: Side,
    config: s2n::Config,
}

impl End for Configured {
    type Session = Ended;

    fn session(&self) -> Result<Ended, Error> {
        let connection = s2n::Connection::new(&self.config, self.side)?;
        Ok(Ended { connection, over: false, output: Vec::new() })
    }
}

/// One end of a connection.
pub(crate) struct Ended {
    connection: s2n::Connection,
    /// Whether the handshake is.
    over: bool,
    /// What the peer is to be sent next.
    output: Vec<u8>,
}

impl Ended {
    fn negotiate(&mut self, input: &[u8]) -> Result<usize, Error> {
        let (over, taken) = self.connection.negotiate(input, &mut self.output)?;
        self.over = over;
        Ok(taken)
    }
}

impl Session for Ended {
    fn receive(&mut self, mut input: &[u8]) -> Result<(), Error> {
        if !self.over {
            let taken = self.negotiate(input)?;
            input = &input[taken..];
        }
        // What follows the handshake, tickets, is found by reading data, of which there is none.
        if self.over && !input.is_empty() && self.connection.receive(input, &mut [0])? > 0 {
            return Err(Error::stack("handshake", "data came that nobody sent"));
        }
        Ok(())
    }

    fn send(&mut self, output: &mut Vec<u8>) -> Result<(), Error> {
        // A client speaks first.
        if !self.over && self.output.is_empty() && self.connection.side() == Side::Client {
            self.negotiate(&[])?;
        }
        output.append(&mut self.output);
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        if !self.over {
            return None;
        }
        let told = self.connection.told();
        let full = if told.retried { Kind::FullWithHelloRetry } else { Kind::Full };
        let fresh = !told.resumed || told.version == Version::Tls13.code();
        Some(Outcome {
            version: told.version,
            kind: if told.resumed { Kind::Resumed } else { full },
            suite: told.suite,
            group: told.group.filter(|_| fresh),
            signature: told.signature.filter(|_| !told.resumed),
        })
    }

    fn write(&mut self, plain: &[u8], output: &mut Vec<u8>) -> Result<(), Error> {
        self.connection.send(plain, output)
    }

    fn read(&mut self, input: &[u8], plain: &mut [u8]) -> Result<usize, Error> {
        self.connection.receive(input, plain)
    }
}

/// One suite, group and signature for all configurations of this run.
fn choose(connection: &Connection) -> Result<(), Error> {
    if connection.locks {
        return Err(Error::scenario("locks `time`: allowed is none: the library does not tell of its locks"));
    }
    let old = connection.version == Version::Tls12;
    let certificate_curve = match connection.certificate {
        Certificate::EcdsaP256 if old && connection.group != Group::P256 => Group::P256.code(),
        Certificate::EcdsaP384 if old => P384,
        _ => 0,
    };
    let chosen = Chosen {
        suite: connection.suite_code(),
        group: connection.group.code(),
        certificate_curve,
        signature: connection.certificate.signature(),
    };
    if weir_engine_s2n_policy::choose(chosen) {
        Ok(())
    } else {
        Err(Error::stack("policy", "it has not all of these"))
    }
}

const P384: u16 = 24;

/// s2n-tls would take any key that can sign what was chosen.
fn check_certificate(connection: &Connection) -> Result<(), Error> {
    let leaf = weir_engine::pem::certificates("chain", &connection.chain)?.swap_remove(0);
    let identifiers: &[(Certificate, &[u8])] = &[
        (Certificate::Rsa2048, &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01]),
        (Certificate::EcdsaP256, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]),
        (Certificate::EcdsaP384, &[0x2b, 0x81, 0x04, 0x00, 0x22]),
    ];
    let is = |(kind, identifier): &(Certificate, &[u8])| {
        *kind == connection.certificate && leaf.windows(identifier.len()).any(|part| part == *identifier)
    };
    if identifiers.iter().any(is) {
        return Ok(());
    }
    Err(Error::scenario(format!(
        "chain `{}`: the leaf's key is not the certificate's kind",
        connection.chain.display()
    )))
}

fn read(key: &str, path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error| {
        Error::scenario(format!("{key} `{}`: a PEM file is allowed: {error}", path.display()))
    })
}
