//! What may come before a connection's first byte of HTTP: a PROXY protocol header, and a TLS ClientHello, which says for
//! whom the connection is without being decrypted.
//!
//! Bytes in, a decision out: nothing is consumed, and a part of the input is never an error unless no continuation could
//! make it valid.

pub mod hello;
pub mod proxy;

/// The result of a look at the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look<T> {
    /// It is complete.
    Complete(T),
    /// More bytes are needed.
    Partial,
}
