//! Connections that resume, by their mechanism and core, and connections that must not.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::common::{Clock, EPOCH, Pair, Pki, handshake, localhost, only};
use weir_tls::issue::KeyKind;
use weir_tls::{
    Acceptor, Client, ClientAuth, Connector, HandshakeKind, Server, ServerSettings, Session, Suite, Version,
};

/// A connection on the server core's side: bytes from the client, bytes to the client.
struct Wire {
    from_client: Receiver<Vec<u8>>,
    to_client: Sender<Vec<u8>>,
}

/// Starts a thread that serves connections until all senders are dropped.
fn core(acceptor: Acceptor) -> Sender<Wire> {
    let (connections, accepted) = channel::<Wire>();
    thread::spawn(move || {
        for wire in accepted {
            let mut session = acceptor.accept();
            for mut bytes in wire.from_client {
                let (mut plaintext, mut reply) = (Vec::new(), Vec::new());
                session.receive(&mut bytes, &mut plaintext, &mut reply).unwrap();
                wire.to_client.send(reply).unwrap();
            }
        }
    });
    connections
}

/// Opens a connection to a core; returns the kind of its handshake.
fn connect(connector: &Connector, core: &Sender<Wire>) -> HandshakeKind {
    let (to_server, from_client) = channel();
    let (to_client, from_server) = channel();
    core.send(Wire { from_client, to_client }).unwrap();
    let mut session: Session = connector.connect(&localhost());
    let (mut plaintext, mut out) = (Vec::new(), Vec::new());
    session.receive(&mut [], &mut plaintext, &mut out).unwrap();
    while !out.is_empty() {
        to_server.send(std::mem::take(&mut out)).unwrap();
        let mut bytes: Vec<u8> = from_server.recv().unwrap();
        session.receive(&mut bytes, &mut plaintext, &mut out).unwrap();
    }
    session.facts().unwrap().kind
}

/// The kernel may assign a returning client to any core, so all cores must accept each other's sessions.
#[test]
fn returning_clients_resume_on_any_core() {
    const RETURNS: usize = 1000;
    let cases = [
        (Version::Tls13, false, HandshakeKind::Resume13Psk),
        (Version::Tls13, true, HandshakeKind::Resume13Psk),
        (Version::Tls12, false, HandshakeKind::Resume12Ticket),
        (Version::Tls12, true, HandshakeKind::Resume12Id),
    ];
    let pki = Pki::new(KeyKind::EcdsaP256);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for (version, stateful, expected) in cases {
        let server = Server::new(&ServerSettings { stateful, ..pki.server_settings() }).unwrap();
        let cores = [core(server.core()), core(server.core())];
        let connector = pki.connector(only(version));
        assert_eq!(connect(&connector, &cores[0]), HandshakeKind::Full);
        let mut on_core = [0; 2];
        let mut resumed = 0;
        for _ in 0..RETURNS {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let index = (random >> 33) as usize % 2;
            on_core[index] += 1;
            resumed += usize::from(connect(&connector, &cores[index]) == expected);
        }
        assert!(on_core.iter().all(|count| *count > RETURNS / 3), "{on_core:?}");
        assert!(resumed * 100 >= RETURNS * 99, "{expected}, stateful {stateful}: {resumed} of {RETURNS}");
    }
}

#[test]
fn the_configured_number_of_tickets_is_sent() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for stateful in [false, true] {
        for tickets in [0, 1, 4] {
            let acceptor =
                pki.acceptor(|settings| (settings.tickets, settings.stateful) = (tickets, stateful));
            let mut pair = Pair::new(&pki.connector(|_| {}), &acceptor);
            pair.exchange();
            assert_eq!(pair.client.tickets_received(), tickets);
        }
    }
}

#[test]
fn without_tickets_tls_1_3_does_not_resume_and_tls_1_2_does_by_session_id() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor = pki.acceptor(|settings| settings.tickets = 0);
    let connector = pki.connector(only(Version::Tls13));
    assert_eq!(handshake(&connector, &acceptor).kind, HandshakeKind::Full);
    assert_eq!(handshake(&connector, &acceptor).kind, HandshakeKind::Full);
    let connector = pki.connector(only(Version::Tls12));
    assert_eq!(handshake(&connector, &acceptor).kind, HandshakeKind::Full);
    let facts = handshake(&connector, &acceptor);
    assert_eq!((facts.kind, facts.group, facts.signature), (HandshakeKind::Resume12Id, None, None));
}

