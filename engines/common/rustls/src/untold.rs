//! What rustls before 0.23 does not tell of a handshake, but shows.

use rustls::{CipherSuite, CommonState, ProtocolVersion, SignatureScheme};
use weir_engine::{Kind, Side, notes};

/// The code point that one of rustls's enumerations stands for.
pub(crate) fn code(value: impl Coded) -> u16 {
    value.code()
}

/// The kind of handshake: a whole one is one with a signature, made at one end and verified at the other. The group and
/// a HelloRetryRequest are seen on the wire.
pub(crate) fn told(side: Side, _state: &CommonState) -> (Kind, Option<u16>) {
    (if notes::signed(side).is_some() { Kind::Full } else { Kind::Resumed }, None)
}

/// An enumeration of code points.
pub(crate) trait Coded {
    fn code(self) -> u16;
}

impl Coded for CipherSuite {
    fn code(self) -> u16 {
        self.get_u16()
    }
}

impl Coded for ProtocolVersion {
    fn code(self) -> u16 {
        self.get_u16()
    }
}

impl Coded for SignatureScheme {
    fn code(self) -> u16 {
        self.get_u16()
    }
}
