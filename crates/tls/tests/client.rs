//! Client settings, rejections and the key log.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::thread;

use crate::common::{Clock, Pair, Pki, client_hello, handshake, localhost, only};
use rustls::crypto::aws_lc_rs;
use rustls::server::ServerConnection;
use rustls::sign::{CertifiedKey, Signer, SigningKey, SingleCertAndKey};
use rustls::{ServerConfig, SignatureAlgorithm, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use weir_tls::issue::{Authority, KeyKind};
use weir_tls::{
    Acceptor, Chain, Client, ClientAuth, ClientSettings, Connector, Fault, HandshakeKind, Roots, Signature,
    TimeProvider, TlsError, Version,
};

#[test]
fn signature_schemes_parse_and_print() {
    for known in Signature::ALL {
        for name in [known.name().to_owned(), known.iana_name().to_uppercase(), known.to_string()] {
            assert_eq!(name.parse(), Ok(known));
        }
    }
    assert_eq!("ecdsa_secp256r1_sha256".parse(), Ok(Signature::EcdsaP256Sha256));
    assert_eq!("rsa_pss_rsae_sha256".parse(), Ok(Signature::RsaPssSha256));
    assert_eq!("RSA-PKCS1-SHA512".parse(), Ok(Signature::RsaPkcs1Sha512));
    let error = "rsa_pkcs1_sha1".parse::<Signature>().unwrap_err().to_string();
    assert_eq!(
        error,
        "unknown signature scheme \"rsa_pkcs1_sha1\": expected ecdsa-p256-sha256, ecdsa-p384-sha384, \
         ecdsa-p521-sha512, ed25519, rsa-pss-sha256, rsa-pss-sha384, rsa-pss-sha512, rsa-pkcs1-sha256, \
         rsa-pkcs1-sha384, rsa-pkcs1-sha512, ml-dsa-44, ml-dsa-65, ml-dsa-87"
    );
    assert_eq!(format!("{:>8}", Signature::Other(0x0807)), "  0x0807");
}

#[test]
fn unusable_signature_schemes_are_rejected() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let rejected = |signatures: &[Signature], change: &dyn Fn(&mut ClientSettings)| {
        let mut settings = pki.client_settings();
        settings.signatures = signatures.to_vec();
        change(&mut settings);
        Client::new(&settings).unwrap_err().to_string()
    };
    let error = rejected(&[Signature::Ed25519, Signature::Other(0x0201)], &|_| {});
    let start = "signature scheme 0x0201 is not supported: expected one of ecdsa-p256-sha256, ";
    assert!(error.starts_with(start), "{error}");
    assert_eq!(
        rejected(&[Signature::RsaPkcs1Sha256], &only(Version::Tls13)),
        "TLS 1.3 is enabled without a signature scheme for it: expected one of ecdsa-p256-sha256, \
         ecdsa-p384-sha384, ecdsa-p521-sha512, ed25519, rsa-pss-sha256, rsa-pss-sha384, rsa-pss-sha512, \
         ml-dsa-44, ml-dsa-65, ml-dsa-87"
    );
    // In TLS 1.2 the suite determines the key type.
    let error = rejected(&[Signature::RsaPssSha256], &|settings| {
        only(Version::Tls12)(settings);
        settings.suites.retain(|suite| suite.name().contains("ecdsa"));
    });
    assert_eq!(
        error,
        "TLS 1.2 is enabled without a signature scheme for it: expected one of ecdsa-p256-sha256, \
         ecdsa-p384-sha384, ecdsa-p521-sha512, ed25519"
    );
    let error = rejected(&[Signature::MlDsa44], &|_| {});
    assert!(error.starts_with("TLS 1.2 is enabled without a signature scheme for it:"), "{error}");
    for roots in [Roots::File(pki.files.ca.clone()), Roots::DangerouslyNone] {
        let signatures = Signature::ALL.to_vec();
        Client::new(&ClientSettings { roots, signatures, ..ClientSettings::default() }).unwrap();
    }
}

#[test]
fn signature_schemes_are_offered_in_the_order_given() {
    let pki = Pki::new(KeyKind::Rsa2048);
    let connector = pki.connector(|settings| {
        settings.signatures = vec![Signature::RsaPssSha256, Signature::EcdsaP256Sha256];
    });
    let hello = client_hello(&mut connector.connect(&localhost()));
    // RFC 8446 4.2.3: extension 13, its length, the list's length, the schemes.
    let extension = [0, 13, 0, 6, 0, 4, 8, 4, 4, 3];
    assert!(hello.windows(extension.len()).any(|window| window == extension), "{hello:02x?}");
}