#[test]
fn nothing_is_resumed_if_one_side_disables_resumption() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for version in Version::ALL {
        for (at_server, at_client) in [(false, true), (true, false)] {
            let acceptor = pki.acceptor(|settings| settings.resumption = at_server);
            let connector = pki.connector(|settings| {
                only(version)(settings);
                settings.resumption = at_client;
            });
            for _ in 0..2 {
                assert_eq!(handshake(&connector, &acceptor).kind, HandshakeKind::Full);
            }
        }
    }
}

/// Each ticket is used only once (RFC 8446 C.4), so a client with four concurrent connections needs four.
#[test]
fn a_client_holds_several_tickets_and_uses_each_once() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor = pki.acceptor(|settings| settings.tickets = 4);
    let connector = pki.connector(|_| {});
    handshake(&connector, &acceptor);
    let mut pairs: Vec<Pair> = (0..5).map(|_| Pair::new(&connector, &acceptor)).collect();
    let kinds: Vec<HandshakeKind> = pairs.iter_mut().map(|pair| pair.exchange().kind).collect();
    let resumed = kinds.iter().filter(|kind| kind.is_resumption()).count();
    assert_eq!(resumed, 4, "{kinds:?}");
}

#[test]
fn a_stored_tls_1_3_session_is_single_use() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor = pki.acceptor(|settings| settings.stateful = true);
    let connector = pki.connector(|_| {});
    handshake(&connector, &acceptor);
    let mut first = Pair::new(&connector, &acceptor);
    first.client.receive(&mut [], &mut first.at_client, &mut first.to_server).unwrap();
    let hello = first.to_server.clone();
    assert_eq!(first.settle(), (None, None));
    assert_eq!(first.server.facts().unwrap().kind, HandshakeKind::Resume13Psk);
    // A repeated ClientHello finds no session and gets a full handshake's flight, with the certificate.
    let reply_length = |mut hello: Vec<u8>| {
        let mut reply = Vec::new();
        acceptor.accept().receive(&mut hello, &mut Vec::new(), &mut reply).unwrap();
        reply.len()
    };
    assert!(reply_length(hello) > 500);
}

#[test]
fn resumption_does_not_cross_policies() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for version in Version::ALL {
        let connector = pki.connector(|settings| {
            only(version)(settings);
            settings.identity = Some(pki.issued.identity());
        });
        let home = pki.acceptor(|_| {});
        assert_eq!(handshake(&connector, &home).kind, HandshakeKind::Full);
        // This server has the same certificate, but requires a client certificate: a session without one must not
        // bypass the check.
        let strict =
            pki.acceptor(|settings| settings.client_auth = Some(ClientAuth::required(pki.files.ca.clone())));
        assert_eq!(handshake(&connector, &strict).kind, HandshakeKind::Full);
        assert!(handshake(&connector, &strict).kind.is_resumption());
        assert_eq!(handshake(&connector, &home).kind, HandshakeKind::Full, "and back");
    }
}

/// A server that reloads its configuration accepts its clients' tickets while its policy stays the same.
#[test]
fn a_new_server_of_the_same_policy_accepts_the_old_ones_tickets() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for version in Version::ALL {
        let connector = pki.connector(only(version));
        assert_eq!(handshake(&connector, &pki.acceptor(|_| {})).kind, HandshakeKind::Full);
        let changed =
            pki.acceptor(|settings| settings.suites.retain(|suite| *suite != Suite::Aes256GcmSha384));
        assert!(handshake(&connector, &changed).kind.is_resumption());
    }
}

/// Regression test: the renewal of one certificate voided the tickets of all names.
#[test]
fn tickets_survive_renewals() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let issue = |names: &[&str], kind| pki.authority.issue(names, kind).unwrap();
    let home = ["localhost", "127.0.0.1"];
    let renewed = issue(&home, KeyKind::EcdsaP256);
    let with_another_key = issue(&home, KeyKind::Rsa2048);
    let with_more_names = issue(&["localhost", "more.test", "127.0.0.1"], KeyKind::EcdsaP256);
    let other = issue(&["other.test", "127.0.0.1"], KeyKind::EcdsaP256);
    let both = &Version::ALL[..];
    // The versions; the certificates of the second server; whether a client with the name `localhost` resumes there,
    // and whether a client without a name does.
    let table = [
        (both, vec![&renewed], true, true),
        // A TLS 1.2 session keeps its cipher suite, which an RSA key does not fit.
        (&[Version::Tls13], vec![&with_another_key], true, true),
        (both, vec![&with_more_names], true, false),
        (both, vec![&pki.issued, &other], true, true),
        (both, vec![&other, &renewed], true, false),
        (both, vec![&other], false, false),
    ];
    for (at, (versions, certificates, by_name, without)) in table.iter().enumerate() {
        for version in versions.iter().copied() {
            let second = pki.acceptor(|settings| {
                settings.identities = certificates.iter().map(|issued| issued.identity()).collect();
            });
            let first = pki.acceptor(|_| {});
            for (name, resumes) in [("localhost", by_name), ("127.0.0.1", without)] {
                let connector = pki.connector(only(version));
                let name = name.parse().unwrap();
                let connect = |acceptor| {
                    let mut pair = Pair::to(&name, &connector, acceptor);
                    let (error, _) = pair.settle();
                    // The handshake fails only if the certificate does not cover the name.
                    error.is_none().then(|| pair.client.facts().unwrap().kind)
                };
                assert_eq!(connect(&first), Some(HandshakeKind::Full));
                let kind = connect(&second);
                assert_eq!(
                    kind.is_some_and(HandshakeKind::is_resumption),
                    *resumes,
                    "{version}, {at}, {name}"
                );
            }
        }
    }
}

