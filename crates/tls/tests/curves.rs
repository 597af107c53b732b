//! weir-ifma's curves on either side of a connection. On processors without AVX-512 IFMA, the tests print a message and
//! pass.

use crate::common::{Pair, Pki, handshake, only};
use weir_tls::issue::{Authority, KeyKind};
use weir_tls::{
    Certificate, ClientAuth, Curves, Group, HandshakeKind, Identity, Server, ServerSettings, SettingsError,
    SystemTime, Version,
};

fn is_missing() -> bool {
    let missing = Curves::Ifma.check();
    if let Err(error) = &missing {
        println!("skipped: {error}");
    }
    missing.is_err()
}

/// All pairs of curves for client and server in which at least one side does not use AWS-LC's.
fn pairs() -> impl Iterator<Item = (Curves, Curves)> {
    let all = Curves::ALL.into_iter().flat_map(|client| Curves::ALL.map(|server| (client, server)));
    all.filter(|pair| *pair != (Curves::AwsLc, Curves::AwsLc))
}

#[test]
fn handshakes_in_both_versions_with_every_group_full_and_resumed() {
    if is_missing() {
        return;
    }
    for kind in [KeyKind::EcdsaP256, KeyKind::EcdsaP384, KeyKind::Rsa2048] {
        let pki = Pki::new(kind);
        for (at_client, at_server) in pairs() {
            let acceptor = pki.acceptor(|settings| settings.curves = at_server);
            for version in Version::ALL {
                for group in Group::ALL.into_iter().filter(|group| group.fits(version)) {
                    let connector = pki.connector(|settings| {
                        only(version)(settings);
                        settings.curves = at_client;
                        settings.groups = vec![group];
                    });
                    let full = handshake(&connector, &acceptor);
                    assert_eq!((full.kind, full.group), (HandshakeKind::Full, Some(group)));
                    assert!(handshake(&connector, &acceptor).kind.is_resumption(), "{full}");
                }
            }
        }
    }
}

/// A client that prefers the hybrid also sends a key share for X25519, so a server without the hybrid needs no retry.
#[test]
fn a_server_without_the_hybrid_costs_no_retry() {
    if is_missing() {
        return;
    }
    let pki = Pki::new(KeyKind::EcdsaP256);
    for (at_client, at_server) in pairs() {
        let acceptor = pki.acceptor(|settings| {
            settings.curves = at_server;
            settings.groups = Group::CLASSICAL.to_vec();
        });
        let facts = handshake(&pki.connector(|settings| settings.curves = at_client), &acceptor);
        assert_eq!((facts.group, facts.hello_retry), (Some(Group::X25519), false), "{at_client} {at_server}");
    }
}

#[test]
fn client_certificates_are_signed_for() {
    if is_missing() {
        return;
    }
    for kind in [KeyKind::EcdsaP256, KeyKind::Rsa2048] {
        let pki = Pki::new(kind);
        for version in Version::ALL {
            let acceptor = pki
                .acceptor(|settings| settings.client_auth = Some(ClientAuth::required(pki.files.ca.clone())));
            let connector = pki.connector(|settings| {
                only(version)(settings);
                settings.curves = Curves::Ifma;
                settings.identity = Some(pki.issued.identity());
            });
            let mut pair = Pair::new(&connector, &acceptor);
            pair.exchange();
            assert!(pair.server.facts().unwrap().chain.is_some(), "{kind:?} {version}");
        }
    }
}

#[test]
fn a_certificate_signs_with_both_once_it_is_prepared() {
    if is_missing() {
        return;
    }
    let pki = Pki::new(KeyKind::EcdsaP256);
    let identity = pki.issued.identity();
    let certificate = Certificate::load(&identity, &SystemTime).unwrap();
    let server = |curves| {
        let settings = ServerSettings { curves, ..ServerSettings::default() };
        Server::with_certificates(&settings, vec![certificate.clone()])
    };
    let error = server(Curves::Ifma).unwrap_err().to_string();
    assert!(error.contains("is not prepared for the curves `ifma`"), "{error}");
    for curves in [Curves::AwsLc, Curves::IfmaX25519] {
        certificate.prepare(&Identity::files("/no/such", "/no/such"), curves).unwrap();
        handshake(&pki.connector(|_| {}), &server(curves).unwrap().core());
    }
    certificate.prepare(&identity, Curves::Ifma).unwrap();
    for curves in Curves::ALL {
        handshake(&pki.connector(|_| {}), &server(curves).unwrap().core());
    }
    // The key is already prepared, so its files are not read again.
    certificate.prepare(&Identity::files("/no/such", "/no/such"), Curves::Ifma).unwrap();
}

#[test]
fn a_certificate_is_not_prepared_with_the_key_of_another() {
    if is_missing() {
        return;
    }
    let authority = Authority::new().unwrap();
    let [one, other] = [(); 2].map(|()| authority.issue(&["localhost"], KeyKind::EcdsaP256).unwrap());
    let certificate = Certificate::load(&one.identity(), &SystemTime).unwrap();
    let error = certificate.prepare(&other.identity(), Curves::Ifma).unwrap_err().to_string();
    assert!(error.contains("changed meanwhile"), "{error}");
    let error = certificate.prepare(&Identity::files("/no/such", "/no/such"), Curves::Ifma).unwrap_err();
    assert!(error.to_string().contains("/no/such"), "{error}");
}

/// A listener with other curves may present a certificate set at run time, so the server prepares the certificate's
/// key.
#[test]
fn a_portable_certificate_is_prepared_by_its_server() {
    if is_missing() {
        return;
    }
    for kind in [KeyKind::EcdsaP256, KeyKind::Ed25519] {
        let pki = Pki::new(kind);
        let settings = ServerSettings { curves: Curves::Ifma, ..pki.server_settings() };
        let server = Server::new(&settings).unwrap();
        let first = Certificate::load_portable(&pki.issued.identity(), "one".to_owned()).unwrap();
        let second = Certificate::of_bytes(&first.to_bytes().unwrap(), "two".to_owned()).unwrap();
        for certificate in [first, second] {
            handshake(&pki.connector(|_| {}), &server.presenting(vec![certificate]).unwrap().core());
        }
    }
}

#[test]
fn curves_that_this_process_cannot_use_are_an_error_of_the_settings() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for curves in Curves::ALL {
        let settings = ServerSettings { curves, ..pki.server_settings() };
        match (curves.check(), Server::new(&settings)) {
            (Ok(()), Ok(_)) => {}
            (Err(error), Err(SettingsError::Curves(found))) => assert_eq!(found, error),
            (checked, server) => panic!("{curves}: {checked:?}, {:?}", server.err()),
        }
    }
}