#[test]
fn the_server_signs_with_the_requested_scheme() {
    let rsa = [
        (Signature::RsaPssSha256, &Version::ALL[..]),
        (Signature::RsaPssSha384, &Version::ALL),
        (Signature::RsaPssSha512, &Version::ALL),
        (Signature::RsaPkcs1Sha256, &[Version::Tls12]),
        (Signature::RsaPkcs1Sha384, &[Version::Tls12]),
        (Signature::RsaPkcs1Sha512, &[Version::Tls12]),
    ];
    let pki = Pki::new(KeyKind::Rsa2048);
    let acceptor = pki.acceptor(|_| {});
    for (signature, versions) in rsa {
        for version in versions {
            for roots in [Roots::File(pki.files.ca.clone()), Roots::DangerouslyNone] {
                let connector = pki.connector(|settings| {
                    only(*version)(settings);
                    (settings.signatures, settings.roots) = (vec![signature], roots);
                });
                // The CA's signature is ECDSA: a pinned handshake signature does not exclude it.
                assert_eq!(handshake(&connector, &acceptor).signature, Some(signature), "{version}");
            }
        }
    }
}

#[test]
fn a_server_without_a_key_for_the_scheme_rejects_the_handshake() {
    let pki = Pki::new(KeyKind::Rsa2048);
    let acceptor = pki.acceptor(|_| {});
    for version in Version::ALL {
        let connector = pki.connector(|settings| {
            only(version)(settings);
            settings.signatures = vec![Signature::EcdsaP256Sha256, Signature::EcdsaP384Sha384];
        });
        let (client, server) = Pair::new(&connector, &acceptor).settle();
        let (client, server) = (client.unwrap(), server.unwrap());
        assert_eq!((server.reason(), server.fault()), ("incompatible", Fault::Settings), "{server}");
        assert_eq!((client.reason(), client.fault()), ("alert_handshake_failure", Fault::Settings));
    }
}

/// A key that always signs with one scheme, whatever the client offers.
#[derive(Debug)]
struct Stubborn(Arc<dyn SigningKey>, SignatureScheme);

impl SigningKey for Stubborn {
    fn choose_scheme(&self, _offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        self.0.choose_scheme(&[self.1])
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}

/// Connects to a server that signs with `scheme`, offering `signatures`; returns the client's error.
fn with_stubborn(
    pki: &Pki,
    scheme: SignatureScheme,
    version: Version,
    signatures: &[Signature],
    roots: Roots,
) -> Option<TlsError> {
    let provider = aws_lc_rs::default_provider();
    let certificates =
        CertificateDer::pem_slice_iter(pki.issued.certificates.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(pki.issued.key.as_bytes()).unwrap();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let certified = CertifiedKey::new(certificates, Arc::new(Stubborn(key, scheme)));
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    let mut server = ServerConnection::new(Arc::new(config)).unwrap();
    let connector = pki.connector(|settings| {
        only(version)(settings);
        (settings.signatures, settings.roots) = (signatures.to_vec(), roots);
    });
    let mut client = connector.connect(&localhost());
    let mut to_server = client_hello(&mut client);
    while client.is_handshaking() {
        server.read_tls(&mut &to_server[..]).unwrap();
        server.process_new_packets().unwrap();
        let mut to_client = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut to_client).unwrap();
        }
        assert!(!to_client.is_empty());
        to_server.clear();
        if let Err(error) = client.receive(&mut to_client, &mut Vec::new(), &mut to_server) {
            return Some(error);
        }
    }
    None
}

/// The client rejects a signature scheme that it did not offer, so that measurements use the requested scheme.
#[test]
fn a_signature_that_was_not_offered_fails_the_handshake() {
    let pki = Pki::new(KeyKind::Rsa2048);
    for version in Version::ALL {
        for trusted in [true, false] {
            let roots = || if trusted { Roots::File(pki.files.ca.clone()) } else { Roots::DangerouslyNone };
            let with = |signatures: &[Signature]| {
                with_stubborn(&pki, SignatureScheme::RSA_PSS_SHA512, version, signatures, roots())
            };
            let error = with(&[Signature::RsaPssSha256]).unwrap();
            assert_eq!((error.reason(), error.fault()), ("peer_misbehaved", Fault::Peer), "{error}");
            assert_eq!(with(&[Signature::RsaPssSha256, Signature::RsaPssSha512]), None);
            assert_eq!(with(&[]), None);
        }
    }
}

