//! HTTP/2 on the wire (RFC 9113).
//!
//! The crate does no I/O and reads no clock. It parses received bytes in place, and turns a head into the form of an
//! HTTP/1.1 head: lines, and [spans](weir_http::Span) into them.
//!
//! * [`Connection`]: bytes in, [`Event`]s out; commands in, bytes out. It implements both [`Role`]s.
//! * [`frame`]: parses and writes frames.
//! * [`Settings`]: the parameters of a SETTINGS frame, with their ranges.
//! * [`hpack`]: decodes field blocks into a [`Head`] within [`Limits`], and encodes them.
//! * [`Priority`]: the order in which a client prefers to receive its responses.
//! * [`ErrorCode`]: the code of RST_STREAM and GOAWAY.
//! * [`grpc`]: the content type, the messages and the statuses of gRPC.
//!
//! # Strictness
//!
//! A gateway that accepted a malformed head would write it as HTTP/1.1, where it may become two requests. So names must
//! be lower-case tokens, values must not contain control characters other than HTAB, methods and paths must consist of
//! characters allowed in a request line, and an authority must be a host with an optional port. Connection-specific
//! fields are rejected, pseudo-fields must be complete and come first, `host` must equal `:authority`, and cookie
//! crumbs are joined.

mod budget;
mod connection;
mod error;
pub mod frame;
pub mod grpc;
mod head;
pub mod hpack;
mod priority;
mod settings;
mod stream;
mod streams;
mod window;

pub use budget::{Abuse, Budgets, UPDATES_PER_DATA};
pub use connection::{
    Closed, Config, Connection, ConnectionError, DATA_BYTES, Event, FieldBytes, PREFACE, Part, Role,
    SILENT_FRAMES, Step, StreamError, StreamNo,
};
pub use error::ErrorCode;
pub use head::{Head, HeadError, Limits, Scheme, Section};
pub use priority::Priority;
pub use settings::{Settings, SettingsError};
