//! The server side: one [`Server`] per process and identity, one [`Acceptor`] per core.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ServerConfig, StoresServerSessions, WebPkiClientVerifier};
use rustls::{NoKeyLog, RootCertStore, SignatureAlgorithm};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};

use crate::checked_parameters::{Parameters, checked_alpn, record_size, refused};
use crate::key_log::KeyLogFile;
use crate::pem::File;
use crate::resolver::Resolver;
use crate::server_sessions::{self, SessionStore};
use crate::setting_names::joined;
use crate::ticket_keys::{self, Binding, KeySpace};
use crate::ticket_secrets::TicketSecrets;
use crate::tickets::{CoreTickets, TicketCounts};
use crate::{
    Certificate, Curves, Group, Identity, OfferError, Revocation, Session, SettingsError, Suite, SystemTime,
    TimeProvider, Version, unbuffered,
};

/// The maximum number of tickets: more than any client stores, and few enough for one flight.
const MAX_TICKETS: u32 = 16;

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The certificate chains and their keys, at least one. Of the certificates that a client can verify, the server
    /// presents the one with the most specific name: an exact match, a wildcard, or else the first certificate. If
    /// several certificates with different kinds of keys have that name, the server presents the cheapest to sign with.
    pub identities: Vec<Identity>,
    /// Reject clients that send no name or an unknown one, instead of presenting the first certificate.
    /// Default: false.
    pub strict_names: bool,
    /// The accepted versions in any order; the server selects the highest common one. Default: both.
    pub versions: Vec<Version>,
    /// The accepted suites, most preferred first. Default: [`Suite::ALL`].
    pub suites: Vec<Suite>,
    /// Select the suite by the client's preference, not by the order of `suites`. Default: true.
    pub clients_order: bool,
    /// The accepted groups, most preferred first. Default: [`Group::DEFAULT`].
    pub groups: Vec<Group>,
    /// The implementation of curve arithmetic. Default: AWS-LC.
    pub curves: Curves,
    /// The application protocols (RFC 7301), most preferred first; empty disables ALPN. Default: empty.
    pub alpn: Vec<Vec<u8>>,
    /// Tickets sent after each TLS 1.3 handshake, full or resumed; at most 16. With 0, the server issues no
    /// tickets in either version: TLS 1.3 clients cannot resume, and TLS 1.2 clients resume by session ID.
    ///
    /// Default: 1. Each handshake gives the client a new ticket, so a client that returns with the same number of
    /// connections resumes all of them. Each ticket adds about 3 % to the instructions of a full handshake.
    pub tickets: u32,
    /// The time for which the server issues tickets with one key: a minute to 3.5 days. A ticket stays valid for at
    /// least this time and less than twice this time (RFC 8446 section 4.6.1 allows up to 7 days); a stored session
    /// lives for this time. Default: 12 hours.
    pub ticket_lifetime: Duration,
    /// A file with hexadecimal secrets, one per line, of at least 32 bytes each. The server derives the keys that issue
    /// tickets from the first secret and the clock, and opens tickets with the keys of all secrets. So all machines
    /// with the file accept each other's tickets. The file is read once: see [`Server::replace_ticket_secrets`].
    /// Default: a random secret per process.
    pub ticket_secrets: Option<PathBuf>,
    /// The maximum number of stored sessions, for TLS 1.2 clients without tickets and for `stateful`. Default: 32 768.
    pub sessions: usize,
    /// Keep sessions in this process's memory instead of in tickets: TLS 1.2 clients resume by session ID; a
    /// TLS 1.3 ticket is the ID of a stored session and works once. Default: false.
    pub stateful: bool,
    /// Whether clients can resume sessions. Default: true.
    pub resumption: bool,
    /// Ask clients for a certificate. Default: none.
    pub client_auth: Option<ClientAuth>,
    /// The maximum application data per record: 512 to 16 384 bytes. A client cannot use a record before it
    /// has received all of it. Default: 16 384, the maximum in TLS (RFC 8446 section 5.1).
    pub record_size: usize,
    /// A file to append each session's secrets to, in the NSS key log format. Only for debugging, since the file allows
    /// decrypting the traffic. Created with mode 0600. Default: none.
    pub key_log: Option<PathBuf>,
    /// The wall clock. Default: the system's.
    pub time: Arc<dyn TimeProvider>,
}

