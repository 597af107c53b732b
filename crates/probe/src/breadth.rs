//! What a server offers, probed with hand-made ClientHellos, without finishing a handshake.

use crate::certificate::Certificate;
use crate::dial::Dialer;
use crate::names::{self, KeyAgreement};
use crate::offers::{Asked, Found, Preference, enumerate, preference};
use crate::report::{SuiteReport, VersionReport};
use crate::{Answer, AnswerError, ClientHello, Flight, Until, Version};
use aws_lc_rs::rand;
use std::io;

/// The offer of one version.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) version: Version,
    pub(crate) report: VersionReport,
    /// The suites and the groups by their numbers.
    pub(crate) suites: Vec<u16>,
    pub(crate) groups: Vec<u16>,
    /// The session ID length in response to a hello that offers everything, in bytes.
    pub(crate) session_id: usize,
}

/// The outcome of one ClientHello.
#[derive(Debug)]
pub(crate) enum Reply {
    Answer(Answer),
    /// The server closed the connection without an alert.
    Closed,
    /// No response, for a reason unrelated to the offer.
    Lost(String),
    Broken(AnswerError),
}

/// Probes a server with ClientHellos, each on a new connection.
pub(crate) struct Asker<'a> {
    pub(crate) dialer: &'a mut Dialer,
    pub(crate) server_name: Option<&'a str>,
    /// Every chain seen.
    pub(crate) chains: Vec<Vec<Vec<u8>>>,
}

/// More kinds of keys than any server has; beyond it, the server makes chains up.
const MAX_CHAINS: usize = 16;

