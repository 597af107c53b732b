//! HPACK: compression of field sections (RFC 7541).
//!
//! [`Decoder`] contains the dynamic table of one direction of a connection. It writes each field as a line of HTTP/1.1
//! into a [`Head`](crate::Head), and stores its verdict on name and value in the table, so that an indexed field only
//! needs a copy. [`Encoder`] is stateless: it uses the static table and literals.

mod decode;
mod encode;
mod error;
mod huffman;
mod integer;
mod statics;
mod table;

pub use decode::Decoder;
pub use encode::Encoder;
pub use error::HpackError;
pub(crate) use table::{OVERHEAD, SEPARATORS};
