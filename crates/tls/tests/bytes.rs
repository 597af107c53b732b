//! Feeds sessions bytes of any content, in pieces of any size.

use std::sync::OnceLock;

use crate::common::{Pair, Pki, localhost, without_chain};
use proptest::prelude::*;
use weir_tls::issue::KeyKind;
use weir_tls::{Acceptor, Connector, Fault, Group, Session, TlsError, Version};

struct Sides {
    acceptor: Acceptor,
    connectors: [Connector; 2],
}

/// Both sides, created once, since certificates and keys are slow to generate.
fn sides() -> &'static Sides {
    static SIDES: OnceLock<Sides> = OnceLock::new();
    SIDES.get_or_init(|| {
        let pki = Pki::new(KeyKind::EcdsaP256);
        let connectors = Version::ALL.map(|version| {
            pki.connector(|settings| {
                settings.versions = vec![version];
                settings.suites.retain(|suite| suite.version() == version);
            })
        });
        Sides { acceptor: pki.acceptor(|_| {}), connectors }
    })
}

fn connected(version: Version) -> Pair {
    let mut pair = Pair::new(&sides().connectors[version as usize], &sides().acceptor);
    assert_eq!(pair.settle(), (None, None));
    pair
}

/// Feeds `bytes` in pieces, cycling through `sizes`.
fn feed(
    session: &mut Session,
    mut bytes: &mut [u8],
    sizes: &[usize],
    plaintext: &mut Vec<u8>,
    reply: &mut Vec<u8>,
) -> Result<(), TlsError> {
    for size in sizes.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let size = (*size).min(bytes.len());
        let (piece, rest) = std::mem::take(&mut bytes).split_at_mut(size);
        session.receive(piece, plaintext, reply)?;
        bytes = rest;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_of_handshake_and_data_gives_the_same_plaintext(
        tls13 in any::<bool>(),
        sizes in prop::collection::vec(prop_oneof![1..8_usize, 1..2000_usize, 1..70_000_usize], 1..12),
        messages in prop::collection::vec(prop_oneof![1..100_usize, 1..60_000_usize], 1..5),
    ) {
        let sides = sides();
        let mut pair = Pair::new(&sides.connectors[usize::from(tls13)], &sides.acceptor);
        pair.client.receive(&mut [], &mut pair.at_client, &mut pair.to_server).unwrap();
        while !pair.to_server.is_empty() || !pair.to_client.is_empty() {
            let mut bytes = std::mem::take(&mut pair.to_server);
            feed(&mut pair.server, &mut bytes, &sizes, &mut pair.at_server, &mut pair.to_client).unwrap();
            let mut bytes = std::mem::take(&mut pair.to_client);
            feed(&mut pair.client, &mut bytes, &sizes, &mut pair.at_client, &mut pair.to_server).unwrap();
        }
        prop_assert!(!pair.client.is_handshaking() && !pair.server.is_handshaking());

        let mut sent = Vec::new();
        for (number, length) in messages.into_iter().enumerate() {
            let message: Vec<u8> = (0..length).map(|at| (at * 31 + number) as u8).collect();
            pair.client.send(&message, &mut pair.to_server).unwrap();
            sent.extend_from_slice(&message);
        }
        pair.client.close(&mut pair.to_server);
        feed(&mut pair.server, &mut pair.to_server, &sizes, &mut pair.at_server, &mut pair.to_client).unwrap();
        prop_assert!(pair.at_server == sent, "{} of {} bytes", pair.at_server.len(), sent.len());
        prop_assert!(pair.server.peer_closed());
        prop_assert_eq!(pair.server.partial_bytes(), 0);
    }

    #[test]
    fn garbage_is_an_error_or_incomplete_and_never_a_panic(
        garbage in prop::collection::vec(any::<u8>(), 1..3000),
        record in any::<bool>(),
        content_type in 20..24_u8,
        sizes in prop::collection::vec(1..700_usize, 1..5),
    ) {
        let mut bytes = garbage;
        if record {
            let length = (bytes.len() as u16).to_be_bytes();
            bytes.splice(0..0, [content_type, 3, 3, length[0], length[1]]);
        }
        let mut client = sides().connectors[1].connect(&localhost());
        client.receive(&mut [], &mut Vec::new(), &mut Vec::new()).unwrap();
        let established = connected(Version::Tls13);
        let established12 = connected(Version::Tls12);
        let sessions = [
            sides().acceptor.accept(), client, established.server, established.client, established12.server,
            established12.client,
        ];
        for mut session in sessions {
            let (mut plaintext, mut reply) = (Vec::new(), Vec::new());
            let first = feed(&mut session, &mut bytes.clone(), &sizes, &mut plaintext, &mut reply);
            prop_assert!(plaintext.is_empty());
            if let Err(error) = first {
                prop_assert_ne!(error.fault(), Fault::Ours, "{:?}", error);
                prop_assert_eq!(session.receive(&mut [0], &mut plaintext, &mut reply), Err(error));
            }
            // The other calls must not panic either.
            let _ = session.send(b"x", &mut reply);
            session.close(&mut reply);
            let _ = session.receive(&mut bytes.clone(), &mut plaintext, &mut reply);
        }
    }

    #[test]
    fn a_flipped_bit_in_a_handshake_never_panics_nor_succeeds_silently(
        tls13 in any::<bool>(), flight in 0..4_usize, at in any::<prop::sample::Index>(), bit in 0..8_u8,
    ) {
        let mut pair = Pair::new(&sides().connectors[usize::from(tls13)], &sides().acceptor);
        pair.client.receive(&mut [], &mut pair.at_client, &mut pair.to_server).unwrap();
        let mut flipped = false;
        for turn in 0..6 {
            let (session, plaintext, bytes, reply) = match turn % 2 {
                0 => (&mut pair.server, &mut pair.at_server, &mut pair.to_server, &mut pair.to_client),
                _ => (&mut pair.client, &mut pair.at_client, &mut pair.to_client, &mut pair.to_server),
            };
            let mut bytes = std::mem::take(bytes);
            if turn == flight && !bytes.is_empty() {
                // The handshake may succeed: the peer ignores a record's version (RFC 8446 5.1) and a
                // ChangeCipherSpec.
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
                flipped = true;
            }
            let _ = session.receive(&mut bytes, plaintext, reply);
        }
        if flipped && pair.client.facts().is_some() && pair.server.facts().is_some() {
            prop_assert_eq!(pair.client.facts().map(without_chain), pair.server.facts().cloned());
        }
    }
}

