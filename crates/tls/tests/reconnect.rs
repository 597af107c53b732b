//! A client that chooses whether to resume: the sessions that it offers, and their lifetimes.

use crate::common::{Clock, EPOCH, Pair, Pki, client_hello, handshake, localhost, only};
use std::time::Duration;
use weir_tls::issue::KeyKind;
use weir_tls::{
    Acceptor, ClientSettings, Connector, Facts, HandshakeKind, ServerSettings, Session, Suite, Version,
};

fn full(connector: &Connector, acceptor: &Acceptor) -> Facts {
    Pair::of(connector.connect_full(&localhost()), acceptor).exchange()
}

fn resuming(connector: &Connector, acceptor: &Acceptor) -> Option<Facts> {
    Some(Pair::of(connector.connect_resuming(&localhost())?, acceptor).exchange())
}

/// The session ID in a ClientHello: after record header, message header, version and random.
fn session_id(hello: &[u8]) -> &[u8] {
    let length = usize::from(hello[43]);
    &hello[44..44 + length]
}

/// Both sides' settings, and the kind and lifetime of resumption.
struct Case {
    name: &'static str,
    client: fn(&mut ClientSettings),
    server: fn(&mut ServerSettings),
    kind: HandshakeKind,
    /// The last second after the full handshake in which the client resumes.
    lifetime: u64,
}

const DAY: u64 = 24 * 60 * 60;

const fn case(
    name: &'static str,
    client: fn(&mut ClientSettings),
    server: fn(&mut ServerSettings),
    (kind, lifetime): (HandshakeKind, u64),
) -> Case {
    Case { name, client, server, kind, lifetime }
}

const CASES: [Case; 8] = [
    case("1.3", client_only_1_3, |_| {}, (HandshakeKind::Resume13Psk, EPOCH)),
    case("1.3, stored", |_| {}, |server| server.stateful = true, (HandshakeKind::Resume13Psk, DAY)),
    case("1.3 beside 1.2", |_| {}, |_| {}, (HandshakeKind::Resume13Psk, EPOCH)),
    case("1.2 by ticket", client_only_1_2, |_| {}, (HandshakeKind::Resume12Ticket, EPOCH)),
    case("1.2 by ticket beside 1.3", |_| {}, server_only_1_2, (HandshakeKind::Resume12Ticket, EPOCH)),
    case("1.2 without tickets", client_by_session_id, |_| {}, (HandshakeKind::Resume12Id, DAY - 1)),
    case(
        "1.2 without tickets beside 1.3",
        |client| client.tickets = false,
        server_only_1_2,
        (HandshakeKind::Resume12Id, DAY - 1),
    ),
    case(
        "1.2 by session ID beside 1.3, requesting tickets",
        |_| {},
        |server| {
            server_only_1_2(server);
            server.tickets = 0;
        },
        (HandshakeKind::Resume12Id, DAY - 1),
    ),
];

fn client_only_1_3(settings: &mut ClientSettings) {
    only(Version::Tls13)(settings);
}

fn client_only_1_2(settings: &mut ClientSettings) {
    only(Version::Tls12)(settings);
}

fn client_by_session_id(settings: &mut ClientSettings) {
    only(Version::Tls12)(settings);
    settings.tickets = false;
}

fn server_only_1_2(settings: &mut ServerSettings) {
    settings.versions = vec![Version::Tls12];
    settings.suites.retain(|suite| suite.version() == Version::Tls12);
}

#[test]
fn each_handshake_is_of_the_requested_kind() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for Case { name, client, server, kind, .. } in CASES {
        let (connector, acceptor) = (pki.connector(client), pki.acceptor(server));
        for turn in 0..4 {
            assert_eq!(full(&connector, &acceptor).kind, HandshakeKind::Full, "{name}, {turn}");
            let facts = resuming(&connector, &acceptor).unwrap();
            assert_eq!((facts.kind, facts.chain), (kind, None), "{name}, {turn}");
            assert!(connector.sessions(&localhost()) > 0, "{name}, {turn}");
        }
        assert_eq!(handshake(&connector, &acceptor).kind, kind, "{name}");
    }
}

