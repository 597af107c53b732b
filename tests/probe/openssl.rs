//! OpenSSL, one setting at a time.

use super::report::{advises, iana, list, not_tried, offered, resumed, sorted, suites, version_of};
use super::servers::OpenSsl;
use serde_json::Value;
use weir_tls::issue::{KeyKind, issue};

#[test]
fn openssl_with_everything() {
    let flags = ["-cipher", "ALL:@SECLEVEL=0", "-num_tickets", "5", "-early_data", "-alpn", "h2,http/1.1"];
    let Some(server) = OpenSsl::start(KeyKind::Rsa2048, &[&flags[..], &["-serverpref"]].concat()) else {
        return;
    };
    let report = server.report(&[]);
    assert_eq!(offered(&report), ["1.3", "1.2", "1.1", "1.0"]);
    let expected = server.ciphers("ALL:@SECLEVEL=0", &["-tls1_2"]);
    let mut found = iana(&report, "1.2");
    let preference = &version_of(&report, "1.2")["suite_preference"];
    assert_eq!(preference, "server");
    // In OpenSSL's order, without suites for other kinds of keys.
    let fits =
        |name: &&String| !["_ECDSA_", "_DSS_", "_PSK_", "_SRP_"].iter().any(|other| name.contains(other));
    assert_eq!(found, expected.iter().filter(fits).collect::<Vec<_>>());
    found.retain(|name| name.contains("_anon_"));
    assert!(!found.is_empty());
    assert!(advises(&report, "offers broken suites"));
    assert!(advises(&report, "rsa-2048 certificate"));
    assert!(advises(&report, "TLS 1.1 and 1.0"));
    assert_eq!(report["tickets_13"]["count"], 5);
    assert_eq!(report["tickets_13"]["tickets"][4]["max_early_data"], 16384);
    assert!(advises(&report, "accepts early data of 16384 bytes"));
    assert_eq!(report["alpn"]["both"], "h2");
    assert_eq!(report["alpn"]["http11"], "http/1.1");
    let signatures = list(&version_of(&report, "1.2")["signatures"]);
    assert!(signatures.iter().any(|name| name == "rsa-pkcs1-sha1"), "{signatures:?}");
    assert_eq!(list(&version_of(&report, "1.3")["signatures"]).len(), 3);
}

#[test]
fn openssl_of_tls_1_2_without_tickets() {
    let flags = ["-tls1_2", "-no_ticket", "-curves", "P-384:P-256"];
    let Some(server) = OpenSsl::start(KeyKind::EcdsaP256, &flags) else { return };
    let report = server.report(&[]);
    assert_eq!(offered(&report), ["1.2"]);
    assert_eq!(version_of(&report, "1.3")["refusal"], "alert protocol_version");
    // Without the curve of its key the server rejects every offer, although it supports P-384.
    assert_eq!(sorted(&version_of(&report, "1.2")["groups"]), ["p256", "p384"]);
    assert!(suites(&report, "1.2").iter().all(|name| name.starts_with("ecdhe-ecdsa-")));
    assert_eq!(report["session_12"]["ticket"], Value::Null);
    assert_eq!(resumed(&report, "resume-1.2-id"), (3, 3));
    assert_eq!(not_tried(&report, "resume-1.2-ticket"), "no ticket");
    assert_eq!(not_tried(&report, "resume-1.3-psk"), "no TLS 1.3");
    assert!(advises(&report, "no TLS 1.3"));
}

