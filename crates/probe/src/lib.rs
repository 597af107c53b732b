//! What a TLS server offers and negotiates: the check before a load run.
//!
//! [`probe`] finds it out in two ways. Breadth: ClientHellos of our own ([`ClientHello`], [`Answer`]) that
//! offer one thing less each time, for versions 1.0 to 1.3 and suites that no library of today has; the
//! connection ends with the server's first flight. Depth: whole handshakes, for the chain, ALPN, tickets and
//! resumption.
//!
//! The crate uses rustls itself, not `weir-tls`, for the handshakes: a gateway has no need for what a probe
//! must see (the peer's certificates though they are not trusted, schemes offered one by one, single
//! tickets), and what shows it there would only be there for the probe. The names of suites and groups are
//! those of `weir-tls`.
//!
//! Connections are made one after the other, to one address, each with a deadline: one for each suite, group
//! and signature scheme of a version and a few more, some 30 to 170 in all, and two for each try of a
//! resumption at most. [`Options::most_connections`] is where it stops at the latest.

mod advice;
mod answer;
mod breadth;
mod certificate;
mod depth;
mod dial;
mod error;
mod handshake;
mod hello;
mod names;
mod offers;
mod options;
mod place;
mod probe;
mod report;
mod resume;
mod suites;
mod text;
mod tickets;
mod trust;
mod wire;

pub use answer::{Answer, AnswerError, Flight, MAX_ANSWER, Ticket12, Until};
pub use certificate::Certificate;
pub use error::ProbeError;
pub use hello::ClientHello;
pub use names::Version;
pub use offers::Preference;
pub use options::{Options, Sni};
pub use place::server;
pub use probe::probe;
pub use report::{
    Alpn, Chain, ClientCertificate, FirstShare, INITIAL_WINDOW, Negotiated, Report, Session12, SuiteReport,
    Tickets13, VersionReport,
};
pub use resume::Resumed;
pub use text::text;
pub use tickets::Ticket13;
pub use trust::Verification;
