//! Negotiated parameters before rustls 0.23, inferred from its callbacks.

use rustls::{CipherSuite, CommonState, ProtocolVersion, SignatureScheme};
use weir_engine::{Kind, Side, notes};

/// The code point of one of rustls's enumerations.
pub(crate) fn code(value: impl Coded) -> u16 {
    value.code()
}

/// The kind of handshake: full if it had a signature, made on one side and verified on the other. The group and
/// a HelloRetryRequest are parsed from the wire.
pub(crate) fn negotiated(side: Side, _state: &CommonState) -> (Kind, Option<u16>) {
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
