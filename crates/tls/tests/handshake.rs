//! Negotiation in memory, for every version, suite, group and kind of key.

use crate::common::{Clock, Pair, Pki, client_hello, handshake, localhost};
use weir_tls::issue::{Authority, KeyKind};
use weir_tls::{
    Client, ClientAuth, Fault, Group, HandshakeKind, Identity, PeerName, Roots, Signature, Suite, TlsError,
    Version,
};

#[test]
fn defaults_negotiate_tls_1_3_with_the_hybrid_group_and_the_cheapest_suite() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let facts = handshake(&pki.connector(|_| {}), &pki.acceptor(|_| {}));
    let bytes = facts.chain.unwrap().bytes;
    let expected = format!("1.3 aes128-gcm-sha256 x25519mlkem768 ecdsa-p256-sha256 full chain=1/{bytes}");
    assert_eq!(facts.to_string(), expected);
}

#[test]
fn every_suite_with_its_version_and_key() {
    let cases = [
        (KeyKind::EcdsaP256, "ecdhe-ecdsa"),
        (KeyKind::EcdsaP384, "ecdhe-ecdsa"),
        (KeyKind::Rsa2048, "ecdhe-rsa"),
    ];
    for (kind, prefix) in cases {
        let pki = Pki::new(kind);
        let acceptor = pki.acceptor(|_| {});
        for suite in Suite::ALL {
            if suite.version() == Version::Tls12 && !suite.name().starts_with(prefix) {
                continue;
            }
            let connector = pki.connector(|settings| {
                settings.versions = vec![suite.version()];
                settings.suites = vec![suite];
            });
            let facts = handshake(&connector, &acceptor);
            assert_eq!((facts.version, facts.suite), (suite.version(), suite));
            assert_eq!(facts.kind, HandshakeKind::Full);
            let expected = match kind {
                KeyKind::EcdsaP256 => Signature::EcdsaP256Sha256,
                KeyKind::EcdsaP384 => Signature::EcdsaP384Sha384,
                KeyKind::Ed25519 => Signature::Ed25519,
                KeyKind::Rsa2048 | KeyKind::Rsa3072 | KeyKind::Rsa4096 => Signature::RsaPssSha512,
            };
            assert_eq!(facts.signature, Some(expected), "{facts}");
        }
    }
}

#[test]
fn every_group_in_both_versions() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor = pki.acceptor(|settings| settings.groups = Group::ALL.to_vec());
    for version in Version::ALL {
        for group in Group::ALL.into_iter().filter(|group| group.fits(version)) {
            let connector = pki.connector(|settings| {
                settings.versions = vec![version];
                settings.suites.retain(|suite| suite.version() == version);
                settings.groups = vec![group];
            });
            let facts = handshake(&connector, &acceptor);
            assert_eq!((facts.version, facts.group, facts.hello_retry), (version, Some(group), false));
        }
    }
}

/// By default both sides prefer the post-quantum hybrid, without a second ClientHello.
#[test]
fn the_hybrid_group_is_preferred_and_costs_no_client_a_retry() {
    use Group::{P256, P384, X25519, X25519Mlkem768 as Hybrid};
    let pki = Pki::new(KeyKind::EcdsaP256);
    let (ours, both) = (Group::DEFAULT.to_vec(), Version::ALL.to_vec());
    for (versions, at_client, at_server, expected) in [
        (&both, &ours[..], &ours[..], Hybrid),
        (&both, &Group::CLASSICAL, &ours, X25519),
        (&both, &[X25519], &ours, X25519),
        (&both, &[P256], &ours, P256),
        (&both, &[P384, X25519], &ours, P384),
        (&both, &[X25519, Hybrid], &ours, X25519),
        (&vec![Version::Tls13], &[Hybrid], &ours, Hybrid),
        // The client also sends a key share for X25519, in case the server lacks the hybrid.
        (&both, &ours, &Group::CLASSICAL, X25519),
        (&both, &ours, &[X25519], X25519),
        (&vec![Version::Tls12], &ours, &ours, X25519),
        (&vec![Version::Tls12], &Group::CLASSICAL, &ours, X25519),
    ] {
        let acceptor = pki.acceptor(|settings| settings.groups = at_server.to_vec());
        let connector = pki.connector(|settings| {
            settings.versions = versions.clone();
            settings.suites.retain(|suite| versions.contains(&suite.version()));
            settings.groups = at_client.to_vec();
        });
        let facts = handshake(&connector, &acceptor);
        assert_eq!((facts.group, facts.hello_retry), (Some(expected), false), "{at_client:?}: {facts}");
    }
    // The ClientHello fits into one record, and is far shorter than the server's limit.
    let hello = client_hello(&mut pki.connector(|_| {}).connect(&localhost()));
    assert_eq!(usize::from(u16::from_be_bytes([hello[3], hello[4]])), hello.len() - 5);
    assert!((1_300..2_500).contains(&hello.len()), "{} bytes", hello.len());
}

