//! TLS as a byte transformer over rustls: bytes in, bytes out, no sockets and no I/O after the settings are read.
//!
//! A process creates one [`Server`] or [`Client`] from its settings. Each core takes its own part
//! ([`Acceptor`], [`Connector`]) and creates one [`Session`] per connection. A session decrypts with
//! [`Session::receive`] and encrypts with [`Session::send`]; its [`Facts`] are the negotiated parameters.
//!
//! The crate does not expose rustls's API and types, so that the choice between its buffered and unbuffered
//! API (docs/decisions/0002-rustls-api.md) stays internal.

mod certificate;
mod checked_parameters;
mod client;
mod client_certificate;
mod client_sessions;
mod curves;
mod der;
mod distinguished_name;
mod early_data;
mod error;
mod facts;
mod hello;
mod identity;
#[cfg(feature = "issue")]
pub mod issue;
mod key_log;
mod key_schedule;
mod notes;
mod ocsp;
mod offer;
mod parameters;
mod pem;
mod portable;
mod presented;
mod resolver;
mod resuming;
mod revocation;
mod server;
mod server_sessions;
mod session;
mod setting_names;
mod sha256;
mod signature;
mod ticket_keys;
mod ticket_rotation;
mod ticket_secrets;
mod tickets;
mod unbuffered;
mod verifier;

pub use certificate::Certificate;
pub use client::{Client, ClientSettings, Connector, PeerName};
pub use client_certificate::ClientCertificate;
pub use curves::{Curves, CurvesError, Unusable};
pub use error::{Fault, FileError, OfferError, SettingsError, TlsError, is_ca_as_server};
pub use facts::{Chain, Facts, HandshakeKind};
pub use identity::Identity;
pub use ocsp::Staple;
pub use offer::Offer;
pub use parameters::{Group, Suite, Version};
pub use pem::{authorities_in, chain_and_key};
pub use presented::{KeyName, Presented};
pub use revocation::{Revocation, RevocationList};
pub use rustls::time_provider::{DefaultTimeProvider as SystemTime, TimeProvider};
pub use rustls_pki_types::{CertificateDer, UnixTime};
pub use server::{Acceptor, ClientAuth, Server, ServerSettings};
pub use session::{Received, Session};
pub use setting_names::UnknownName;
pub use signature::Signature;
pub use ticket_rotation::{RotationError, TicketRotation, create_ticket_secrets, rotate_ticket_secrets};
pub use ticket_secrets::{
    SECRET_LEN as TICKET_SECRET_LEN, TicketSecrets, secret_of_process, take_secret_of_process,
};
pub use tickets::TicketCounts;
pub use verifier::Roots;
pub use zeroize::Zeroizing;