#[test]
fn the_reported_chain_is_the_servers() {
    for kind in [KeyKind::EcdsaP256, KeyKind::EcdsaP384, KeyKind::Rsa2048] {
        let root = Authority::new().unwrap();
        let intermediate = root.intermediate().unwrap();
        assert_eq!(root.ca_pem(), intermediate.ca_pem());
        let error = intermediate.intermediate().unwrap_err().to_string();
        assert!(error.contains("an intermediate cannot issue a CA"), "{error}");
        for (authority, certificates) in [(root, 1), (intermediate, 2)] {
            let pki = Pki::issued_by(authority, kind);
            let bytes = CertificateDer::pem_slice_iter(pki.issued.certificates.as_bytes())
                .map(|certificate| certificate.unwrap().len() as u32)
                .sum();
            let acceptor = pki.acceptor(|_| {});
            for version in Version::ALL {
                let connector = pki.connector(only(version));
                let facts = Pair::of(connector.connect_full(&localhost()), &acceptor).exchange();
                assert_eq!(facts.chain, Some(Chain { certificates, bytes }), "{facts}");
                assert!(facts.to_string().ends_with(&format!(" full chain={certificates}/{bytes}")));
                let facts = handshake(&connector, &acceptor);
                assert!(facts.kind.is_resumption());
                assert!(facts.chain.is_none() && !facts.to_string().contains("chain="), "{facts}");
            }
        }
    }
}

/// Both sides present a certificate; each reports the other's.
#[test]
fn each_side_reports_the_others_chain() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor =
        pki.acceptor(|settings| settings.client_auth = Some(ClientAuth::required(pki.files.ca.clone())));
    let client = pki.authority.issue(&["client.example"], KeyKind::Rsa2048).unwrap();
    let connector = pki.connector(|settings| settings.identity = Some(client.identity()));
    let mut pair = Pair::new(&connector, &acceptor);
    let facts = pair.exchange();
    let bytes_of = |pem: &str| {
        let ders = CertificateDer::pem_slice_iter(pem.as_bytes());
        ders.map(|certificate| certificate.unwrap().len() as u32).sum::<u32>()
    };
    assert_eq!(facts.chain.unwrap().bytes, bytes_of(&pki.issued.certificates));
    assert_eq!(pair.server.facts().unwrap().chain.unwrap().bytes, bytes_of(&client.certificates));
    let resumed = Pair::new(&connector, &acceptor).exchange();
    assert!(resumed.kind.is_resumption() && resumed.chain.is_none());
}

#[test]
fn the_server_name_is_sent_by_default() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let acceptor = pki.acceptor(|_| {});
    let name = b"localhost";
    for (sni, sent) in [(true, true), (false, false)] {
        let connector = pki.connector(|settings| settings.sni = sni);
        for turn in 0..2 {
            let hello = client_hello(&mut connector.connect(&localhost()));
            assert_eq!(hello.windows(name.len()).any(|window| window == name), sent, "{turn}");
            // The client verifies the name whether or not it sends SNI.
            handshake(&connector, &acceptor);
        }
        let (error, _) = Pair::to(&"example.org".parse().unwrap(), &connector, &acceptor).settle();
        assert_eq!(error.unwrap().reason(), "certificate_wrong_name");
    }
}

/// Parses the lines of a key log: label, the ClientHello's random, and the secret.
fn key_log_lines(log: &str) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    assert!(log.ends_with('\n'));
    let bytes = |hex: &str| {
        assert!(hex.len().is_multiple_of(2) && hex.bytes().all(|digit| b"0123456789abcdef".contains(&digit)));
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    log.lines()
        .map(|line| {
            let [label, random, secret] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            (label.to_owned(), bytes(random), bytes(secret))
        })
        .collect()
}

