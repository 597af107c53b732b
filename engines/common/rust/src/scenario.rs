//! A scenario: what to measure, complete and consistent once parsed.

mod keys;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::Error;
use crate::names::{Certificate, Group, Named, Operation, Resumption, Suite, Version};
use keys::Keys;

/// The work to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scenario {
    /// Nothing: only describe the engine.
    Facts,
    /// Connections from start to end.
    Handshake(Handshake),
    /// Bytes from server to client.
    Transfer(Transfer),
    /// Memory of open connections.
    Memory(Memory),
    /// One cryptographic operation.
    Primitive(Primitive),
}

/// `do handshake`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// The connections.
    pub connection: Connection,
    /// Create new configurations before each handshake.
    pub cold: bool,
    /// Duration and threads.
    pub load: Load,
}

/// `do transfer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The connections.
    pub connection: Connection,
    /// Bytes per write call of the server.
    pub write: usize,
    /// Bytes per unit.
    pub bytes: u64,
    /// Duration and threads.
    pub load: Load,
}

/// `do memory`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// The connections.
    pub connection: Connection,
    /// Number of clients, and of servers.
    pub pairs: usize,
}

/// `do primitive`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Primitive {
    /// The operation.
    pub operation: Operation,
    /// The PKCS #8 key in PEM, of operations that sign or verify.
    pub key: Option<PathBuf>,
    /// Bytes of the message.
    pub record: usize,
    /// Duration and threads.
    pub load: Load,
}

/// The configuration of both sides of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The only version.
    pub version: Version,
    /// The only suite.
    pub suite: Suite,
    /// The only group.
    pub group: Group,
    /// The kind of the server's key.
    pub certificate: Certificate,
    /// PEM file of leaf and intermediate.
    pub chain: PathBuf,
    /// PEM file of the server's PKCS #8 key.
    pub key: PathBuf,
    /// PEM file of the root.
    pub ca: PathBuf,
    /// How sessions are resumed.
    pub resumption: Resumption,
    /// How many tickets the server sends.
    pub tickets: u32,
    /// Maximum plaintext bytes per record.
    pub record: usize,
    /// Whether to time the server's shared state.
    pub locks: bool,
}

impl Connection {
    /// The code point of the suite with this version and certificate.
    pub fn suite_code(&self) -> u16 {
        self.suite.code(self.version, self.certificate)
    }

