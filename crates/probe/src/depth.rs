//! What a server negotiates, probed with full handshakes.

use crate::breadth::Offer;
use crate::dial::Dialer;
use crate::handshake::{Failed, Setup, config, handshake, has_group};
use crate::names;
use crate::offers::{Asked, Found, enumerate};
use crate::report::{Alpn, ClientCertificate, FirstShare, Negotiated, Session12, Tickets13};
use crate::resume::{Resumed, resume};
use crate::tickets::TicketReader;
use crate::trust::Trust;
use crate::{Answer, ProbeError, Until, Version};
use rustls::client::{Resumption, Tls12Resumption};
use rustls::{HandshakeKind, SignatureScheme};
use weir_tls::{HandshakeKind as Kind, Suite};

/// Maximum number of tickets counted.
const MAX_TICKETS: usize = 64;

/// Results of full handshakes.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    pub(crate) negotiated: Option<Negotiated>,
    pub(crate) first_shares: Vec<FirstShare>,
    pub(crate) schemes_13: Found,
    pub(crate) alpn: Option<Alpn>,
    pub(crate) client_certificate: Option<ClientCertificate>,
    pub(crate) tickets_13: Option<Tickets13>,
    pub(crate) session_12: Option<Session12>,
    pub(crate) resumptions: Vec<Resumed>,
    /// Chains with their stapled status.
    pub(crate) chains: Vec<(Vec<Vec<u8>>, Vec<u8>)>,
    pub(crate) notes: Vec<String>,
}

pub(crate) struct Looker<'a> {
    pub(crate) trust: &'a Trust,
    pub(crate) dialer: &'a mut Dialer,
    pub(crate) found: Depth,
}