/// The requirements for client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuth {
    /// A PEM file with the CAs that issue client certificates.
    pub roots: PathBuf,
    /// PEM files with revocation lists. The server rejects the certificates that these lists revoke.
    pub crls: Vec<PathBuf>,
    /// Accept certificates even if the next revocation list of their CA is overdue. Otherwise the server
    /// rejects them, as OpenSSL's servers do, since the outdated list may lack a revoked certificate.
    pub expired_crls: bool,
    /// Reject clients without a certificate.
    pub required: bool,
}

impl ClientAuth {
    /// Requires a certificate from the CAs in this file.
    pub fn required(roots: impl Into<PathBuf>) -> Self {
        Self { roots: roots.into(), crls: Vec::new(), expired_crls: false, required: true }
    }
}

impl ServerSettings {
    /// The default of [`ServerSettings::tickets`].
    pub const TICKETS: u32 = 1;
    /// The default of [`ServerSettings::ticket_lifetime`].
    pub const TICKET_LIFETIME: Duration = ticket_keys::LIFETIME;
    /// The valid values of [`ServerSettings::ticket_lifetime`]. With less than a minute, hardly any client returns in
    /// time.
    pub const TICKET_LIFETIMES: RangeInclusive<Duration> =
        Duration::from_secs(60)..=Duration::from_secs(84 * 3600);
    /// The default of [`ServerSettings::sessions`].
    pub const SESSIONS: usize = server_sessions::SESSIONS;

    /// The defaults for a server that presents `identity`.
    pub fn new(identity: Identity) -> Self {
        Self { identities: vec![identity], ..Self::default() }
    }
}

impl Default for ServerSettings {
    /// The defaults, without identities: for [`Server::with_certificates`].
    fn default() -> Self {
        Self {
            identities: Vec::new(),
            strict_names: false,
            versions: Version::ALL.to_vec(),
            suites: Suite::ALL.to_vec(),
            clients_order: true,
            groups: Group::DEFAULT.to_vec(),
            curves: Curves::default(),
            alpn: Vec::new(),
            tickets: Self::TICKETS,
            ticket_lifetime: Self::TICKET_LIFETIME,
            ticket_secrets: None,
            sessions: Self::SESSIONS,
            stateful: false,
            resumption: true,
            client_auth: None,
            record_size: unbuffered::RECORD_PLAINTEXT,
            key_log: None,
            time: Arc::new(SystemTime),
        }
    }
}

/// The process-wide part of a server: certificates, ticket keys and stored sessions. Cheap to clone.
///
/// Two servers of one process with the same ticket secrets and lifetime share ticket keys if and only if they have the
/// same policy for client certificates. Each of them then accepts the other's ticket if one of its certificates covers
/// the ticket's server name. If none does, or the client sent no name, the default certificates of both servers must
/// have the same names.
#[derive(Clone, Debug)]
pub struct Server {
    /// The rustls configuration, complete except for the per-core part.
    template: Arc<ServerConfig>,
    resolver: Arc<Resolver>,
    certificates: Arc<[Certificate]>,
    /// The digest of the policy for client certificates.
    client_policy: digest::Digest,
    /// The settings without the identities, which may contain keys.
    settings: Arc<ServerSettings>,
    revocation: Arc<Revocation>,
    tickets: Option<Tickets>,
    ticket_file: Option<PathBuf>,
}

impl Server {
    /// Reads certificates, keys and client CAs, and checks the settings. Fails if a file is unusable or a setting is
    /// invalid.
    pub fn new(settings: &ServerSettings) -> Result<Self, SettingsError> {
        let load = |identity| {
            let certificate = Certificate::load(identity, &*settings.time)?;
            certificate.prepare(identity, settings.curves)?;
            Ok::<_, SettingsError>(certificate)
        };
        let certificates = settings.identities.iter().map(load).collect::<Result<_, _>>()?;
        Self::with_certificates(settings, certificates)
    }