#[test]
fn a_ticket_is_accepted_in_its_epoch_and_the_next_only() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for version in Version::ALL {
        // Late in an epoch, so that a ticket's own lifetime of one epoch reaches far into the next.
        let start = 1_900_000_000 / EPOCH * EPOCH + EPOCH - 60;
        for (advance, resumes) in [(0, true), (59, true), (61, true), (EPOCH - 10, true), (EPOCH + 61, false)]
        {
            let server_clock = Clock::new(start);
            let acceptor = pki.acceptor(|settings| settings.time = server_clock.clone());
            // The client's clock stands still, so that only the server decides whether the ticket is valid.
            let connector = pki.connector(|settings| {
                only(version)(settings);
                settings.time = Clock::new(start);
            });
            assert_eq!(handshake(&connector, &acceptor).kind, HandshakeKind::Full);
            server_clock.advance(advance);
            let kind = handshake(&connector, &acceptor).kind;
            assert_eq!(kind.is_resumption(), resumes, "{version}, {advance} s later: {kind}");
        }
    }
}

/// Nodes and cores may disagree about the time, and a wall clock may be set back.
#[test]
fn a_ticket_of_the_next_epoch_is_accepted() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for (retreat, resumes) in [(60, true), (2 * EPOCH, false)] {
        let clock = Clock::new(1_900_000_000 / EPOCH * EPOCH + 30);
        let acceptor = pki.acceptor(|settings| settings.time = clock.clone());
        let connector = pki.connector(|settings| settings.time = clock.clone());
        handshake(&connector, &acceptor);
        clock.retreat(retreat);
        assert_eq!(handshake(&connector, &acceptor).kind.is_resumption(), resumes);
    }
}

#[test]
fn a_stored_session_expires() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for version in Version::ALL {
        for (advance, resumes) in [(EPOCH - 1, true), (EPOCH, false)] {
            let clock = Clock::stopped_now();
            let acceptor = pki.acceptor(|settings| {
                settings.stateful = true;
                settings.time = clock.clone();
            });
            let connector = pki.connector(|settings| {
                only(version)(settings);
                settings.time = Clock::stopped_now();
            });
            handshake(&connector, &acceptor);
            clock.advance(advance);
            assert_eq!(
                handshake(&connector, &acceptor).kind.is_resumption(),
                resumes,
                "{version}, {advance}"
            );
        }
    }
}

#[test]
fn a_modified_ticket_causes_a_full_handshake() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor = pki.acceptor(|_| {});
    let connector = pki.connector(only(Version::Tls12));
    handshake(&connector, &acceptor);
    // The ticket is near the end of this ClientHello; flip each byte of the tail to hit it.
    let mut fell_back = 0;
    for back in 1..300 {
        let mut session = connector.connect(&localhost());
        let mut hello = Vec::new();
        session.receive(&mut [], &mut Vec::new(), &mut hello).unwrap();
        let at = hello.len() - back;
        hello[at] ^= 1;
        let mut reply = Vec::new();
        if acceptor.accept().receive(&mut hello, &mut Vec::new(), &mut reply).is_ok() {
            // The flight of a full handshake with a certificate, not the short flight of a resumption.
            fell_back += usize::from(reply.len() > 500);
        }
    }
    assert!(fell_back > 100, "{fell_back}");
}

#[test]
fn each_core_of_a_client_has_its_own_store() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor = pki.acceptor(|_| {});
    let client = Client::new(&pki.client_settings()).unwrap();
    let (one, two) = (client.core(), client.core());
    handshake(&one, &acceptor);
    assert_eq!(handshake(&two, &acceptor).kind, HandshakeKind::Full);
    assert!(handshake(&one, &acceptor).kind.is_resumption());
    assert!(handshake(&two, &acceptor).kind.is_resumption());
}