#[test]
fn openssl_of_tls_1_3_without_tickets() {
    let flags = ["-tls1_3", "-num_tickets", "0", "-curves", "P-384:P-521", "-ciphersuites"];
    let Some(server) =
        OpenSsl::start(KeyKind::EcdsaP256, &[&flags[..], &["TLS_AES_256_GCM_SHA384"]].concat())
    else {
        return;
    };
    let report = server.report(&[]);
    assert_eq!(offered(&report), ["1.3"]);
    assert_eq!(iana(&report, "1.3"), ["TLS_AES_256_GCM_SHA384"]);
    assert_eq!(list(&version_of(&report, "1.3")["groups"]), ["p384", "p521"]);
    assert_eq!(report["negotiated"]["hello_retry"], true);
    assert_eq!(report["first_shares"], serde_json::json!([{"group": "p384", "retry_to": null}]));
    assert_eq!(report["tickets_13"]["count"], 0);
    assert_eq!(not_tried(&report, "resume-1.3-psk"), "no ticket");
    assert!(advises(&report, "0 tickets"));
    assert!(advises(&report, "a first key share for p384 avoids it"));
}

/// rustls supports none of these suites, so there is no complete handshake; the other findings are still known.
#[test]
fn openssl_with_suites_missing_in_rustls() {
    let flags = ["-tls1_2", "-cipher", "DHE-RSA-AES128-SHA:AES128-SHA"];
    let Some(server) = OpenSsl::start(KeyKind::Rsa2048, &flags) else { return };
    let report = server.report(&[]);
    let expected = ["TLS_DHE_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_AES_128_CBC_SHA"];
    assert_eq!(iana(&report, "1.2"), expected);
    assert_eq!(version_of(&report, "1.2")["prime_bits"], 2048);
    assert_eq!(report["negotiated"], Value::Null);
    assert_eq!(report["load"], Value::Null);
    assert_eq!(report["chains"][0]["certificates"][0]["key"], "rsa 2048");
    assert_eq!(report["verification"]["verdict"], "verified");
    assert!(list(&report["notes"])[0].contains("rustls has no suite"), "{}", report["notes"]);
}

#[test]
fn openssl_that_requests_a_client_certificate() {
    let Some(server) = OpenSsl::start(KeyKind::EcdsaP256, &["-Verify", "1", "-verify_quiet"]) else { return };
    let unknown = server.report(&[]);
    assert_eq!(unknown["client_certificate"], "asked_none_presented");
    assert_eq!(unknown["tickets_13"], Value::Null);
    assert!(advises(&unknown, "the server requests a client certificate: use --cert and --key"));
    let folder = server.folder.path().to_str().unwrap();
    let identity = ["cert.pem", "key.pem"].map(|name| format!("{folder}/{name}"));
    let known = server.report(&["--cert", &identity[0], "--key", &identity[1]]);
    assert_eq!(known["client_certificate"], "presented");
    assert_eq!(known["tickets_13"]["count"], 2);
    assert_eq!(resumed(&known, "resume-1.3-psk"), (3, 3));
}

/// A server with two keys presents two chains, one of them with an unnecessary root.
#[test]
fn openssl_with_two_keys() {
    let other = issue(&["127.0.0.1"], KeyKind::Rsa2048).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let files = other.write_to(folder.path()).unwrap();
    let [cert, key, ca] =
        [files.certificates, files.key, files.ca].map(|path| path.to_str().unwrap().to_owned());
    let flags = ["-dcert", &cert, "-dkey", &key, "-dcert_chain", &ca];
    let Some(server) = OpenSsl::start(KeyKind::EcdsaP256, &flags) else { return };
    let report = server.report(&[]);
    let chains = report["chains"].as_array().unwrap();
    let mut keys = Vec::new();
    for chain in chains {
        keys.push(chain["certificates"][0]["key"].as_str().unwrap());
        let sum: u64 =
            chain["certificates"].as_array().unwrap().iter().map(|c| c["bytes"].as_u64().unwrap()).sum();
        assert_eq!(chain["bytes"].as_u64().unwrap(), sum);
        assert_eq!(chain["root_sent"], chain["certificates"].as_array().unwrap().len() == 2);
    }
    assert_eq!(keys, ["ecdsa p256", "rsa 2048"]);
    assert_eq!(chains[1]["root_sent"], true);
    assert!(advises(&report, "the chain includes the root"));
}
