//! What a probe found out. `docs/PROBE.md` describes it as JSON.

use crate::answer::Ticket12;
use crate::certificate::Certificate;
use crate::names;
use crate::offers::{Found, Preference};
use crate::resume::Resumed;
use crate::tickets::Ticket13;
use crate::trust::Verification;
use serde::Serialize;

/// RFC 6928: ten segments of 1460 bytes, less what comes before and around the certificates in a server's
/// first flight.
pub const INITIAL_WINDOW: usize = 14_000;

/// All that was found out. What does not apply, or could not be found out, is `None`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The layout of this: 1.
    pub schema: u32,
    /// The host as it was given.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The address that was connected to, and its port.
    pub address: String,
    /// How many addresses the host has.
    pub addresses: usize,
    /// The name that was sent (RFC 6066 3).
    pub server_name: Option<String>,
    /// Connections made.
    pub connections: u32,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// The versions, newest first, and what is offered with each.
    pub versions: Vec<VersionReport>,
    /// What is negotiated with a client that leaves everything to the server.
    pub negotiated: Option<Negotiated>,
    /// TLS 1.3: what becomes of a first key share.
    pub first_shares: Vec<FirstShare>,
    /// Application protocols.
    pub alpn: Option<Alpn>,
    /// Whether the server's certificate is believed.
    pub verification: Verification,
    /// The chains that the server shows, one for most; with keys of several kinds one for each.
    pub chains: Vec<Chain>,
    /// Whether the server wants to know the client.
    pub client_certificate: Option<ClientCertificate>,
    /// The tickets after a full handshake of TLS 1.3.
    pub tickets_13: Option<Tickets13>,
    /// What a full handshake of TLS 1.2 gives to resume with.
    pub session_12: Option<Session12>,
    /// Resumption, tried.
    pub resumptions: Vec<Resumed>,
    /// What could not be found out, and why.
    pub notes: Vec<String>,
    /// What to change, each with what it rests on.
    pub advice: Vec<String>,
    /// A command that loads this server with the factors pinned.
    pub load: Option<String>,
}

/// One version.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VersionReport {
    /// `1.3`, `1.2`, `1.1`, `1.0`.
    pub version: &'static str,
    /// Whether the server has it.
    pub offered: bool,
    /// What the server answered where it does not.
    pub refusal: Option<String>,
    /// The suites, in the order in which the server chose them.
    pub suites: Vec<SuiteReport>,
    /// Whose order decides among them.
    pub suite_preference: Option<Preference>,
    /// The groups, in the order in which the server chose them.
    pub groups: Vec<String>,
    /// Whose order decides among them.
    pub group_preference: Option<Preference>,
    /// The signature schemes, in the order in which the server chose them; not before TLS 1.2.
    pub signatures: Vec<String>,
    /// The bits of the prime, where a suite with a key exchange in a prime field was chosen first.
    pub prime_bits: Option<usize>,
    /// Why the lists may have more.
    pub incomplete: Option<String>,
}

impl VersionReport {
    /// With the signature schemes that were found.
    pub(crate) fn sign_by(&mut self, schemes: &Found) {
        self.signatures = schemes.numbers.iter().copied().map(names::scheme).collect();
        let lost = schemes.lost.as_ref().map(|why| format!("signatures: {why}"));
        self.incomplete = self.incomplete.take().or(lost);
    }
}

/// A suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuiteReport {
    /// As `weir load --suite` takes it.
    pub name: String,
    /// In the IANA registry.
    pub iana: &'static str,
    /// In the IANA registry, such as `0x1301`.
    pub number: String,
}

impl SuiteReport {
    /// Of the suite of this number.
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
    /// How the server signed.
    pub signature: Option<String>,
    /// Whether it took a HelloRetryRequest, with a key share for X25519.
    pub hello_retry: bool,
}

/// What becomes of a client's first key share (RFC 8446 4.1.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstShare {
    /// The group of the share.
    pub group: String,
    /// The group that a HelloRetryRequest asked for instead; `None`: the share was taken.
    pub retry_to: Option<String>,
}

/// What the server chooses of application protocols (RFC 7301): a name, `none`, or why there was no
/// handshake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alpn {
    /// When offered `h2` and `http/1.1`.
    pub both: String,
    /// When offered `h2` alone.
    pub h2: String,
    /// When offered `http/1.1` alone.
    pub http11: String,
}

/// A chain as the server shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// Leaf first. What cannot be read is left out, with a note.
    pub certificates: Vec<Certificate>,
    /// All of it in DER, in bytes.
    pub bytes: usize,
    /// Whether it is longer than [`INITIAL_WINDOW`], so that the handshake takes a round trip more.
    pub over_initial_window: bool,
    /// Whether the root is among it, which every client that can use it has.
    pub root_sent: bool,
    /// The stapled status (RFC 6066 8), in bytes; 0: none.
    pub ocsp_bytes: usize,
}

/// Whether the server wants to know the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientCertificate {
    /// It does not ask.
    NotAsked,
    /// It asks, and there was none to present.
    AskedNonePresented,
    /// It asks, and was presented one.
    Presented,
}

/// Tickets of TLS 1.3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tickets13 {
    /// How many.
    pub count: usize,
    /// Each of them.
    pub tickets: Vec<Ticket13>,
}

/// What a full handshake of TLS 1.2 gives to resume with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Session12 {
    /// The session identifier, in bytes, to a client that takes no ticket; 0: none.
    pub id_bytes: usize,
    /// The ticket.
    pub ticket: Option<Ticket12>,
    /// Whether a whole handshake was made; without one nothing is known of tickets.
    pub whole: bool,
}