#[test]
fn an_unsuitable_first_key_share_causes_a_retry() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor = pki.acceptor(|settings| settings.groups = vec![Group::P384]);
    let connector = pki.connector(|_| {});
    let facts = handshake(&connector, &acceptor);
    assert!(facts.hello_retry);
    let expected = "1.3 aes128-gcm-sha256 p384 ecdsa-p256-sha256 full hello-retry chain=1/";
    assert!(facts.to_string().starts_with(expected), "{facts}");
    // The next connection starts with the stored group.
    let facts = handshake(&connector, &acceptor);
    assert!(!facts.hello_retry, "{facts}");
}

#[test]
fn a_resumption_with_a_retry_reports_both() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let clock = Clock::stopped_now();
    let connector = pki.connector(|_| {});
    let before = pki.acceptor(|settings| settings.time = clock.clone());
    assert_eq!(handshake(&connector, &before).kind, HandshakeKind::Full);
    // The same identity with other groups: the ticket is still valid, but the stored group no longer fits.
    let after = pki.acceptor(|settings| {
        settings.time = clock.clone();
        settings.groups = vec![Group::P256];
    });
    let facts = handshake(&connector, &after);
    assert_eq!((facts.kind, facts.hello_retry), (HandshakeKind::Resume13Psk, true), "{facts}");
}

#[test]
fn the_servers_first_common_application_protocol_is_selected() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor = pki.acceptor(|settings| settings.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()]);
    let offering = |names: &[&str]| {
        let alpn = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        pki.connector(|settings| settings.alpn = alpn)
    };
    let facts = handshake(&offering(&["http/1.1", "h2"]), &acceptor);
    assert_eq!(facts.alpn.as_deref(), Some(&b"h2"[..]));
    assert!(facts.to_string().contains(" full alpn=h2 chain=1/"), "{facts}");
    assert_eq!(handshake(&offering(&["http/1.1"]), &acceptor).alpn.as_deref(), Some(&b"http/1.1"[..]));
    assert_eq!(handshake(&offering(&[]), &acceptor).alpn, None);

    let (client, server) = Pair::new(&offering(&["gopher"]), &acceptor).settle();
    assert_eq!(server, Some(TlsError::NoApplicationProtocol));
    assert_eq!(client.unwrap().reason(), "alert_no_application_protocol");
}

#[test]
fn sides_without_a_common_version_report_it() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let only = |version: Version| {
        move |versions: &mut Vec<Version>, suites: &mut Vec<Suite>| {
            *versions = vec![version];
            suites.retain(|suite| suite.version() == version);
        }
    };
    let acceptor =
        pki.acceptor(|settings| only(Version::Tls13)(&mut settings.versions, &mut settings.suites));
    let connector =
        pki.connector(|settings| only(Version::Tls12)(&mut settings.versions, &mut settings.suites));
    let (client, server) = Pair::new(&connector, &acceptor).settle();
    let server = server.unwrap();
    assert_eq!((server.reason(), server.fault()), ("incompatible", Fault::Settings));
    assert_eq!(server.to_string(), "nothing in common with the peer: no version");
    assert_eq!(client.unwrap().reason(), "alert_protocol_version");
}

#[test]
fn sides_without_a_common_suite_or_group_report_it() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor = pki.acceptor(|settings| {
        settings.versions = vec![Version::Tls13];
        settings.suites = vec![Suite::Aes128GcmSha256];
        settings.groups = vec![Group::X25519];
    });
    let connector =
        pki.connector(|settings| settings.suites.retain(|suite| *suite != Suite::Aes128GcmSha256));
    let (client, server) = Pair::new(&connector, &acceptor).settle();
    assert_eq!(server.unwrap().to_string(), "nothing in common with the peer: no suite");
    assert_eq!(client.unwrap().reason(), "alert_handshake_failure");

    let connector = pki.connector(|settings| settings.groups = vec![Group::P384]);
    let (_, server) = Pair::new(&connector, &acceptor).settle();
    assert_eq!(server.unwrap().to_string(), "nothing in common with the peer: no group");
}

