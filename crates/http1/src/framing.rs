//! How a body ends.

/// How the body of one message ends (RFC 9112, section 6.3): the one framing decision, made from the head.
///
/// A forwarded message's framing is regenerated from this value ([`crate::framing_field`]); the `Content-Length` and
/// `Transfer-Encoding` lines that it came from are not copied, since a folded `Content-Length: 5, 5` must not be
/// passed on (RFC 9110, section 8.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    #[default]
    None,
    /// The body is this many bytes.
    Length(u64),
    /// The body is in chunks and ends with an empty one.
    Chunked,
    /// The body ends with the connection. Never in a request.
    UntilClose,
}

impl Framing {
    /// Whether there is no body, or one without bytes.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }
}
