//! HTTP semantics that all versions share (RFC 9110): fields, methods, authorities.
//!
//! A head is a set of [`Span`]s into the received bytes, so that a gateway can forward unchanged fields verbatim. This
//! crate is independent of the version: `weir-http1` parses and writes the text of HTTP/1.1.
//!
//! * [`Field`] and [`FieldName`]: a field line, and the names that the protocol or the gateway acts on.
//! * [`Authority`] and [`Method`]: parts of a request.
//! * [`may_be_trailer`]: the fields that may be forwarded after the body.
//! * [`scan`]: the characters that are valid in each part.
//! * [`visible`]: a peer's text for a terminal.

mod authority;
mod field;
mod method;
pub mod scan;
mod span;
mod trailer;
mod visible;

pub use authority::Authority;
pub use field::{Field, FieldName};
pub use method::Method;
pub use scan::is_token;
pub use span::Span;
pub use trailer::may_be_trailer;
pub use visible::{is_hidden, visible};