#[test]
fn a_partial_record_is_kept_and_freed() {
    for version in Version::ALL {
        let mut pair = connected(version);
        assert_eq!((pair.client.partial_bytes(), pair.server.partial_bytes()), (0, 0));
        pair.client.send(&[7; 16 * 1024], &mut pair.to_server).unwrap();
        pair.client.send(&[8; 100], &mut pair.to_server).unwrap();
        let mut bytes = std::mem::take(&mut pair.to_server);
        let (first, second) = bytes.split_at_mut(1000);
        pair.server.receive(first, &mut pair.at_server, &mut pair.to_client).unwrap();
        assert_eq!((pair.server.partial_bytes(), pair.at_server.len()), (1000, 0));
        pair.server.receive(second, &mut pair.at_server, &mut pair.to_client).unwrap();
        assert_eq!((pair.server.partial_bytes(), pair.at_server.len()), (0, 16 * 1024 + 100));
    }
}

/// A ClientHello in one-byte records takes six bytes of memory per byte of the message, so the server limits the number
/// of records, too.
#[test]
fn an_endless_hello_is_rejected_and_its_bytes_freed() {
    // A ClientHello that declares 65 000 bytes, in records and pieces of any size.
    for size in [1, 7, 256, 1000, 16_384] {
        for piece in [1, 5, 6, 1460, 1 << 20] {
            let message = [&[1, 0, 0xfd, 0xe8][..], &[0; 65_000]].concat();
            let mut bytes = in_records(&message, size);
            let mut server = sides().acceptor.accept();
            let (mut most, mut taken) = (0, 0);
            let error = bytes.chunks_mut(piece).find_map(|part| {
                taken += part.len();
                let received = server.receive(part, &mut Vec::new(), &mut Vec::new());
                most = most.max(server.partial_bytes());
                received.err()
            });
            let error = error.unwrap();
            assert_eq!((error.reason(), error.fault()), ("hello_too_long", Fault::Peer), "{size}, {piece}");
            assert!(taken <= (16 * 1024 + 65 * 5 + 16_384).max(piece), "{size}, {piece}: {taken}");
            // A vector's capacity may be twice its length.
            assert!(most <= 2 * (16 * 1024 + 65 * 5), "{size}, {piece}: {most}");
            assert_eq!(server.partial_bytes(), 0);
        }
    }

    let (mut plaintext, mut reply) = (Vec::new(), Vec::new());
    let mut server = sides().acceptor.accept();
    let error = server.receive(&mut [22, 3, 1, 0, 4, 1, 1, 0, 0], &mut plaintext, &mut reply).unwrap_err();
    assert_eq!(error.reason(), "peer_misbehaved", "a declared length of 65 536 bytes is rejected");
}

