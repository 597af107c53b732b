//! Negotiated parameters, as exposed by rustls since 0.23.

use rustls::{CommonState, HandshakeKind};
use weir_engine::{Kind, Side};

/// The code point of one of rustls's enumerations.
pub(crate) fn code(value: impl Into<u16>) -> u16 {
    value.into()
}

/// The kind of handshake and its group.
pub(crate) fn negotiated(_side: Side, state: &CommonState) -> (Kind, Option<u16>) {
    let kind = match state.handshake_kind() {
        Some(HandshakeKind::Resumed) => Kind::Resumed,
        Some(HandshakeKind::FullWithHelloRetryRequest) => Kind::FullWithHelloRetry,
        _ => Kind::Full,
    };
    (kind, state.negotiated_key_exchange_group().map(|group| code(group.name())))
}