    /// As [`Server::new`], but presents these certificates instead of `settings.identities`. Also fails if a
    /// certificate is not [prepared](Certificate::prepare) for `settings.curves`.
    pub fn with_certificates(
        settings: &ServerSettings,
        certificates: Vec<Certificate>,
    ) -> Result<Self, SettingsError> {
        let ServerSettings { versions, suites, groups, curves, .. } = settings;
        let parameters = Parameters::new(versions, suites, groups, *curves)?;
        if settings.tickets > MAX_TICKETS {
            return Err(OfferError::TooManyTickets { tickets: settings.tickets, most: MAX_TICKETS }.into());
        }
        let resolver = resolver(&certificates, settings)?;
        let client_auth = settings.client_auth.as_ref().map(Trusted::read).transpose()?;
        if !ServerSettings::TICKET_LIFETIMES.contains(&settings.ticket_lifetime) {
            return Err(OfferError::TicketLifetime { lifetime: settings.ticket_lifetime }.into());
        }
        let secrets = settings.ticket_secrets.as_deref().map(TicketSecrets::read).transpose()?;
        let client_policy = client_policy(client_auth.as_ref());
        let space = KeySpace::of_policy(client_policy, secrets, settings.ticket_lifetime)
            .ok_or_else(|| SettingsError::Refused("the system provides no random bytes".to_owned()))?;
        let uncovered = uncovered(&certificates);

        let provider = Arc::new(parameters.provider);
        let builder = ServerConfig::builder_with_details(provider.clone(), settings.time.clone())
            .with_protocol_versions(&parameters.versions)
            .map_err(refused)?;
        let mut revocation = Revocation::default();
        let builder = match client_auth {
            None => builder.with_no_client_auth(),
            Some(trusted) => {
                revocation = trusted.revocation.clone();
                builder.with_client_cert_verifier(trusted.verifier(provider)?)
            }
        };
        let mut config = builder.with_cert_resolver(resolver.clone());
        config.alpn_protocols = checked_alpn(&settings.alpn)?;
        match &settings.key_log {
            Some(path) => config.key_log = Arc::new(KeyLogFile::open(path)?),
            None => config.key_log = Arc::new(NoKeyLog),
        }
        config.session_storage = session_storage(settings);
        config.ignore_client_order = !settings.clients_order;
        config.max_fragment_size = Some(record_size(settings.record_size)?);
        // Never accept early data: an attacker can replay it (RFC 8446 section 8), and HTTP servers must know
        // that they receive it (RFC 8470).
        config.max_early_data_size = 0;
        config.send_tls13_tickets = if settings.resumption { settings.tickets as usize } else { 0 };
        let stateless = settings.resumption && !settings.stateful && settings.tickets > 0;
        Ok(Self {
            template: Arc::new(config),
            resolver,
            certificates: certificates.into(),
            client_policy,
            settings: Arc::new(ServerSettings { identities: Vec::new(), ..settings.clone() }),
            revocation: Arc::new(revocation),
            ticket_file: settings.ticket_secrets.clone().filter(|_| stateless),
            tickets: stateless.then(|| Tickets { space, uncovered, time: settings.time.clone() }),
        })
    }

    /// Returns this server with other certificates. It keeps the client CAs, the ticket keys and the current secrets,
    /// but no stored sessions, since these belong to the old certificates. Fails if two certificates for one name have
    /// the same kind of key, no certificate fits the suites, or a certificate is not [prepared](Certificate::prepare)
    /// for the curves.
    pub fn presenting(&self, certificates: Vec<Certificate>) -> Result<Self, SettingsError> {
        let resolver = resolver(&certificates, &self.settings)?;
        let mut config = ServerConfig::clone(&self.template);
        config.cert_resolver = resolver.clone();
        config.session_storage = session_storage(&self.settings);
        let uncovered = uncovered(&certificates);
        let tickets = self.tickets.clone().map(|tickets| Tickets { uncovered, ..tickets });
        Ok(Self {
            template: Arc::new(config),
            resolver,
            certificates: certificates.into(),
            tickets,
            ..self.clone()
        })
    }

    /// The file of ticket secrets, if set and the server issues tickets.
    pub fn ticket_file(&self) -> Option<&Path> {
        self.ticket_file.as_deref()
    }

    /// The current secrets; `None` if the server issues no tickets.
    pub fn ticket_secrets(&self) -> Option<TicketSecrets> {
        self.tickets.as_ref().map(|tickets| tickets.space.secrets().get().1)
    }

    /// Makes all cores of this server and of its clones issue and open tickets with these secrets, even in
    /// handshakes in progress. Does nothing if the server issues no tickets.
    pub fn replace_ticket_secrets(&self, secrets: &TicketSecrets) {
        if let Some(tickets) = &self.tickets {
            tickets.space.secrets().replace(secrets);
        }
    }