#[test]
fn each_hello_may_be_in_64_records_and_no_more() {
    // With a group that the server accepts but no key share for it, the server sends a HelloRetryRequest and
    // receives a second ClientHello.
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor = pki.acceptor(|settings| settings.groups = vec![Group::P256]);
    for groups in [vec![Group::P256], vec![Group::X25519, Group::P256]] {
        for (records, reason) in [(1, None), (64, None), (65, Some("hello_too_long"))] {
            for hello in 0..groups.len() {
                let connector = pki.connector(|settings| settings.groups = groups.clone());
                let mut pair = Pair::new(&connector, &acceptor);
                let mut failed = None;
                pair.client.receive(&mut [], &mut Vec::new(), &mut pair.to_server).unwrap();
                for nth in 0..groups.len() {
                    let mut bytes = std::mem::take(&mut pair.to_server);
                    if nth == hello {
                        let start = bytes.windows(3).position(|part| part[0] == 22 && part[1] == 3).unwrap();
                        let message = bytes.split_off(start + 5);
                        bytes.truncate(start);
                        bytes.extend(split_in(&message, records));
                    }
                    let received = pair.server.receive(&mut bytes, &mut Vec::new(), &mut pair.to_client);
                    failed = failed.or(received.err());
                    let _ = pair.client.receive(&mut pair.to_client, &mut Vec::new(), &mut pair.to_server);
                    pair.to_client.clear();
                }
                assert_eq!(
                    failed.map(|error| error.reason()),
                    reason,
                    "{groups:?}, hello {hello}, {records}"
                );
            }
        }
    }
}

/// Splits a handshake message into this many records; the last one may be the longest.
fn split_in(message: &[u8], records: usize) -> Vec<u8> {
    let size = message.len() / records;
    let (even, last) = message.split_at(size * (records - 1));
    [in_records(even, size), in_records(last, last.len())].concat()
}

/// Splits a handshake message into records of this many bytes.
fn in_records(message: &[u8], size: usize) -> Vec<u8> {
    let record = |part: &[u8]| [&[22, 3, 1][..], &(part.len() as u16).to_be_bytes(), part].concat();
    message.chunks(size.max(1)).flat_map(record).collect()
}

#[test]
fn plaintext_is_appended_and_never_overwritten() {
    let mut pair = connected(Version::Tls13);
    pair.client.send(b"one", &mut pair.to_server).unwrap();
    let one = pair.to_server.len();
    pair.client.send(b"two", &mut pair.to_server).unwrap();
    assert!(pair.to_server.len() > one);
    pair.at_server = b"before ".to_vec();
    pair.to_client = b"pending ".to_vec();
    let mut bytes = std::mem::take(&mut pair.to_server);
    pair.server.receive(&mut bytes, &mut pair.at_server, &mut pair.to_client).unwrap();
    assert_eq!((&pair.at_server[..], &pair.to_client[..]), (&b"before onetwo"[..], &b"pending "[..]));
}