    /// The code point of a curve that a client must offer besides the group: in TLS 1.2 the list also limits the curves
    /// of certificates (RFC 8422, section 5.1.1).
    pub fn certificate_curve(&self) -> Option<u16> {
        const P384: u16 = 24;
        match self.certificate {
            _ if self.version == Version::Tls13 => None,
            Certificate::EcdsaP256 if self.group != Group::P256 => Some(Group::P256.code()),
            Certificate::EcdsaP384 => Some(P384),
            _ => None,
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// Concurrent threads.
    pub threads: usize,
    /// Units per thread before the measurement.
    pub warmup: u64,
    /// When each thread stops.
    pub until: Until,
}

/// When a thread stops measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After this time.
    Window(Duration),
    /// After this many units.
    Count(u64),
}

/// Plaintext in a record, as TLS limits it.
const LARGEST_RECORD: usize = 16384;
const SMALLEST_RECORD: usize = 512;
/// Message length of signing operations.
const DIGEST: usize = 32;
const THREADS: RangeInclusive<u64> = 1..=1024;
const WARMUP: RangeInclusive<u64> = 0..=1_000_000_000;
const COUNT: RangeInclusive<u64> = 1..=1_000_000_000;
const WINDOW_MS: RangeInclusive<u64> = 1..=3_600_000;
const WRITE: RangeInclusive<u64> = 1..=1 << 30;
const BYTES: RangeInclusive<u64> = 1..=1 << 40;
const SESSIONS: RangeInclusive<u64> = 2..=10_000_000;

impl Scenario {
    /// Parses a scenario.
    pub fn parse(text: &str) -> Result<Scenario, Error> {
        let mut keys = Keys::parse(text)?;
        let scenario = match keys.word("do", &["facts", "handshake", "transfer", "memory", "primitive"])? {
            "handshake" => Scenario::Handshake(handshake(&mut keys)?),
            "transfer" => Scenario::Transfer(transfer(&mut keys)?),
            "memory" => Scenario::Memory(memory(&mut keys)?),
            "primitive" => Scenario::Primitive(primitive(&mut keys)?),
            _ => Scenario::Facts,
        };
        keys.finish()?;
        Ok(scenario)
    }
}

fn handshake(keys: &mut Keys<'_>) -> Result<Handshake, Error> {
    let mut connection = connection(keys)?;
    connection.resumption = keys.choice("resumption")?;
    connection.tickets = tickets(keys, connection.version, connection.resumption)?;
    connection.locks = keys.optional_word("locks", &["time"])?.is_some();
    if connection.locks && connection.resumption == Resumption::None {
        return Err(Error::scenario(
            "locks `time`: resumption `none` uses no shared state: expected no such key",
        ));
    }
    let cold = keys.optional_word("config", &["warm", "cold"])? == Some("cold");
    if cold && connection.resumption != Resumption::None {
        return Err(Error::scenario(
            "config `cold`: new configurations have no session: expected resumption `none`",
        ));
    }
    Ok(Handshake { connection, cold, load: load(keys)? })
}

fn transfer(keys: &mut Keys<'_>) -> Result<Transfer, Error> {
    let mut connection = connection(keys)?;
    connection.record = keys.number("record", SMALLEST_RECORD as u64..=LARGEST_RECORD as u64)? as usize;
    let write = keys.number("write", WRITE)? as usize;
    Ok(Transfer { connection, write, bytes: keys.number("bytes", BYTES)?, load: load(keys)? })
}

fn memory(keys: &mut Keys<'_>) -> Result<Memory, Error> {
    let connection = connection(keys)?;
    let sessions = keys.number("sessions", SESSIONS)?;
    if sessions % 2 == 1 {
        return Err(Error::scenario(format!(
            "sessions `{sessions}`: half are clients: expected an even number"
        )));
    }
    Ok(Memory { connection, pairs: sessions as usize / 2 })
}

fn primitive(keys: &mut Keys<'_>) -> Result<Primitive, Error> {
    let operation = keys.choice("operation")?;
    let (key, record) = match operation {
        Operation::Sign(_) | Operation::Verify(_) => {
            let key = keys.path("key")?;
            // The certificates of the key may come with it.
            keys.optional_path("chain")?;
            keys.optional_path("ca")?;
            keys.optional_number("record", DIGEST as u64..=DIGEST as u64)?;
            (Some(key), DIGEST)
        }
        Operation::Seal(_) | Operation::Open(_) => {
            (None, keys.number("record", 1..=LARGEST_RECORD as u64)? as usize)
        }
        Operation::X25519 | Operation::P256 | Operation::HybridClient | Operation::HybridServer => (None, 0),
    };
    Ok(Primitive { operation, key, record, load: load(keys)? })
}

fn connection(keys: &mut Keys<'_>) -> Result<Connection, Error> {
    let connection = Connection {
        version: keys.choice("version")?,
        suite: keys.choice("suite")?,
        group: keys.choice("group")?,
        certificate: keys.choice("certificate")?,
        chain: keys.path("chain")?,
        key: keys.path("key")?,
        ca: keys.path("ca")?,
        resumption: Resumption::None,
        tickets: 0,
        record: LARGEST_RECORD,
        locks: false,
    };
    if connection.version == Version::Tls12 && connection.group == Group::X25519MlKem768 {
        return Err(Error::scenario("group `x25519mlkem768`: TLS 1.2 has only `x25519`, `p256`"));
    }
    Ok(connection)
}

/// The number of tickets: required for TLS 1.3, mostly implied for TLS 1.2.
fn tickets(keys: &mut Keys<'_>, version: Version, resumption: Resumption) -> Result<u32, Error> {
    let tickets = match (version, resumption) {
        (Version::Tls13, Resumption::None) => keys.number("tickets", 0..=4)?,
        (Version::Tls13, Resumption::Psk) => keys.number("tickets", 1..=4)?,
        (Version::Tls12, Resumption::None) => keys.optional_number("tickets", 0..=1)?.unwrap_or(0),
        (Version::Tls12, Resumption::Id) => keys.optional_number("tickets", 0..=0)?.unwrap_or(0),
        (Version::Tls12, Resumption::Ticket) => keys.optional_number("tickets", 1..=1)?.unwrap_or(1),
        (_, resumption) => {
            let expected = if version == Version::Tls12 { "`none`, `id`, `ticket`" } else { "`none`, `psk`" };
            return Err(Error::scenario(format!(
                "resumption `{}`: with version {} expected one of {expected}",
                resumption.name(),
                version.name()
            )));
        }
    };
    Ok(tickets as u32)
}

fn load(keys: &mut Keys<'_>) -> Result<Load, Error> {
    let threads = keys.optional_number("threads", THREADS)?.unwrap_or(1) as usize;
    let warmup = keys.optional_number("warmup", WARMUP)?.unwrap_or(0);
    let window = keys.optional_number("window_ms", WINDOW_MS)?;
    let count = keys.optional_number("count", COUNT)?;
    let until = match (window, count) {
        (Some(window), None) => Until::Window(Duration::from_millis(window)),
        (None, Some(count)) => Until::Count(count),
        _ => return Err(Error::scenario("one of `window_ms` and `count` must be given, and only one")),
    };
    Ok(Load { threads, warmup, until })
}