    /// The certificates, in the order of the settings.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// The revocation lists for client certificates.
    pub fn revocation(&self) -> &Revocation {
        &self.revocation
    }

    /// Creates one core's part, with its own snapshot of the ticket keys.
    pub fn core(&self) -> Acceptor {
        let mut config = ServerConfig::clone(&self.template);
        let tickets = self.tickets.as_ref().map(|Tickets { space, uncovered, time }| {
            let tickets = Arc::new(CoreTickets::new(space.clone(), *uncovered, time.clone()));
            config.ticketer = tickets.clone();
            tickets
        });
        let resolver = Arc::clone(&self.resolver);
        let (of, client_policy) = (Arc::clone(&self.template), self.client_policy);
        Acceptor { of, client_policy, config: Arc::new(config), resolver, tickets }
    }
}

/// One core's part of a [`Server`].
#[derive(Clone, Debug)]
pub struct Acceptor {
    /// The configuration of the server that created this acceptor, for [`Acceptor::is_of`].
    of: Arc<ServerConfig>,
    client_policy: digest::Digest,
    config: Arc<ServerConfig>,
    resolver: Arc<Resolver>,
    tickets: Option<Arc<CoreTickets>>,
}

impl Acceptor {
    /// The server side of a new connection; it waits for the client's first bytes.
    pub fn accept(&self) -> Session {
        Session::server(self.config.clone())
    }

    /// Whether this acceptor belongs to `server` or a clone of it.
    pub fn is_of(&self, server: &Server) -> bool {
        Arc::ptr_eq(&self.of, &server.template)
    }

    /// Whether `server` has the same policy for client certificates: the same requirement, CAs and revocation lists,
    /// and the same rule for overdue lists.
    pub fn has_client_policy_of(&self, server: &Server) -> bool {
        self.client_policy.as_ref() == server.client_policy.as_ref()
    }

    /// Whether the server has several certificates, so that a client's server name may select one.
    pub fn has_choice(&self) -> bool {
        self.resolver.has_choice()
    }

    /// Whether the server has a certificate for `host`, but certificate number `certificate` does not cover `host`.
    /// `host` is in lower case and without a final dot.
    pub fn is_for_another(&self, certificate: u32, host: &str) -> bool {
        self.resolver.is_for_another(certificate, host)
    }

    /// The ticket counts of this core so far.
    pub fn tickets(&self) -> TicketCounts {
        self.tickets.as_ref().map(|tickets| tickets.counts()).unwrap_or_default()
    }
}

/// The contents of the files in a [`ClientAuth`].
struct Trusted {
    roots: RootCertStore,
    certificates: Vec<CertificateDer<'static>>,
    crls: Vec<CertificateRevocationListDer<'static>>,
    revocation: Revocation,
    expired_crls: bool,
    required: bool,
}

impl Trusted {
    fn read(auth: &ClientAuth) -> Result<Self, SettingsError> {
        let (roots, certificates) = File::read(&auth.roots)?.authorities()?;
        let mut crls = Vec::new();
        let mut revocation = Revocation::default();
        for path in &auth.crls {
            let file = File::read(path)?;
            for list in file.lists()? {
                revocation.add(&file, &list);
                crls.push(list.der);
            }
        }
        revocation.compare(&certificates);
        let &ClientAuth { required, expired_crls, .. } = auth;
        Ok(Self { roots, certificates, crls, revocation, expired_crls, required })
    }

    fn verifier(self, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, SettingsError> {
        let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(self.roots), provider);
        if !self.crls.is_empty() {
            // A CA's list does not cover certificates of other CAs, so a certificate without a list from its CA is
            // accepted.
            builder = builder.with_crls(self.crls).allow_unknown_revocation_status();
            if !self.expired_crls {
                builder = builder.enforce_revocation_expiration();
            }
        }
        if !self.required {
            builder = builder.allow_unauthenticated();
        }
        builder.build().map_err(|error| SettingsError::Refused(error.to_string()))
    }
}

/// The parts of [`CoreTickets`] that all cores share.
#[derive(Clone, Debug)]
struct Tickets {
    space: KeySpace,
    uncovered: Binding,
    time: Arc<dyn TimeProvider>,
}