#[test]
fn plain_http_on_a_tls_port_is_recognised() {
    let hint = |bytes: &[u8]| {
        let mut reply = Vec::new();
        let error =
            sides().acceptor.accept().receive(&mut bytes.to_vec(), &mut Vec::new(), &mut reply).unwrap_err();
        assert!(reply.is_empty(), "the caller may respond in cleartext");
        (error.reason(), error.fault())
    };
    assert_eq!(hint(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), ("not_tls_http", Fault::Peer));
    assert_eq!(hint(b"P"), ("not_tls_http", Fault::Peer));
    assert_eq!(hint(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ("not_tls_http", Fault::Peer));
    assert_eq!(hint(b"SSH-2.0-OpenSSH_9.6\r\n"), ("not_tls", Fault::Peer));
    assert_eq!(hint(&[0x80, 0x2e, 1, 3, 1]), ("not_tls", Fault::Peer));

    let mut client = sides().connectors[1].connect(&localhost());
    client.receive(&mut [], &mut Vec::new(), &mut Vec::new()).unwrap();
    let mut answer = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    let error = client.receive(&mut answer, &mut Vec::new(), &mut Vec::new()).unwrap_err();
    assert_eq!(error, TlsError::NotTls { http: true });
    assert_eq!(error.to_string(), "not TLS: the peer speaks plain HTTP");
}

#[test]
fn sending_needs_an_open_session() {
    let mut pair = Pair::new(&sides().connectors[1], &sides().acceptor);
    let mut out = Vec::new();
    assert_eq!(pair.client.send(b"early", &mut out), Err(TlsError::Handshaking));
    assert_eq!(pair.server.send(b"early", &mut out), Err(TlsError::Handshaking));
    assert!(out.is_empty() && pair.client.facts().is_none());
    pair.settle();
    pair.client.send(&[], &mut out).unwrap();
    assert!(out.is_empty(), "no data makes no record");
    pair.client.close(&mut out);
    let closed = out.len();
    assert!(closed > 0);
    pair.client.close(&mut out);
    assert_eq!(out.len(), closed, "close_notify is sent once");
    assert_eq!(pair.client.send(b"late", &mut out), Err(TlsError::Closed));
}

/// A client may close its direction and still read the response (RFC 8446 6.1).
#[test]
fn sending_is_possible_after_the_peer_has_closed() {
    for version in Version::ALL {
        let mut pair = connected(version);
        pair.client.close(&mut pair.to_server);
        // The server ignores bytes after close_notify.
        pair.to_server.extend_from_slice(&[0xff; 40]);
        let mut bytes = std::mem::take(&mut pair.to_server);
        let received = pair.server.receive(&mut bytes, &mut pair.at_server, &mut pair.to_client).unwrap();
        assert!(received.peer_closed && !received.handshake_finished && pair.server.peer_closed());
        pair.server.send(b"answer", &mut pair.to_client).unwrap();
        assert!(!pair.to_client.is_empty());
        pair.server.close(&mut pair.to_client);
    }
}

#[test]
fn the_handshake_finishes_in_exactly_one_call() {
    let mut pair = Pair::new(&sides().connectors[1], &sides().acceptor);
    let mut finished = [0, 0];
    pair.client.receive(&mut [], &mut pair.at_client, &mut pair.to_server).unwrap();
    while !pair.to_server.is_empty() || !pair.to_client.is_empty() {
        for byte in std::mem::take(&mut pair.to_server) {
            let received =
                pair.server.receive(&mut [byte], &mut pair.at_server, &mut pair.to_client).unwrap();
            finished[0] += usize::from(received.handshake_finished);
            assert_eq!(pair.server.facts().is_some(), finished[0] == 1);
        }
        for byte in std::mem::take(&mut pair.to_client) {
            let received =
                pair.client.receive(&mut [byte], &mut pair.at_client, &mut pair.to_server).unwrap();
            finished[1] += usize::from(received.handshake_finished);
        }
    }
    assert_eq!(finished, [1, 1]);
}

#[test]
fn a_modified_record_is_rejected_with_an_alert() {
    for version in Version::ALL {
        let mut pair = connected(version);
        pair.client.send(b"good", &mut pair.to_server).unwrap();
        let good = pair.to_server.len();
        pair.client.send(b"evil", &mut pair.to_server).unwrap();
        pair.to_server[good + 12] ^= 1;
        let mut bytes = std::mem::take(&mut pair.to_server);
        let error = pair.server.receive(&mut bytes, &mut pair.at_server, &mut pair.to_client).unwrap_err();
        assert_eq!((error.reason(), error.fault()), ("bad_record", Fault::Peer));
        assert_eq!(pair.at_server, b"good");
        assert!(pair.server.facts().is_some(), "the facts stay available");
        let (error, _) = pair.settle();
        assert_eq!(error.unwrap().reason(), "alert_bad_record_mac");
    }
}

#[test]
fn peer_names_parse_and_print() {
    for (host, shown) in
        [("example.org", "example.org"), ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("[::1]", "::1")]
    {
        assert_eq!(host.parse::<weir_tls::PeerName>().unwrap().to_string(), shown);
    }
    let error = "no spaces".parse::<weir_tls::PeerName>().unwrap_err();
    assert_eq!(error.to_string(), "unknown host \"no spaces\": expected a DNS name or an IP address");
}
