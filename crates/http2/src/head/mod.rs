//! Heads and trailers: field sections as lines and spans (RFC 9113, section 8).

mod build;
mod error;
mod limits;
mod name;
mod value;

pub(crate) use build::{Builder, Line};
pub use error::HeadError;
pub use limits::Limits;
pub(crate) use name::{Name, NameKind, Pseudo};
pub(crate) use value::Verdict;

use weir_http::{Field, Method, Span};

/// The part of a message that a field block contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// A request's head.
    Request {
        /// Whether we announced SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441, section 3).
        extended_connect: bool,
    },
    /// A response's head, interim or final.
    Response,
    /// The trailers of a request or a response.
    Trailers,
}

/// The scheme of a request (RFC 9113, section 8.3.1). Other schemes are rejected: the gateway forwards only HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

/// A head or a trailer section, as lines in the form of HTTP/1.1 and spans into them.
///
/// Reuse one per core: it keeps its storage, so that decoding allocates nothing once its buffers have grown. Its
/// contents are valid until the next block is decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Lines `name: value` with CRLF, those of pseudo-fields first. The lines of cookie crumbs remain between those of
    /// other fields, without a [`Field`]: a joined cookie is the last line.
    pub bytes: Vec<u8>,
    /// The fields in their order, without pseudo-fields, with at most one `cookie` (RFC 9113, section 8.2.3).
    pub fields: Vec<Field>,
    /// A request's method.
    pub method: Method,
    /// A request's method as written, a token.
    pub method_span: Span,
    /// A request's scheme. `None` for CONNECT without `:protocol`.
    pub scheme: Option<Scheme>,
    /// A request's path and query: starts with `/`, or is `*` for OPTIONS. Empty for CONNECT without `:protocol`.
    pub path: Span,
    /// A request's authority, valid for [`weir_http::Authority`], from `:authority` or else from `host`. If both are
    /// present, they are equal, ignoring case.
    pub host: Option<Span>,
    /// The protocol of an extended CONNECT, a token (RFC 8441, section 4).
    pub protocol: Option<Span>,
    /// A response's status, 100 to 999 without 101.
    pub status: u16,
    /// The value of `content-length`. The total length of DATA must equal it, except in a response without a body or a
    /// 2xx response to CONNECT.
    pub content_length: Option<u64>,
    /// Whether the client accepts a trailer section (RFC 9110, section 10.1.4).
    pub accepts_trailers: bool,
    /// Whether the client waits for 100 (Continue) before it sends the body (RFC 9110, section 10.1.1).
    pub expect_continue: bool,
}

impl Head {
    /// An empty head with room for the fields of a usual request.
    #[must_use]
    pub fn new() -> Self {
        Self { bytes: Vec::with_capacity(2048), fields: Vec::with_capacity(32), ..Self::default() }
    }

    /// The heap memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.fields.capacity() * size_of::<Field>()
    }

    fn clear(&mut self) {
        let (mut bytes, mut fields) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.fields));
        bytes.clear();
        fields.clear();
        *self = Self { bytes, fields, ..Self::default() };
    }
}
