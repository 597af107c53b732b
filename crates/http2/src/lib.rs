//! HTTP/2 on the wire (RFC 9113).
//!
//! The crate does no I/O and reads no clock. Received bytes are parsed in place, and a head becomes what a head of
//! HTTP/1.1 is: lines, and [spans](weir_http::Span) into them.
//!
//! * [`Connection`]: bytes in, [`Event`]s out; commands in, bytes out. Both [`Role`]s are one type.
//! * [`frame`]: parses and writes frames.
//! * [`Settings`]: the parameters of a SETTINGS frame, with their ranges.
//! * [`hpack`]: decodes field blocks into a [`Head`] within [`Limits`], and encodes them.
//! * [`Priority`]: the order in which a client would like its responses.
//! * [`ErrorCode`]: the code of RST_STREAM and GOAWAY.
//! * [`grpc`]: the content type, the messages and the statuses of gRPC.
//!
//! # Strictness
//!
//! A gateway that accepted a malformed head would write it as HTTP/1.1, where it may become two requests. So names are
//! lower-case tokens, values have no control character but HTAB, methods and paths have the characters of a request line,
//! and an authority is a host with an optional port. Fields that are specific to a connection are rejected, pseudo-fields
//! are complete and come first, `host` equals `:authority`, and cookie crumbs are joined.

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
    Closed, Config, Connection, ConnectionError, DATA_BYTES, Event, FieldBytes, PREFACE, Part, Role, Step,
    StreamError, StreamNo,
};
pub use error::ErrorCode;
pub use head::{Head, HeadError, Limits, Scheme, Section};
pub use priority::Priority;
pub use settings::{Settings, SettingsError};
