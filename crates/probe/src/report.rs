//! The report of a probe. `docs/PROBE.md` documents its JSON.

use crate::answer::Ticket12;
use crate::certificate::Certificate;
use crate::names;
use crate::offers::{Found, Preference};
use crate::resume::Resumed;
use crate::tickets::Ticket13;
use crate::trust::Verification;
use serde::Serialize;

/// RFC 6928: ten segments of 1460 bytes, less the rest of a server's
/// first flight.
pub const INITIAL_WINDOW: usize = 14_000;

/// The report of a probe. `None` means not applicable or unknown.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Schema version: 1.
    pub schema: u32,
    /// The host as given.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The address and port connected to.
    pub address: String,
    /// How many addresses the host has.
    pub addresses: usize,
    /// The SNI sent (RFC 6066 3).
    pub server_name: Option<String>,
    /// Connections made.
    pub connections: u32,
    /// Duration in milliseconds.
    pub elapsed_ms: u64,
    /// The versions, newest first, with their offers.
    pub versions: Vec<VersionReport>,
    /// What is negotiated if the client leaves every choice to the server.
    pub negotiated: Option<Negotiated>,
    /// TLS 1.3: responses to a first key share.
    pub first_shares: Vec<FirstShare>,
    /// Application protocols.
    pub alpn: Option<Alpn>,
    /// Verification of the server's certificate.
    pub verification: Verification,
    /// The chains the server sends: usually one, else one per kind of key.
    pub chains: Vec<Chain>,
    /// Whether the server requests a client certificate.
    pub client_certificate: Option<ClientCertificate>,
    /// The tickets after a full TLS 1.3 handshake.
    pub tickets_13: Option<Tickets13>,
    /// What a full TLS 1.2 handshake offers for resumption.
    pub session_12: Option<Session12>,
    /// Resumption attempts.
    pub resumptions: Vec<Resumed>,
    /// What could not be determined, and why.
    pub notes: Vec<String>,
    /// Advice on trust and safety, with its evidence; `weir probe` adds that on costs.
    pub advice: Vec<String>,
    /// A command that loads this server with the negotiated parameters.
    pub load: Option<String>,
}

/// One version.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VersionReport {
    /// `1.3`, `1.2`, `1.1`, `1.0`.
    pub version: &'static str,
    /// Whether the server supports it.
    pub offered: bool,
    /// The server's response if it does not.
    pub refusal: Option<String>,
    /// The suites, in the order chosen by the server.
    pub suites: Vec<SuiteReport>,
    /// Whose preference decides.
    pub suite_preference: Option<Preference>,
    /// The groups, in the order chosen by the server.
    pub groups: Vec<String>,
    /// Whose preference decides.
    pub group_preference: Option<Preference>,
    /// The signature schemes, in the order chosen by the server; since TLS 1.2.
    pub signatures: Vec<String>,
    /// The size of the prime in bits, if the first suite chosen uses finite-field key exchange.
    pub prime_bits: Option<usize>,
    /// Why the lists may be incomplete.
    pub incomplete: Option<String>,
}

impl VersionReport {
    /// With these signature schemes.
    pub(crate) fn sign_by(&mut self, schemes: &Found) {
        self.signatures = schemes.numbers.iter().copied().map(names::scheme).collect();
        let lost = schemes.lost.as_ref().map(|why| format!("signatures: {why}"));
        self.incomplete = self.incomplete.take().or(lost);
    }
}

/// A suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuiteReport {
    /// The name for `weir load --suite`.
    pub name: String,
    /// IANA name.
    pub iana: &'static str,
    /// IANA number, such as `0x1301`.
    pub number: String,
}

impl SuiteReport {
    /// For this suite number.
    pub(crate) fn of(number: u16) -> Self {
        let iana = names::iana_name(number).unwrap_or_default();
        Self { name: names::suite(number), iana, number: format!("0x{number:04x}") }
    }
}

/// What was negotiated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Negotiated {
    /// The version.
    pub version: &'static str,
    /// The suite.
    pub suite: String,
    /// The group.
    pub group: Option<String>,
    /// The server's signature scheme.
    pub signature: Option<String>,
    /// Whether an X25519 key share got a HelloRetryRequest.
    pub hello_retry: bool,
}

/// The response to a client's first key share (RFC 8446 4.1.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstShare {
    /// The group of the share.
    pub group: String,
    /// The group requested by a HelloRetryRequest; `None` if the share was accepted.
    pub retry_to: Option<String>,
}

/// The ALPN protocol chosen by the server (RFC 7301): a name, `none`, or why there was no
/// handshake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alpn {
    /// When offered `h2` and `http/1.1`.
    pub both: String,
    /// When offered only `h2`.
    pub h2: String,
    /// When offered only `http/1.1`.
    pub http11: String,
}

/// A chain as sent by the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// Leaf first. Certificates that cannot be parsed are left out, with a note.
    pub certificates: Vec<Certificate>,
    /// Total DER size in bytes.
    pub bytes: usize,
    /// Whether it exceeds [`INITIAL_WINDOW`], which costs the handshake a round trip.
    pub over_initial_window: bool,
    /// Whether it includes the root, which clients already have.
    pub root_sent: bool,
    /// Size of the stapled OCSP response (RFC 6066 8) in bytes; 0 if none.
    pub ocsp_bytes: usize,
}

/// Whether the server requests a client certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientCertificate {
    /// It does not ask.
    NotAsked,
    /// It asks, and none was presented.
    AskedNonePresented,
    /// It asks, and one was presented.
    Presented,
}

/// TLS 1.3 tickets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tickets13 {
    /// Number of tickets.
    pub count: usize,
    /// The tickets.
    pub tickets: Vec<Ticket13>,
}

/// What a full TLS 1.2 handshake offers for resumption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Session12 {
    /// Session ID length in bytes for a client without tickets; 0 if none.
    pub id_bytes: usize,
    /// The ticket.
    pub ticket: Option<Ticket12>,
    /// Whether a handshake was completed; otherwise tickets are unknown.
    pub whole: bool,
}