impl Looker<'_> {
    /// Everything observable with these versions.
    pub(crate) fn look(mut self, offers: &[Offer], tries: u32) -> Result<Depth, ProbeError> {
        let offered = |version| offers.iter().find(|offer| offer.version == version && offer.report.offered);
        let (tls12, tls13) = (offered(Version::Tls12), offered(Version::Tls13));
        if tls12.is_none() && tls13.is_none() {
            self.found.notes.push("no version for which a handshake could be completed".to_owned());
            return Ok(self.found);
        }
        self.negotiate(offers)?;
        if self.found.negotiated.is_none() {
            return Ok(self.found);
        }
        self.protocols()?;
        if let Some(offer) = tls13 {
            self.shares(&offer.groups)?;
            self.schemes()?;
            self.tickets()?;
        }
        if let Some(offer) = tls12 {
            self.session_12(offer.session_id)?;
        }
        self.resumptions(tls12.is_some(), tls13.is_some(), tries)?;
        Ok(self.found)
    }

    /// A handshake that leaves every choice to the server.
    fn negotiate(&mut self, offers: &[Offer]) -> Result<(), ProbeError> {
        let witness = self.trust.witness(&[]);
        let config = config(self.trust, &witness, Setup::default(), Resumption::disabled())?;
        match handshake(self.dialer, &config, &self.trust.name) {
            Ok(session) => {
                let seen = witness.seen();
                let tls = &session.tls;
                let group = tls.negotiated_key_exchange_group().map(|group| u16::from(group.name()));
                self.found.negotiated = Some(Negotiated {
                    version: tls
                        .protocol_version()
                        .and_then(|version| Version::of(version.into()))
                        .map_or("", Version::name),
                    suite: names::suite(
                        tls.negotiated_cipher_suite().map_or(0, |suite| suite.suite().into()),
                    ),
                    group: group.map(names::group),
                    signature: seen.scheme.map(|scheme| names::scheme(scheme.into())),
                    hello_retry: tls.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest),
                });
                self.found.client_certificate = Some(match seen.asks_certificate {
                    false => ClientCertificate::NotAsked,
                    true if self.trust.presents_certificate() => ClientCertificate::Presented,
                    true => ClientCertificate::AskedNonePresented,
                });
                self.keep(seen.chain, seen.ocsp);
                session.finish();
            }
            Err(why) => {
                let seen = witness.seen();
                if seen.asks_certificate && !self.trust.presents_certificate() {
                    self.found.client_certificate = Some(ClientCertificate::AskedNonePresented);
                }
                self.keep(seen.chain, seen.ocsp);
                let lacks =
                    if in_common(offers) { "" } else { "; rustls has no suite or group of the server's" };
                self.found.notes.push(format!("no handshake completed: {why}{lacks}"));
            }
        }
        Ok(())
    }

    fn protocols(&mut self) -> Result<(), ProbeError> {
        let both = self.protocol(&["h2", "http/1.1"])?;
        let h2 = self.protocol(&["h2"])?;
        let http11 = self.protocol(&["http/1.1"])?;
        self.found.alpn = Some(Alpn { both, h2, http11 });
        Ok(())
    }

    /// The protocol chosen from these; `none` if the server continues without one.
    fn protocol(&mut self, alpn: &[&str]) -> Result<String, ProbeError> {
        let setup = Setup { alpn, ..Setup::default() };
        let config = config(self.trust, &self.trust.witness(&[]), setup, Resumption::disabled())?;
        Ok(match handshake(self.dialer, &config, &self.trust.name) {
            Ok(session) => {
                let chosen = session.tls.alpn_protocol().map(|name| name.escape_ascii().to_string());
                session.finish();
                chosen.unwrap_or_else(|| "none".to_owned())
            }
            Err(why) => why.to_string(),
        })
    }

    /// Which first key shares get a HelloRetryRequest.
    fn shares(&mut self, groups: &[u16]) -> Result<(), ProbeError> {
        let known = groups.iter().copied().filter(|group| has_group(*group)).collect::<Vec<_>>();
        for &first in &known {
            // rustls would also send a share for a hybrid's classical half, if offered.
            let half = match first {
                0x11ec => 0x001d,
                0x11eb => 0x0017,
                _ => 0,
            };
            let mut groups = vec![first];
            groups.extend(known.iter().filter(|group| ![first, half].contains(group)));
            let setup = Setup { version: Some(&rustls::version::TLS13), groups: &groups, ..Setup::default() };
            let config = config(self.trust, &self.trust.witness(&[]), setup, Resumption::disabled())?;
            match handshake(self.dialer, &config, &self.trust.name) {
                Ok(session) => {
                    let group = session.tls.negotiated_key_exchange_group().map(|group| group.name().into());
                    let retried =
                        session.tls.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest);
                    session.finish();
                    let retry_to = group.filter(|_| retried).map(names::group);
                    self.found.first_shares.push(FirstShare { group: names::group(first), retry_to });
                }
                Err(why) => self.found.notes.push(format!("first share {}: {why}", names::group(first))),
            }
        }
        Ok(())
    }

    /// TLS 1.3 signature schemes. They are encrypted, so this takes a handshake each.
    fn schemes(&mut self) -> Result<(), ProbeError> {
        let provider = self.trust.provider.signature_verification_algorithms.supported_schemes();
        let mut all = Vec::new();
        for (number, _) in names::SCHEMES {
            // RFC 8446 4.2.3: PKCS#1 1.5 is only for certificates.
            let fits = !matches!(number, 0x0201 | 0x0301 | 0x0401 | 0x0501 | 0x0601);
            if fits && provider.contains(&SignatureScheme::from(*number)) {
                all.push(*number);
            }
        }
        let setup = Setup { version: Some(&rustls::version::TLS13), ..Setup::default() };
        let mut failure = None;
        let found = enumerate(&all, |schemes| {
            let schemes = schemes.iter().copied().map(SignatureScheme::from).collect::<Vec<_>>();
            let witness = self.trust.witness(&schemes);
            let config = match config(self.trust, &witness, setup, Resumption::disabled()) {
                Ok(config) => config,
                Err(error) => {
                    failure = Some(error);
                    return Asked::Refused;
                }
            };
            let outcome = handshake(self.dialer, &config, &self.trust.name);
            let seen = witness.seen();
            match outcome {
                Ok(session) => {
                    self.keep(seen.chain, seen.ocsp);
                    session.finish();
                    seen.scheme.map_or(Asked::Refused, |scheme| Asked::Chose(scheme.into()))
                }
                Err(Failed::Refused(_)) => Asked::Refused,
                Err(Failed::Lost(why)) => Asked::Lost(why),
            }
        });
        self.found.schemes_13 = found;
        failure.map_or(Ok(()), Err)
    }

    /// The tickets of one full handshake.
    fn tickets(&mut self) -> Result<(), ProbeError> {
        let setup = Setup { version: Some(&rustls::version::TLS13), ..Setup::default() };
        let config = config(self.trust, &self.trust.witness(&[]), setup, Resumption::disabled())?;
        let session = match handshake(self.dialer, &config, &self.trust.name) {
            Ok(session) => session,
            Err(why) => {
                self.found.notes.push(format!("tickets: {why}"));
                return Ok(());
            }
        };
        let (mut received, mut connection, patience) =
            (session.received, session.connection, session.patience);
        let secrets = session.tls.dangerous_extract_secrets().map_err(internal)?.rx;
        let mut reader = TicketReader::new(secrets.0, &secrets.1)
            .ok_or_else(|| ProbeError::Internal("keys of an unknown kind".to_owned()))?;
        reader.read(&mut received);
        let mut read = 0;
        while !reader.ended && reader.tickets.len() < MAX_TICKETS && read < crate::MAX_ANSWER {
            match connection.receive_within(&mut received, patience) {
                Ok(length) if length > 0 => {
                    read += length;
                    reader.read(&mut received);
                }
                _ => break,
            }
        }
        connection.finish(patience);
        if let Some(alert) = reader.alert {
            self.found.notes.push(format!("alert {alert} after the TLS 1.3 handshake"));
            // A server that rejects this client sends it no tickets, which says nothing about other clients.
            if reader.tickets.is_empty() {
                return Ok(());
            }
        }
        self.found.tickets_13 = Some(Tickets13 { count: reader.tickets.len(), tickets: reader.tickets });
        Ok(())
    }

    /// What a full TLS 1.2 handshake offers for resumption: a session ID (without the ticket extension), a
    /// ticket.
    fn session_12(&mut self, id_bytes: usize) -> Result<(), ProbeError> {
        // Without a store rustls does not request a ticket.
        let store = Resumption::in_memory_sessions(1).tls12_resumption(Tls12Resumption::SessionIdOrTickets);
        let setup = Setup { version: Some(&rustls::version::TLS12), ..Setup::default() };
        let config = config(self.trust, &self.trust.witness(&[]), setup, store)?;
        let (ticket, note) = match handshake(self.dialer, &config, &self.trust.name) {
            Ok(session) => {
                let ticket = match Answer::read(&session.answer, Until::Encrypted) {
                    Ok(Some(Answer::Flight(flight))) => flight.ticket,
                    _ => None,
                };
                session.finish();
                (ticket, None)
            }
            Err(why) => (None, Some(format!("no TLS 1.2 handshake completed: {why}"))),
        };
        let whole = note.is_none();
        self.found.notes.extend(note);
        self.found.session_12 = Some(Session12 { id_bytes, ticket, whole });
        Ok(())
    }

    fn resumptions(&mut self, tls12: bool, tls13: bool, tries: u32) -> Result<(), ProbeError> {
        let session = self.found.session_12.as_ref();
        let whole = session.is_some_and(|session| session.whole);
        let absent_12 =
            if !tls12 { Some("no TLS 1.2") } else { (!whole).then_some("no handshake completed") };
        let kinds = [
            (
                Kind::Resume13Psk,
                match &self.found.tickets_13 {
                    _ if !tls13 => Some("no TLS 1.3"),
                    None => Some("no handshake completed"),
                    Some(tickets) => (tickets.count == 0).then_some("no ticket"),
                },
            ),
            (
                Kind::Resume12Ticket,
                absent_12.or(session.is_some_and(|s| s.ticket.is_none()).then_some("no ticket")),
            ),
            (
                Kind::Resume12Id,
                absent_12.or(session.is_some_and(|s| s.id_bytes == 0).then_some("no session ID")),
            ),
        ];
        for (kind, absent) in kinds {
            let resumed = match absent {
                Some(why) => Resumed::not(kind, why),
                None => resume(self.trust, self.dialer, kind, tries)?,
            };
            self.found.resumptions.push(resumed);
        }
        Ok(())
    }

    fn keep(&mut self, chain: Vec<Vec<u8>>, ocsp: Vec<u8>) {
        if !chain.is_empty() && !self.found.chains.iter().any(|(known, _)| *known == chain) {
            self.found.chains.push((chain, ocsp));
        }
    }
}

/// Whether rustls and the server have a suite and a group in common.
fn in_common(offers: &[Offer]) -> bool {
    let has_suite = |suite: &u16| Suite::ALL.iter().any(|known| known.name() == names::suite(*suite));
    offers
        .iter()
        .any(|offer| offer.suites.iter().any(has_suite) && offer.groups.iter().any(|group| has_group(*group)))
}

fn internal(error: rustls::Error) -> ProbeError {
    ProbeError::Internal(error.to_string())
}