#[test]
fn nothing_is_resumed_without_a_stored_session() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for Case { name, client, server, .. } in CASES {
        let connector = pki.connector(client);
        assert!(connector.connect_resuming(&localhost()).is_none(), "{name}");
        assert_eq!(connector.sessions(&localhost()), 0, "{name}");

        // A server without resumption issues no session.
        let acceptor = pki.acceptor(|settings| {
            server(settings);
            settings.resumption = false;
        });
        full(&connector, &acceptor);
        assert!(connector.connect_resuming(&localhost()).is_none(), "{name}");

        // The client has a session only for the name that it connected to.
        let acceptor = pki.acceptor(server);
        full(&connector, &acceptor);
        assert!(connector.connect_resuming(&"127.0.0.1".parse().unwrap()).is_none(), "{name}");
        assert!(connector.connect_resuming(&localhost()).is_some(), "{name}");

        // A client with a disabled store keeps no session.
        let without_store: [fn(&mut ClientSettings); 2] =
            [|settings| settings.resumption = false, |settings| settings.sessions_per_name = 0];
        for disable in without_store {
            let connector = pki.connector(|settings| {
                client(settings);
                disable(settings);
            });
            for _ in 0..2 {
                assert_eq!(full(&connector, &acceptor).kind, HandshakeKind::Full, "{name}");
                assert_eq!(handshake(&connector, &acceptor).kind, HandshakeKind::Full, "{name}");
            }
            assert!(connector.connect_resuming(&localhost()).is_none(), "{name}");
            assert_eq!(connector.sessions(&localhost()), 0, "{name}");
        }
    }
}

/// rustls silently drops an expired session from its ClientHello, so a full handshake could pass for a
/// resumption.
#[test]
fn expired_sessions_are_not_resumed() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for Case { name, client, server, lifetime, .. } in CASES {
        let clock = Clock::stopped_now();
        let connector = pki.connector(|settings| {
            client(settings);
            settings.time = clock.clone();
        });
        let acceptor = pki.acceptor(server);
        for _ in 0..3 {
            full(&connector, &acceptor);
        }
        clock.advance(lifetime);
        assert!(connector.connect_resuming(&localhost()).is_some(), "{name}");
        clock.advance(1);
        assert!(connector.sessions(&localhost()) > 0, "{name}");
        assert!(connector.connect_resuming(&localhost()).is_none(), "{name}");
        assert_eq!(connector.sessions(&localhost()), 0, "{name}");
        // The client finds a new session after the expired ones.
        full(&connector, &acceptor);
        assert!(connector.connect_resuming(&localhost()).is_some(), "{name}");
    }
}

/// Resumption by session ID does not extend the lifetime: a session in constant use must expire, too.
#[test]
fn a_tls_1_2_session_expires_a_day_after_its_full_handshake() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let clock = Clock::stopped_now();
    let connector = pki.connector(|settings| {
        client_by_session_id(settings);
        settings.time = clock.clone();
    });
    let acceptor = pki.acceptor(|_| {});
    full(&connector, &acceptor);
    for hour in 0..24 {
        assert_eq!(resuming(&connector, &acceptor).unwrap().kind, HandshakeKind::Resume12Id, "{hour}");
        assert_eq!(handshake(&connector, &acceptor).kind, HandshakeKind::Resume12Id, "{hour}");
        clock.advance(60 * 60);
    }
    assert!(connector.connect_resuming(&localhost()).is_none());
    assert_eq!(handshake(&connector, &acceptor).kind, HandshakeKind::Full);
}

#[test]
fn a_declined_resumption_becomes_a_full_handshake() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for Case { name, client, server, kind, .. } in CASES {
        let connector = pki.connector(client);
        full(&connector, &pki.acceptor(server));
        // Epochs of another length have other ticket keys; the session stores differ in any case.
        let other = pki.acceptor(|settings| {
            server(settings);
            settings.ticket_lifetime = Duration::from_secs(60 * 60);
        });
        let facts = resuming(&connector, &other).unwrap();
        assert_eq!(facts.kind, HandshakeKind::Full, "{name}");
        assert!(facts.chain.is_some(), "{name}");
        assert_eq!(resuming(&connector, &other).unwrap().kind, kind, "{name}");
    }
}