impl Asker<'_> {
    /// The offer of one version. Returns the reply to the first hello if the version is not
    /// offered.
    pub(crate) fn version(&mut self, version: Version) -> Result<Offer, Reply> {
        let (suites, groups) = (version.suites(), version.groups());
        let schemes = names::SCHEMES.iter().map(|(number, _)| *number).collect::<Vec<_>>();
        let all = ClientHello {
            version,
            random: [0; 64],
            suites: &suites,
            groups: &groups,
            schemes: &schemes,
            server_name: self.server_name,
        };
        let first = match self.ask(all, Until::HelloDone) {
            Reply::Answer(Answer::Flight(flight)) if flight.version == version.number() => flight,
            reply => return Err(reply),
        };
        let mut ask = |suites: &[u16]| {
            self.choice(ClientHello { suites, ..all }, Until::Hello, |flight| Some(flight.suite))
        };
        let suites = enumerate(&suites, &mut ask);
        let is_chacha = |suite| names::iana_name(suite).is_some_and(|name| name.contains("CHACHA20"));
        let suite_preference = preference(&suites.numbers, is_chacha, &mut ask);
        let (groups, group_preference) = match version {
            Version::Tls13 => self.groups(all, Until::Hello),
            _ => self.groups_12(ClientHello { suites: &with(&suites.numbers, is_ecdhe), ..all }),
        };
        let schemes = match version {
            Version::Tls12 => {
                self.schemes_12(ClientHello { suites: &with(&suites.numbers, is_signed), ..all })
            }
            _ => Found::default(),
        };
        let lost = [("suites", &suites.lost), ("groups", &groups.lost)];
        let mut report = VersionReport {
            version: version.name(),
            offered: true,
            suites: suites.numbers.iter().copied().map(SuiteReport::of).collect(),
            suite_preference,
            groups: groups.numbers.iter().copied().map(names::group).collect(),
            group_preference,
            prime_bits: first.prime_bits,
            incomplete: lost.iter().find_map(|(what, lost)| Some(format!("{what}: {}", lost.as_ref()?))),
            ..VersionReport::default()
        };
        report.sign_by(&schemes);
        let (suites, groups) = (suites.numbers, groups.numbers);
        Ok(Offer { version, report, suites, groups, session_id: first.session_id })
    }

    fn groups(&mut self, hello: ClientHello<'_>, until: Until) -> (Found, Option<Preference>) {
        let mut ask =
            |groups: &[u16]| self.choice(ClientHello { groups, ..hello }, until, |flight| flight.group);
        let found = enumerate(hello.groups, &mut ask);
        let preference = preference(&found.numbers, |_| false, &mut ask);
        (found, preference)
    }

    /// Before TLS 1.3 the list of groups also limits the curves of certificate keys (RFC 8422
    /// 5.1), so without the certificate's curve everything is refused. The remaining groups are then offered
    /// together with that curve.
    fn groups_12(&mut self, hello: ClientHello<'_>) -> (Found, Option<Preference>) {
        if hello.suites.is_empty() {
            return (Found::default(), None);
        }
        let (mut found, preference) = self.groups(hello, Until::HelloDone);
        if let Some(curve) = self.certificate_curve().filter(|curve| found.numbers.contains(curve)) {
            for &group in hello.groups {
                if found.lost.is_some() || found.numbers.contains(&group) {
                    continue;
                }
                let both = ClientHello { groups: &[group, curve], ..hello };
                match self.choice(both, Until::HelloDone, |flight| flight.group) {
                    Asked::Chose(chosen) if chosen == group => found.numbers.push(group),
                    Asked::Lost(why) => found.lost = Some(why),
                    Asked::Chose(_) | Asked::Refused => {}
                }
            }
        }
        (found, preference)
    }

    fn schemes_12(&mut self, hello: ClientHello<'_>) -> Found {
        if hello.suites.is_empty() {
            return Found::default();
        }
        enumerate(hello.schemes, |schemes| {
            self.choice(ClientHello { schemes, ..hello }, Until::HelloDone, |flight| flight.scheme)
        })
    }

    fn certificate_curve(&self) -> Option<u16> {
        let leaves = self.chains.iter().filter_map(|chain| Certificate::read(chain.first()?, 0).ok());
        let mut curves = leaves.filter_map(|leaf| Some(leaf.key.strip_prefix("ecdsa ")?.to_owned()));
        let curve = curves.next()?;
        names::GROUPS.iter().find(|(_, name)| **name == curve).map(|(number, _)| *number)
    }

    fn choice(
        &mut self,
        hello: ClientHello<'_>,
        until: Until,
        of: impl FnOnce(&Flight) -> Option<u16>,
    ) -> Asked {
        match self.ask(hello, until) {
            Reply::Answer(Answer::Flight(flight)) if flight.version == hello.version.number() => {
                of(&flight).map_or(Asked::Refused, Asked::Chose)
            }
            Reply::Answer(_) | Reply::Closed => Asked::Refused,
            Reply::Lost(why) => Asked::Lost(why),
            Reply::Broken(error) => Asked::Lost(error.to_string()),
        }
    }

    fn ask(&mut self, mut hello: ClientHello<'_>, until: Until) -> Reply {
        if rand::fill(&mut hello.random).is_err() {
            return Reply::Lost("no random bytes".to_owned());
        }
        let record = hello.record();
        let mut reply = self.reply(&record, until);
        if matches!(reply, Reply::Closed | Reply::Lost(_)) {
            // A connection limit or a restarting worker looks the same, once.
            reply = self.reply(&record, until);
        }
        if let Reply::Answer(Answer::Flight(Flight { chain, .. })) = &reply
            && !chain.is_empty()
            && self.chains.len() < MAX_CHAINS
            && !self.chains.contains(chain)
        {
            self.chains.push(chain.clone());
        }
        reply
    }

    fn reply(&mut self, hello: &[u8], until: Until) -> Reply {
        match self.exchange(hello, until) {
            Ok(reply) => reply,
            // A server may also reset an offer it rejects.
            Err(error) if closed(&error) => Reply::Closed,
            Err(error) => Reply::Lost(error.to_string()),
        }
    }

    fn exchange(&mut self, hello: &[u8], until: Until) -> io::Result<Reply> {
        let mut connection = self.dialer.open()?;
        connection.send(hello)?;
        let mut received = Vec::new();
        loop {
            let length = connection.receive(&mut received)?;
            match Answer::read(&received, until) {
                Ok(Some(answer)) => return Ok(Reply::Answer(answer)),
                Ok(None) if length == 0 => return Ok(Reply::Closed),
                Ok(None) => {}
                Err(error) => return Ok(Reply::Broken(error)),
            }
        }
    }
}

impl Offer {
    /// A version that the server does not have.
    pub(crate) fn refused(version: Version, refusal: String) -> Self {
        let report =
            VersionReport { version: version.name(), refusal: Some(refusal), ..VersionReport::default() };
        Self { version, report, suites: Vec::new(), groups: Vec::new(), session_id: 0 }
    }
}

/// Whether the peer closed the connection, which means it rejected the offer.
pub(crate) fn closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn with(suites: &[u16], is: fn(KeyAgreement) -> bool) -> Vec<u16> {
    suites.iter().copied().filter(|suite| is(KeyAgreement::of(*suite))).collect()
}

fn is_ecdhe(agreement: KeyAgreement) -> bool {
    matches!(agreement, KeyAgreement::Ecdhe { .. })
}

fn is_signed(agreement: KeyAgreement) -> bool {
    matches!(agreement, KeyAgreement::Ecdhe { signed: true } | KeyAgreement::Dhe { signed: true })
}