/// Checks the certificates and indexes them by name. Fails as [`Server::presenting`] does.
fn resolver(certificates: &[Certificate], settings: &ServerSettings) -> Result<Arc<Resolver>, SettingsError> {
    check_keys_fit(certificates, settings)?;
    let curves = settings.curves;
    certificates.iter().try_for_each(|certificate| certificate.prepare_copy(curves))?;
    Ok(Arc::new(Resolver::new(certificates, settings)?))
}

fn session_storage(settings: &ServerSettings) -> Arc<dyn StoresServerSessions> {
    let ServerSettings { sessions, ticket_lifetime, time, .. } = settings;
    match settings.resumption {
        true => Arc::new(SessionStore::new(*sessions, *ticket_lifetime, Arc::clone(time))),
        false => Arc::new(NoServerSessionStorage {}),
    }
}

/// The binding of clients that send no server name, or one that no certificate covers: the names of the default
/// certificate, which a renewal keeps.
fn uncovered(certificates: &[Certificate]) -> Binding {
    let names = certificates.first().map(|default| &default.presented().names[..]).unwrap_or_default();
    let mut names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    names.sort_unstable();
    names.dedup();
    ticket_keys::bound_to(names)
}

/// The digest of the policy for clients: whether they need a certificate, their CAs, the revocation lists, and whether
/// these may be overdue. Ticket keys depend on this digest, so a client whose certificate has since been revoked cannot
/// resume. In other gateways, tickets that were valid under several policies have allowed clients to bypass one of
/// these policies. The server's certificates are not part of the digest, so that tickets survive renewals.
fn client_policy(client_auth: Option<&Trusted>) -> digest::Digest {
    let policy: &[u8] = match client_auth {
        None => b"",
        Some(Trusted { required: false, expired_crls: false, .. }) => b"client certificate optional",
        Some(Trusted { required: true, expired_crls: false, .. }) => b"client certificate required",
        Some(Trusted { required: false, expired_crls: true, .. }) => b"optional, list may be expired",
        Some(Trusted { required: true, expired_crls: true, .. }) => b"required, list may be expired",
    };
    let roots = client_auth.iter().flat_map(|trusted| &trusted.certificates).map(AsRef::as_ref);
    let crls = client_auth.iter().flat_map(|trusted| &trusted.crls).map(AsRef::as_ref);
    ticket_keys::digest_of(std::iter::once(policy).chain(roots).chain(crls))
}

