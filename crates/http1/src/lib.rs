//! HTTP/1.1 on the wire: heads as spans, one framing decision, body decoder, writer.
//!
//! The crate turns bytes into decisions. It does no I/O, reads no clock and copies nothing: a parsed head is
//! a set of [spans](weir_http::Span) into the caller's buffer, so that a gateway can forward unchanged fields verbatim.
//!
//! * [`RequestHead::parse`] and [`ResponseHead::parse`] parse a head, or report that it is incomplete.
//! * [`Framing`] describes the end of the body, decided once per message from the head.
//! * [`BodyDecoder`] finds the body's bytes after the head.
//! * [`copy_fields`], [`framing_field`], [`chunk`] and [`last_chunk`] write.
//!
//! # Strictness
//!
//! Two recipients that parse a message differently allow request smuggling. So wherever RFC 9112 lets a
//! recipient either repair or reject, this crate rejects, in both directions:
//!
//! * lines end with CRLF; a bare LF or CR is rejected in heads, chunk-size lines and trailers (section 2.2);
//! * no line folding (5.2), no white space before the colon (5.1), none before the first field (2.2);
//! * exactly one SP between the parts of a request line (3), no fragment in a target (3.2);
//! * `Content-Length` together with `Transfer-Encoding` is rejected (6.1), so is `Transfer-Encoding` in HTTP/1.0 and
//!   any transfer coding but one `chunked`; equal `Content-Length` values fold, differing ones are rejected (6.3);
//! * exactly one `Host` in HTTP/1.1, at most one in HTTP/1.0, of letters, digits, `-._~`, or an IPv6 literal (3.2);
//! * `Connection` must not name a field that framing, routing or forwarding relies on.
//!
//! Three leniencies remain, since strictness would break honest peers and the lenient reading is unambiguous. An empty
//! line before a request line is skipped, as section 2.2 asks. A status line may end right after its three digits:
//! section 4 requires another SP, which servers omit together with the reason. Lists may contain empty elements (RFC
//! 9110, section 5.6.1.2), but `Transfer-Encoding` needs at least one coding.
//!
//! Some rules can be relaxed ([`Rule`]): RFC 9112 permits recipients to repair violations of them, and real senders
//! commit these violations. No relaxable rule affects where a body ends. When the strict parser rejects a head, a
//! [repair](RequestHead::repair) rewrites the head, and the strict parser parses the result. So only the rejection path
//! needs to handle relaxed rules, and every forwarded head is strict.

mod body;
mod chunked;
mod connection_options;
mod decoded;
mod error;
mod facts;
mod framing;
mod limits;
mod part;
mod repair;
mod request;
mod response;
mod rules;
mod section;
mod target;
mod trailers;
mod version;
mod write;

pub use body::BodyDecoder;
pub use decoded::Decoded;
pub use error::{BodyError, HeadError, RequestError, ResponseError};
pub use facts::authenticates_connection;
pub use framing::Framing;
pub use limits::{Limits, Parse};
pub use part::Part;
pub use repair::Repaired;
pub use request::RequestHead;
pub use response::ResponseHead;
pub use rules::{Rule, Rules};
pub use target::TargetForm;
pub use trailers::copy_trailers;
pub use version::Version;
pub use write::{chunk, chunk_head, copy_fields, decimal, framing_field, last_chunk, last_chunk_with};
