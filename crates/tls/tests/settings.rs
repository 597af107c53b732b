//! Invalid settings: the error names the file and the value, and states what was expected.

use std::fs;
use std::path::Path;

use crate::common::{Pair, Pki, only};
use weir_tls::issue::{Authority, KeyKind};
use weir_tls::{
    Client, ClientAuth, ClientSettings, FileError, Group, Identity, Roots, Server, ServerSettings,
    SettingsError, Suite, Version,
};

fn rejected(pki: &Pki, change: impl FnOnce(&mut ServerSettings)) -> String {
    let mut settings = pki.server_settings();
    change(&mut settings);
    Server::new(&settings).unwrap_err().to_string()
}

#[test]
fn names_parse_and_print() {
    assert_eq!("1.2".parse(), Ok(Version::Tls12));
    assert_eq!("1.3".parse(), Ok(Version::Tls13));
    assert_eq!("TLS_AES_256_GCM_SHA384".parse(), Ok(Suite::Aes256GcmSha384));
    assert_eq!("ECDHE-RSA-AES128-GCM-SHA256".parse(), Ok(Suite::EcdheRsaAes128GcmSha256), "OpenSSL's name");
    assert_eq!(
        "ECDHE-ECDSA-CHACHA20-POLY1305".parse(),
        Ok(Suite::EcdheEcdsaChacha20Poly1305),
        "OpenSSL's name"
    );
    assert_eq!("X25519".parse(), Ok(Group::X25519));
    for spelling in ["p256", "p-256", "P-256", "secp256r1", "prime256v1"] {
        assert_eq!((spelling.parse(), Group::spelling(spelling)), (Ok(Group::P256), "p256"));
    }
    assert_eq!(Group::spelling("p-521"), "p-521", "unknown names are unchanged");
    assert_eq!("secp384r1".parse(), Ok(Group::P384));
    assert_eq!("X25519MLKEM768".parse(), Ok(Group::X25519Mlkem768));
    assert!(Version::ALL.iter().all(|known| known.to_string().parse() == Ok(*known)));
    assert!(Suite::ALL.iter().all(|known| known.to_string().parse() == Ok(*known)));
    assert!(Group::ALL.iter().all(|known| known.to_string().parse() == Ok(*known)));
}

#[test]
fn errors_of_unknown_names_list_the_expected_ones() {
    let error = "1.1".parse::<Version>().unwrap_err();
    assert_eq!(error.to_string(), "unknown TLS version \"1.1\": expected 1.2, 1.3");
    let error = "p521".parse::<Group>().unwrap_err();
    assert_eq!(error.to_string(), "unknown group \"p521\": expected x25519, p256, p384, x25519mlkem768");
    let error = "AES256-SHA".parse::<Suite>().unwrap_err().to_string();
    assert!(error.starts_with("unknown suite \"AES256-SHA\": expected aes128-gcm-sha256, "), "{error}");
}

#[test]
fn incompatible_lists_are_rejected() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    assert_eq!(
        rejected(&pki, |settings| settings.versions = vec![Version::Tls13]),
        "suite ecdhe-ecdsa-aes128-gcm-sha256 belongs to TLS 1.2, but only 1.3 is enabled"
    );
    assert_eq!(
        rejected(&pki, |settings| settings.suites = vec![Suite::EcdheEcdsaAes128GcmSha256]),
        "TLS 1.3 is enabled without any of its suites: \
         expected one of aes128-gcm-sha256, aes256-gcm-sha384, chacha20-poly1305-sha256"
    );
    assert_eq!(
        rejected(&pki, |settings| settings.groups = vec![Group::X25519Mlkem768]),
        "TLS 1.2 is enabled without any of its groups: expected one of x25519, p256, p384"
    );
    assert_eq!(
        rejected(&pki, |settings| settings.groups.clear()),
        "no TLS groups enabled: expected at least one"
    );
    assert_eq!(
        rejected(&pki, |settings| {
            settings.versions = vec![Version::Tls12];
            settings.suites = vec![Suite::EcdheRsaAes128GcmSha256];
        }),
        "the certificate's key is ECDSA: with only TLS 1.2 enabled, expected one of the suites \
         ecdhe-ecdsa-aes128-gcm-sha256, ecdhe-ecdsa-aes256-gcm-sha384, ecdhe-ecdsa-chacha20-poly1305"
    );
    assert_eq!(
        rejected(&pki, |settings| settings.tickets = 17),
        "tickets: invalid value 17: expected 0 to 16"
    );
    assert_eq!(
        rejected(&pki, |settings| settings.alpn = vec![Vec::new()]),
        "ALPN protocol \"\": expected 1 to 255 bytes"
    );
}