/// Checks that there is a certificate, and that a TLS 1.3 suite is enabled or a TLS 1.2 suite fits a certificate's key:
/// otherwise the server would reject every client.
fn check_keys_fit(certificates: &[Certificate], settings: &ServerSettings) -> Result<(), SettingsError> {
    let Some(first) = certificates.first().map(Certificate::algorithm) else {
        return Err(OfferError::Empty { what: "certificate" }.into());
    };
    let algorithms = || certificates.iter().map(Certificate::algorithm);
    let usable = |suite: &Suite| {
        suite.version() == Version::Tls13
            || algorithms().any(|algorithm| suite.rustls().usable_for_signature_algorithm(algorithm))
    };
    if settings.suites.iter().any(usable) {
        return Ok(());
    }
    let fitting = |suite: &&Suite| suite.version() == Version::Tls12 && usable(suite);
    Err(OfferError::SuitesDoNotFitKey {
        key: if first == SignatureAlgorithm::RSA { "RSA" } else { "ECDSA" },
        allowed: joined(Suite::ALL.iter().filter(fitting)),
    }
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issue::{KeyKind, issue};
    use rustls::client::{ClientConfig, ClientConnection};
    use rustls::server::ServerConnection;
    use std::io::{Read as _, Write as _};

    /// Passes bytes between both sides until the client has nothing more to send.
    fn settle(client: &mut ClientConnection, mut server: impl FnMut(&mut Vec<u8>) -> Vec<u8>) {
        loop {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            if bytes.is_empty() {
                return;
            }
            let reply = server(&mut bytes);
            let mut reply = reply.as_slice();
            while !reply.is_empty() {
                client.read_tls(&mut reply).unwrap();
                client.process_new_packets().unwrap();
            }
        }
    }

    /// Regression test: the handshake failed with more than 5461 bytes of early data, and with even less if the data
    /// arrived in pieces.
    #[test]
    fn early_data_of_a_ticket_of_ours_is_rejected_and_the_client_works() {
        for asks_certificate in [false, true] {
            for (records, piece, fault) in [
                (&[10][..], usize::MAX, None),
                (&[5_462], usize::MAX, None),
                (&[5_462], 1_000, None),
                (&[16_367], usize::MAX, None),
                (&[16_367], 100, None),
                (&[8_000, 8_000], 1_460, None),
                (&[1_000; 16], usize::MAX, None),
                (&[1_000; 16], 1_460, None),
                (&[1_000; 16], 1, None),
                (&[1; 900], 1_460, None),
                (&[1_000; 17], 1_460, Some("bad_record")),
                (&[1_000; 17], usize::MAX, Some("bad_record")),
                (&[16_000, 1_000], 100, Some("bad_record")),
            ] {
                let reason = reject_early_data(asks_certificate, records, piece);
                assert_eq!(reason, fault, "{} records in pieces of {piece}", records.len());
            }
        }
    }

    /// Connects with records of early data, which reach the server in pieces of `piece` bytes. Returns the
    /// cause of a failure.
    fn reject_early_data(asks_certificate: bool, records: &[usize], piece: usize) -> Option<&'static str> {
        let issued = issue(&["localhost"], KeyKind::EcdsaP256).unwrap();
        // rustls accepts early data only with stored sessions.
        let files = tempfile::tempdir().unwrap();
        let ca = issued.write_to(files.path()).unwrap().ca;
        let client_auth =
            asks_certificate.then(|| ClientAuth { required: false, ..ClientAuth::required(ca) });
        let settings =
            ServerSettings { stateful: true, client_auth, ..ServerSettings::new(issued.identity()) };
        let server = Server::new(&settings).unwrap();
        let mut roots = RootCertStore::empty();
        let ca = issued.ca.into_bytes();
        roots.add(rustls_pki_types::pem::PemObject::from_pem_slice(&ca).unwrap()).unwrap();
        let provider = Arc::clone(server.template.crypto_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.enable_early_data = true;
        let config = Arc::new(config);
        let connect = || ClientConnection::new(Arc::clone(&config), "localhost".try_into().unwrap()).unwrap();

        // A server with settings that Weir never uses: the same stored sessions, and tickets that permit early data.
        let acceptor = server.core();
        let mut permissive = ServerConfig::clone(&acceptor.config);
        permissive.max_early_data_size = 1 << 20;
        let mut issuing = ServerConnection::new(Arc::new(permissive)).unwrap();
        let mut client = connect();
        settle(&mut client, |bytes| {
            issuing.read_tls(&mut bytes.as_slice()).unwrap();
            issuing.process_new_packets().unwrap();
            let mut reply = Vec::new();
            while issuing.wants_write() {
                issuing.write_tls(&mut reply).unwrap();
            }
            reply
        });

        let mut client = connect();
        let mut flight = Vec::new();
        for bytes in records {
            let early = vec![b'e'; *bytes];
            client.early_data().expect("the ticket allows early data").write_all(&early).unwrap();
            client.write_tls(&mut flight).unwrap();
        }
        let mut session = acceptor.accept();
        let mut received = Vec::new();
        let mut failed = None;
        let mut receive = |bytes: &mut [u8]| {
            let mut reply = Vec::new();
            for piece in bytes.chunks_mut(piece) {
                if let Err(error) = session.receive(piece, &mut received, &mut reply) {
                    failed = failed.or(Some(error.reason()));
                }
            }
            reply
        };
        let reply = receive(&mut flight);
        client.read_tls(&mut reply.as_slice()).unwrap();
        if client.process_new_packets().is_ok() {
            settle(&mut client, |bytes| receive(bytes));
        }
        if failed.is_some() {
            return failed;
        }
        assert!(!client.is_handshaking() && !client.is_early_data_accepted());
        assert!(session.facts().unwrap().kind.is_resumption(), "the rest of the ticket holds");
        assert_eq!(received, b"", "early data never arrives");
        client.writer().write_all(b"GET /again").unwrap();
        let mut answer = Vec::new();
        settle(&mut client, |bytes| {
            let mut reply = Vec::new();
            session.receive(bytes, &mut received, &mut reply).unwrap();
            session.send(b"answer", &mut reply).unwrap();
            reply
        });
        assert_eq!(received, b"GET /again");
        let _ = client.reader().read_to_end(&mut answer);
        assert_eq!(answer, b"answer");
        None
    }
}