#[test]
fn client_certificates_are_required_when_roots_are_given() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for version in Version::ALL {
        let acceptor =
            pki.acceptor(|settings| settings.client_auth = Some(ClientAuth::required(pki.files.ca.clone())));
        let connector = |identity: Option<Identity>| {
            pki.connector(|settings| {
                settings.versions = vec![version];
                settings.suites.retain(|suite| suite.version() == version);
                settings.identity = identity;
            })
        };
        let known = Identity::files(&pki.files.certificates, &pki.files.key);
        let facts = handshake(&connector(Some(known)), &acceptor);
        // The facts contain the server's signature, not the client's.
        assert_eq!((facts.version, facts.signature), (version, Some(Signature::EcdsaP256Sha256)));

        let (_, server) = Pair::new(&connector(None), &acceptor).settle();
        assert_eq!(server.unwrap().reason(), "certificate_missing");

        let stranger = Authority::new().unwrap().issue(&["client"], KeyKind::EcdsaP256).unwrap();
        let (client, server) = Pair::new(&connector(Some(stranger.identity())), &acceptor).settle();
        assert_eq!(server.unwrap().reason(), "certificate_unknown_issuer");
        assert_eq!(client.unwrap().reason(), "alert_unknown_ca");
    }
}

#[test]
fn the_signature_is_the_servers_even_if_the_client_signs_with_another_scheme() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor =
        pki.acceptor(|settings| settings.client_auth = Some(ClientAuth::required(pki.files.ca.clone())));
    let rsa = pki.authority.issue(&["client"], KeyKind::Rsa2048).unwrap();
    let connector = pki.connector(|settings| settings.identity = Some(rsa.identity()));
    assert_eq!(handshake(&connector, &acceptor).signature, Some(Signature::EcdsaP256Sha256));
}

fn failure(name: &PeerName, pki: &Pki, roots: Roots, clock: Option<std::sync::Arc<Clock>>) -> TlsError {
    let connector = pki.connector(|settings| {
        settings.roots = roots;
        if let Some(clock) = clock {
            settings.time = clock;
        }
    });
    let (client, server) = Pair::to(name, &connector, &pki.acceptor(|_| {})).settle();
    assert!(matches!(server, Some(TlsError::PeerAlert(_))), "{server:?}");
    client.unwrap()
}

#[test]
fn an_untrusted_certificate_is_rejected_with_the_reason() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let stranger = Pki::new(KeyKind::EcdsaP256);
    let own = || Roots::File(pki.files.ca.clone());
    let year = 366 * 24 * 60 * 60;

    let error = failure(&"example.org".parse().unwrap(), &pki, own(), None);
    assert_eq!((error.reason(), error.fault()), ("certificate_wrong_name", Fault::Settings));
    assert!(error.to_string().contains("example.org") && error.to_string().contains("localhost"), "{error}");
    assert_eq!(failure(&"127.0.0.2".parse().unwrap(), &pki, own(), None).reason(), "certificate_wrong_name");

    let error = failure(&localhost(), &pki, Roots::File(stranger.files.ca.clone()), None);
    assert_eq!(error.reason(), "certificate_unknown_issuer");

    let error = failure(&localhost(), &pki, own(), Some(Clock::new(81 * year)));
    assert_eq!(error.reason(), "certificate_expired");
    let error = failure(&localhost(), &pki, own(), Some(Clock::new(20 * year)));
    assert_eq!(error.reason(), "certificate_not_valid_yet");
}

#[test]
fn an_address_is_a_name_too() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let facts =
        Pair::to(&"127.0.0.1".parse().unwrap(), &pki.connector(|_| {}), &pki.acceptor(|_| {})).exchange();
    assert_eq!(facts.kind, HandshakeKind::Full);
}

#[test]
fn without_verification_any_name_and_ca_is_accepted() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let connector = pki.connector(|settings| settings.roots = Roots::DangerouslyNone);
    let facts = Pair::to(&"example.org".parse().unwrap(), &connector, &pki.acceptor(|_| {})).exchange();
    assert_eq!(facts.signature, Some(Signature::EcdsaP256Sha256));
}

#[test]
fn the_systems_roots_load_and_do_not_trust_our_ca() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    match Client::new(&weir_tls::ClientSettings::default()) {
        Err(error) => println!("skipped: {error}"),
        Ok(client) => {
            let (error, _) = Pair::new(&client.core(), &pki.acceptor(|_| {})).settle();
            assert_eq!(error.unwrap().reason(), "certificate_unknown_issuer");
        }
    }
}
