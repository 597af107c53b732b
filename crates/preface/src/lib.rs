//! The bytes that may precede HTTP on a connection: a PROXY protocol header, and a TLS ClientHello, whose server name
//! is readable without decryption.
//!
//! The parsers decide from the bytes received so far, and consume none. They reject an incomplete header or ClientHello
//! only if no continuation could make it valid.

pub mod hello;
pub mod proxy;

/// The result of parsing the bytes received so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look<T> {
    /// The value is complete.
    Complete(T),
    /// More bytes are needed.
    Partial,
}
