//! What a TLS server offers and negotiates: the check before a load run.
//!
//! [`probe`] works in two ways. Breadth: hand-made ClientHellos ([`ClientHello`], [`Answer`]) that
//! offer one item less each time, for versions 1.0 to 1.3 and suites that no current library supports; the
//! connection ends with the server's first flight. Depth: full handshakes, for the chain, ALPN, tickets and
//! resumption.
//!
//! The crate uses rustls directly, not `weir-tls`, for the handshakes: a gateway does not need what a probe
//! must see (untrusted certificates, schemes offered one by one, single
//! tickets), and `weir-tls` would expose it only for the probe. The names of suites and groups are
//! those of `weir-tls`.
//!
//! Connections are sequential, to one address, each with a deadline: one per suite, group
//! and signature scheme of a version and a few more, about 30 to 170 in total, and at most two per resumption
//! attempt. [`Options::most_connections`] is the limit.

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