#[test]
fn tls_1_2_sessions_are_resumed_in_turn_and_repeatedly() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let connector = pki.connector(client_by_session_id);
    let acceptor = pki.acceptor(|_| {});
    for _ in 0..3 {
        full(&connector, &acceptor);
    }
    assert_eq!(connector.sessions(&localhost()), 3);
    let mut offered = Vec::new();
    for _ in 0..6 {
        let hello = client_hello(&mut connector.connect_resuming(&localhost()).unwrap());
        offered.push(session_id(&hello).to_vec());
        assert_eq!(resuming(&connector, &acceptor).unwrap().kind, HandshakeKind::Resume12Id);
    }
    // The client offers its sessions in turn. Each round offers two of them, and only the first one is recorded.
    assert_eq!(offered[..3], offered[3..]);
    assert!(offered[0] != offered[1] && offered[1] != offered[2] && offered[2] != offered[0]);
    assert_eq!(connector.sessions(&localhost()), 3, "a resumption adds no session");
}

#[test]
fn sessions_are_stored_up_to_the_limit() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for Case { name, client, server, kind, .. } in CASES {
        let acceptor = pki.acceptor(server);
        let connector = pki.connector(|settings| {
            client(settings);
            settings.sessions_per_name = 3;
        });
        for done in 1..=6 {
            full(&connector, &acceptor);
            assert_eq!(connector.sessions(&localhost()), done.min(3), "{name}");
        }
        // All connections start before the first one finishes, so that no new session is stored in between.
        let started: Vec<Session> = (0..4).map_while(|_| connector.connect_resuming(&localhost())).collect();
        let expected = if kind == HandshakeKind::Resume13Psk { 3 } else { 4 };
        assert_eq!(started.len(), expected, "{name}: TLS 1.3 tickets are single-use");
        for client in started {
            assert_eq!(Pair::of(client, &acceptor).exchange().kind, kind, "{name}");
        }
    }
}

/// A TLS 1.3 server sends its tickets after the handshake, even after a requested full one.
#[test]
fn tickets_of_a_full_handshake_are_stored() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let connector = pki.connector(|_| {});
    let acceptor = pki.acceptor(|settings| settings.tickets = 4);
    let mut pair = Pair::of(connector.connect_full(&localhost()), &acceptor);
    pair.exchange();
    assert_eq!((pair.client.tickets_received(), connector.sessions(&localhost())), (4, 4));
    let mut pair = Pair::of(connector.connect_full(&localhost()), &acceptor);
    pair.exchange();
    assert_eq!((pair.client.tickets_received(), connector.sessions(&localhost())), (4, 8));
}

/// A restarted upstream knows none of a gateway's sessions. One full handshake must be enough to recover.
#[test]
fn the_newest_session_is_resumed_by_default() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let connector = pki.connector(client_by_session_id);
    let before = pki.acceptor(|_| {});
    for _ in 0..8 {
        full(&connector, &before);
    }
    let after = pki.acceptor(|_| {});
    assert_eq!(handshake(&connector, &after).kind, HandshakeKind::Full);
    assert_eq!(connector.sessions(&localhost()), 8, "the new session replaces the declined one");
    for _ in 0..3 {
        assert_eq!(handshake(&connector, &after).kind, HandshakeKind::Resume12Id);
    }
}

/// The ClientHello is built in advance: the client must send it once, and must recognise a retry as
/// different.
#[test]
fn a_requested_resumption_survives_a_retry() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let connector = pki.connector(|_| {});
    full(&connector, &pki.acceptor(|_| {}));
    let after = pki.acceptor(|settings| {
        settings.groups = vec![weir_tls::Group::P256];
        settings.suites = vec![Suite::Aes128GcmSha256];
        settings.versions = vec![Version::Tls13];
    });
    let facts = resuming(&connector, &after).unwrap();
    assert_eq!((facts.kind, facts.hello_retry), (HandshakeKind::Resume13Psk, true), "{facts}");
    let facts = resuming(&connector, &after).unwrap();
    assert_eq!((facts.kind, facts.hello_retry), (HandshakeKind::Resume13Psk, false), "{facts}");
}

/// The client uses up its TLS 1.2 sessions after a TLS 1.3 server has replaced the TLS 1.2 server.
#[test]
fn sessions_of_a_version_that_the_server_dropped_are_used_up() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let connector = pki.connector(|_| {});
    let before = pki.acceptor(server_only_1_2);
    for _ in 0..3 {
        full(&connector, &before);
    }
    let after = pki.acceptor(|settings| settings.tickets = 0);
    let mut declined = 0;
    while let Some(facts) = resuming(&connector, &after) {
        assert_eq!((facts.kind, facts.version), (HandshakeKind::Full, Version::Tls13));
        declined += 1;
        assert!(declined <= 3);
    }
    assert_eq!(connector.sessions(&localhost()), 0);
}
