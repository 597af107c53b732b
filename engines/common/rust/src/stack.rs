//! What an engine implements for its library.

use crate::error::Error;
use crate::names::Named;
use crate::scenario::{Connection, Primitive};

/// A TLS library, or one way of using it.
pub trait Stack: Sync {
    /// The client's configuration.
    type Client: End;
    /// The server's configuration, shared by all threads.
    type Server: End + Send + Sync;

    /// What the engine is.
    fn facts(&self) -> Facts;

    /// A client's configuration, with a session store of its own.
    fn client(&self, connection: &Connection) -> Result<Self::Client, Error>;

    /// The server's configuration, with its session store and ticket keys.
    fn server(&self, connection: &Connection) -> Result<Self::Server, Error>;

    /// An operation, ready to be done many times by one thread.
    fn operation(&self, primitive: &Primitive) -> Result<Box<dyn Operate>, Error>;
}

/// One end's configuration.
pub trait End {
    /// What one connection has at this end.
    type Session: Session;

    /// A new one.
    fn session(&self) -> Result<Self::Session, Error>;
}

/// One end of one connection: bytes in, bytes out.
pub trait Session {
    /// Takes all of what the peer has sent.
    fn receive(&mut self, input: &[u8]) -> Result<(), Error>;

    /// Appends what the peer is to be sent.
    fn send(&mut self, output: &mut Vec<u8>) -> Result<(), Error>;

    /// What was negotiated, if the handshake is over.
    fn outcome(&self) -> Option<Outcome>;

    /// Encrypts all of `plain` and appends the records to `output`.
    fn write(&mut self, plain: &[u8], output: &mut Vec<u8>) -> Result<(), Error>;

    /// Takes whole records and reads all of what is in them into `plain`; says how many bytes that was.
    fn read(&mut self, input: &[u8], plain: &mut [u8]) -> Result<usize, Error>;
}

/// A primitive at work.
pub trait Operate {
    /// Makes ready for this many calls of [`run`](Operate::run), outside the time.
    fn prepare(&mut self, _times: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Does it once.
    fn run(&mut self) -> Result<(), Error>;
}

/// What needs nothing made ready is a closure.
impl<F: FnMut() -> Result<(), Error>> Operate for F {
    fn run(&mut self) -> Result<(), Error> {
        self()
    }
}

/// How a handshake came out, at one end. Numbers are TLS's code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outcome {
    /// The version.
    pub version: u16,
    /// Whether it was a whole one.
    pub kind: Kind,
    /// The suite.
    pub suite: u16,
    /// The group: none where no key exchange took place, or where the library does not tell. What the server says of
    /// it on the wire then stands in.
    pub group: Option<u16>,
    /// The signature's scheme: none when resumed, or where the library does not tell.
    pub signature: Option<u16>,
}

/// Whether a handshake was a whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The server proved who it is.
    Full,
    /// That, after it had refused the client's first key share.
    FullWithHelloRetry,
    /// A session was taken up again.
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

/// The [`Facts`] of the engine that this is written in, without CPU features: its build script (build/lock.rs) has set the
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
