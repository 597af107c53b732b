//! The interface between an engine and its library.

use crate::error::Error;
use crate::names::Named;
use crate::scenario::{Connection, Primitive};

/// A TLS library, or one way of using it.
pub trait Stack: Sync {
    /// The client's configuration.
    type Client: End;
    /// The server's configuration, shared by all threads.
    type Server: End + Send + Sync;

    /// The engine's facts.
    fn facts(&self) -> Facts;

    /// A client's configuration, with a session store of its own.
    fn client(&self, connection: &Connection) -> Result<Self::Client, Error>;

    /// The server's configuration, with its session store and ticket keys.
    fn server(&self, connection: &Connection) -> Result<Self::Server, Error>;

    /// An operation, prepared for repeated use by one thread.
    fn operation(&self, primitive: &Primitive) -> Result<Box<dyn Operate>, Error>;
}

/// One side's configuration.
pub trait End {
    /// This side's state of a connection.
    type Session: Session;

    /// Creates a new connection state.
    fn session(&self) -> Result<Self::Session, Error>;
}

/// One side of a connection: bytes in, bytes out.
pub trait Session {
    /// Processes the peer's bytes.
    fn receive(&mut self, input: &[u8]) -> Result<(), Error>;

    /// Appends bytes for the peer.
    fn send(&mut self, output: &mut Vec<u8>) -> Result<(), Error>;

    /// The outcome, once the handshake is over.
    fn outcome(&self) -> Option<Outcome>;

    /// Encrypts all of `plain` and appends the records to `output`.
    fn write(&mut self, plain: &[u8], output: &mut Vec<u8>) -> Result<(), Error>;

    /// Decrypts complete records into `plain`; returns the number of bytes.
    fn read(&mut self, input: &[u8], plain: &mut [u8]) -> Result<usize, Error>;
}

/// A running primitive.
pub trait Operate {
    /// Prepares for this many calls of [`run`](Operate::run), outside the timed part.
    fn prepare(&mut self, _times: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Runs once.
    fn run(&mut self) -> Result<(), Error>;
}

/// A closure needs no preparation.
impl<F: FnMut() -> Result<(), Error>> Operate for F {
    fn run(&mut self) -> Result<(), Error> {
        self()
    }
}

/// The outcome of a handshake on one side. Numbers are TLS code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    /// The version.
    pub version: u16,
    /// Its kind.
    pub kind: Kind,
    /// The suite.
    pub suite: u16,
    /// The group: none without a key exchange, or if the library does not expose it. Then the one from the
    /// wire is used.
    pub group: Option<u16>,
    /// The signature scheme: none if resumed or unknown.
    pub signature: Option<u16>,
}

/// The kind of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// With the server's signature.
    Full,
    /// The same, after a HelloRetryRequest.
    FullWithHelloRetry,
    /// Resumed.
    Resumed,
}

impl Named for Kind {
    const NAMES: &'static [(Kind, &'static str)] = &[
        (Kind::Full, "full"),
        (Kind::FullWithHelloRetry, "full-with-hello-retry"),
        (Kind::Resumed, "resumed"),
    ];
}

/// An engine's facts, as far as they depend on the stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The family.
    pub stack: String,
    /// The TLS library and its version.
    pub tls: String,
    /// The crypto backend and its version.
    pub crypto: String,
    /// The compiler.
    pub compiler: String,
    /// CPU features used by the library, if known.
    pub features: Vec<String>,
}

/// The [`Facts`] of the calling engine, without CPU features: its build script (build/lock.rs) set the
/// variables, from the lock file and the machine.
#[macro_export]
macro_rules! built {
    () => {
        $crate::Facts {
            stack: env!("ENGINE_STACK").to_owned(),
            tls: env!("ENGINE_TLS").to_owned(),
            crypto: env!("ENGINE_CRYPTO").to_owned(),
            compiler: env!("ENGINE_COMPILER").to_owned(),
            features: Vec::new(),
        }
    };
}