#[test]
fn errors_of_unusable_files_name_them() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let with = |certificates: &Path, key: &Path| {
        rejected(&pki, |settings| settings.identities = vec![Identity::files(certificates, key)])
    };
    let (certificates, key) = (&pki.files.certificates, &pki.files.key);

    let missing = directory.path().join("missing.pem");
    let error = with(&missing, key);
    assert!(error.starts_with(&format!("cannot read {}: No such file", missing.display())), "{error}");

    let error = with(key, key);
    assert!(error.starts_with(&format!("{}: it contains no certificate", key.display())), "{error}");

    let empty = file("empty.pem", "");
    let error = with(certificates, &empty);
    assert!(error.starts_with(&format!("{}: no usable private key", empty.display())), "{error}");

    let junk = file("junk.pem", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    let error = with(certificates, &junk);
    assert!(error.starts_with(&format!("{}: no usable private key", junk.display())), "{error}");

    let junk = file("junk-cert.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let error = with(&junk, key);
    assert!(error.starts_with(&format!("{}: not a valid certificate", junk.display())), "{error}");

    let torn = file("torn.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    let error = with(&torn, key);
    assert!(error.starts_with(&format!("{}: not a valid certificate", torn.display())), "{error}");

    let other = file("other.pem", &pki.authority.issue(&["localhost"], KeyKind::Rsa2048).unwrap().key);
    let error = with(certificates, &other);
    assert_eq!(
        error,
        format!(
            "the key in {} does not match the first certificate in {}",
            other.display(),
            certificates.display()
        )
    );

    let error = rejected(&pki, |settings| settings.client_auth = Some(ClientAuth::required(missing.clone())));
    assert!(error.contains("missing.pem"), "{error}");
    let settings = ClientSettings { roots: Roots::File(empty), ..ClientSettings::default() };
    let error = Client::new(&settings).unwrap_err();
    assert!(
        matches!(error, SettingsError::File(FileError::Bad { what: "it contains no certificate", .. })),
        "{error}"
    );
}

/// The lengths of the application data records in `bytes`, including the encryption overhead.
fn records(mut bytes: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [23, 3, 3, high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        lengths.push(length);
        bytes = &rest[length..];
    }
    assert!(bytes.is_empty(), "{bytes:?}");
    lengths
}

#[test]
fn records_have_at_most_the_size_that_is_set() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    for (version, expansion) in [(Version::Tls12, 24), (Version::Tls13, 17)] {
        for (size, expected) in [(512, 512), (1400, 1400), (16_384, 16_384)] {
            let acceptor = pki.acceptor(|settings| settings.record_size = size);
            let connector = pki.connector(|settings| {
                only(version)(settings);
                settings.record_size = size;
            });
            let mut pair = Pair::new(&connector, &acceptor);
            assert_eq!(pair.settle(), (None, None));
            let body = vec![7; 40_000];
            pair.server.send(&body, &mut pair.to_client).unwrap();
            pair.client.send(&body, &mut pair.to_server).unwrap();
            for bytes in [&pair.to_client, &pair.to_server] {
                let found = records(bytes);
                assert_eq!(found.iter().max(), Some(&(expected + expansion)), "{version}");
                assert_eq!(found.len(), body.len().div_ceil(size));
            }
            assert_eq!(pair.settle(), (None, None));
            assert_eq!((&pair.at_client, &pair.at_server), (&body, &body));
        }
    }
    for size in [0, 511, 16_385] {
        let expected = format!("record size: invalid value {size}: expected 512 to 16384 bytes");
        assert_eq!(rejected(&pki, |settings| settings.record_size = size), expected);
        let settings = ClientSettings { record_size: size, ..pki.client_settings() };
        assert_eq!(Client::new(&settings).unwrap_err().to_string(), expected);
    }
}

#[test]
fn issued_keys_are_readable_by_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let loose = directory.path().join("key.pem");
    fs::write(&loose, "old").unwrap();
    fs::set_permissions(&loose, fs::Permissions::from_mode(0o644)).unwrap();
    let issued = Authority::new().unwrap().issue(&["localhost", "::1"], KeyKind::EcdsaP256).unwrap();
    let files = issued.write_to(directory.path()).unwrap();
    assert_eq!(fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&files.ca).unwrap(), issued.ca);
    let error = issued.write_to(&directory.path().join("nowhere")).unwrap_err().to_string();
    assert!(error.contains("nowhere/ca.pem"), "{error}");
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let shown = format!("{:?} {:?}", pki.server_settings(), pki.issued);
    assert!(!shown.contains("PRIVATE KEY"), "{shown}");
}