#[test]
fn the_key_log_has_each_sessions_secrets() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    let acceptor = pki.acceptor(|settings| settings.stateful = true);
    for version in Version::ALL {
        fs::write(&path, "# kept\n").unwrap();
        let connector = pki.connector(|settings| {
            only(version)(settings);
            settings.key_log = Some(path.clone());
        });
        let mut randoms = Vec::new();
        for kind in ["full", "resumed"] {
            let mut pair = Pair::new(&connector, &acceptor);
            pair.to_server = client_hello(&mut pair.client);
            randoms.push(pair.to_server[11..43].to_vec());
            assert_eq!(pair.settle(), (None, None), "{kind}");
            assert_eq!(pair.client.facts().unwrap().kind == HandshakeKind::Full, kind == "full");
        }
        let log = fs::read_to_string(&path).unwrap();
        let lines = key_log_lines(log.strip_prefix("# kept\n").unwrap());
        let expected: &[(&str, usize)] = match version {
            Version::Tls12 => &[("CLIENT_RANDOM", 48)],
            Version::Tls13 => &[
                ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", 32),
                ("CLIENT_TRAFFIC_SECRET_0", 32),
                ("EXPORTER_SECRET", 32),
                ("SERVER_HANDSHAKE_TRAFFIC_SECRET", 32),
                ("SERVER_TRAFFIC_SECRET_0", 32),
            ],
        };
        for random in &randoms {
            let of_session = lines.iter().filter(|(_, known, _)| known == random);
            let labels: BTreeSet<_> =
                of_session.map(|(label, _, secret)| (label.as_str(), secret.len())).collect();
            assert_eq!(labels, expected.iter().copied().collect(), "{version}");
        }
        assert_eq!(lines.len(), 2 * expected.len());
        if version == Version::Tls12 {
            assert_eq!(lines[0].2, lines[1].2, "a resumption uses the master secret of its session");
        }
    }
}

#[test]
fn lines_of_the_key_log_are_whole_with_several_writers() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    let settings = ClientSettings { key_log: Some(path.clone()), ..pki.client_settings() };
    let client = Client::new(&settings).unwrap();
    // A second client in the same process opens the file separately.
    let other = Client::new(&settings).unwrap();
    thread::scope(|scope| {
        for client in [&client, &client, &other, &other] {
            let (connector, acceptor) = (client.core(), pki.acceptor(|_| {}));
            scope.spawn(move || (0..50).for_each(|_| drop(handshake(&connector, &acceptor))));
        }
    });
    let lines = key_log_lines(&fs::read_to_string(&path).unwrap());
    assert_eq!(lines.len(), 4 * 50 * 5);
    assert!(lines.iter().all(|(_, random, secret)| (random.len(), secret.len()) == (32, 32)));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_error_of_an_unusable_key_log_names_its_file() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path().to_owned(), directory.path().join("nowhere/keys")] {
        let settings = ClientSettings { key_log: Some(path.clone()), ..pki.client_settings() };
        let error = Client::new(&settings).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot write {}: ", path.display())), "{error}");
    }
}

/// Connects after `advance` seconds; returns the client's error, if any.
fn error_at(
    clock: &Clock,
    advance: u64,
    name: &str,
    connector: &Connector,
    acceptor: &Acceptor,
) -> Option<TlsError> {
    clock.advance(advance);
    let name = name.parse().unwrap();
    let mut pair = Pair::of(connector.connect_full(&name), acceptor);
    pair.settle().0
}

/// The client caches a verified chain for one second, and only for its name, its bytes and its roots.
#[test]
fn a_remembered_certificate_is_no_wider_than_the_verified_one() {
    let (pki, stranger) = (Pki::new(KeyKind::EcdsaP256), Pki::new(KeyKind::EcdsaP256));
    let clock = Clock::stopped_now();
    let time = clock.clone();
    let connector = pki.connector(|settings| settings.time = time);
    let (ours, foreign) = (pki.acceptor(|_| {}), stranger.acceptor(|_| {}));
    let error = |advance, name, acceptor| error_at(&clock, advance, name, &connector, acceptor);

    for name in ["localhost", "127.0.0.1", "localhost"] {
        assert_eq!(error(0, name, &ours), None);
    }
    assert!(error(0, "localhost", &foreign).is_some(), "another chain");
    assert!(error(0, "example.org", &ours).is_some(), "another name");
    assert_eq!(error(0, "localhost", &ours), None);
    assert!(error(0, "localhost", &foreign).is_some(), "a failure leaves nothing");
    assert_eq!(error(1, "localhost", &ours), None);
    // The certificates are valid until the end of 2049.
    let end = 2_524_608_000 - clock.current_time().unwrap().as_secs();
    assert!(error(end, "localhost", &ours).is_some(), "it has expired");
}
