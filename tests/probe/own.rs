//! Weir's own origin, and servers that misbehave.

use super::report::{list, offered, report, resumed, suites, version_of};
use super::servers::{OpenSsl, answering};
use crate::common::{self, Certificates, Weir};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use weir_tls::issue::KeyKind;

#[test]
fn the_origins_settings() {
    let certificates = Certificates::new();
    let [cert, key] = [&certificates.cert, &certificates.key].map(|path| path.to_str().unwrap());
    let flags =
        ["origin", "--listen", "https://127.0.0.1:0", "--workers", "2", "--tickets", "3", "--cert", cert];
    let origin = Weir::start(&[&flags[..], &["--key", key]].concat());
    let url = &origin.urls[0];
    let report = report(url, &["--cacert", certificates.ca.to_str().unwrap(), "--tries", "5"]);
    assert_eq!(offered(&report), ["1.3", "1.2"]);
    assert_eq!(suites(&report, "1.3").len(), 3);
    assert_eq!(suites(&report, "1.2").len(), 3, "an ECDSA key fits half of the six");
    for version in ["1.3", "1.2"] {
        assert_eq!(list(&version_of(&report, version)["groups"]), ["x25519", "p256", "p384"]);
        assert_eq!(list(&version_of(&report, version)["signatures"]), ["ecdsa-p256-sha256"]);
    }
    assert_eq!(report["verification"]["verdict"], "verified");
    assert_eq!(report["tickets_13"]["count"], 3);
    assert_eq!(report["tickets_13"]["tickets"][0]["max_early_data"], 0);
    assert_eq!(report["session_12"]["id_bytes"], 32);
    assert!(report["session_12"]["ticket"]["lifetime_s"].as_u64().unwrap() > 0);
    for kind in ["resume-1.3-psk", "resume-1.2-ticket", "resume-1.2-id"] {
        assert_eq!(resumed(&report, kind), (5, 5), "{kind}");
    }
    assert_eq!(report["advice"], Value::Array(Vec::new()));
    assert!(report["connections"].as_u64().unwrap() < 120);
    // An IP address is not sent as SNI. The server's count of resumptions must agree.
    assert_eq!(report["server_name"], Value::Null);
    let ended = origin.stop();
    assert!(ended.stdout.contains(" 15 resumed"), "{}", ended.stdout);
}

/// The suggested command runs, and measures the probed settings.
#[test]
fn the_load_command_runs() {
    let certificates = Certificates::new();
    let origin = common::origin(true, &certificates);
    let report = report(&origin.urls[0], &["--cacert", certificates.ca.to_str().unwrap(), "--tries", "1"]);
    let command = report["load"].as_str().unwrap();
    let mut args = command.split(' ').skip(1).collect::<Vec<_>>();
    assert!(command.contains("--tls 1.3 --suite aes128-gcm-sha256 --group x25519"), "{command}");
    args.extend(["-c", "2", "-d", "100ms", "--warmup", "10ms", "--json", "-"]);
    let ended = Weir::run(&args);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    serde_json::from_str::<Value>(&ended.stdout).unwrap();
}

#[test]
fn the_text_fits_one_screen() {
    let certificates = Certificates::new();
    let origin = common::origin(true, &certificates);
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let ended = Weir::run(&["probe", &origin.urls[0], "-k", "--tries", "2", "--json", path]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let (table, load) = ended.stdout.split_once("\nload\n").unwrap();
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert!(table.lines().count() <= 40, "{table}");
    assert!(
        load.trim().starts_with("weir load https://127.0.0.1:") && load.trim().ends_with(" -k"),
        "{load}"
    );
    assert!(table.contains("resume-1.2-id 2 of 2") && table.contains("not checked"), "{table}");
    let written: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(written["schema"], 1);
}

#[test]
fn a_wrong_name_is_a_finding() {
    let certificates = Certificates::for_names(&["a.test"]);
    let origin = common::origin(true, &certificates);
    let ca = ["--cacert", certificates.ca.to_str().unwrap(), "--tries", "1"];
    let by_address = report(&origin.urls[0], &ca);
    assert_eq!(by_address["verification"]["verdict"], "refused");
    assert_eq!(by_address["verification"]["reason"], "wrong_name");
    let named = report(&origin.urls[0], &[&ca[..], &["--sni", "a.test"]].concat());
    assert_eq!(named["verification"]["verdict"], "verified");
    assert_eq!(named["server_name"], "a.test");
    let other = Certificates::new();
    let distrusted =
        report(&origin.urls[0], &["--cacert", other.ca.to_str().unwrap(), "--sni", "a.test", "--tries", "1"]);
    assert_eq!(distrusted["verification"]["reason"], "unknown_issuer");
}

#[test]
fn a_server_without_tls_is_reported_in_one_line() {
    let certificates = Certificates::new();
    let http = common::origin(false, &certificates);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let closing = answering(|_| {});
    let mail = answering(|stream| drop(stream.write_all(b"220 mail.test ESMTP\r\n")));
    let alerting = answering(|stream| drop(stream.write_all(&[21, 3, 3, 0, 2, 2, 40])));
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for (server, expected) in [
        (http.address().to_string(), "plain HTTP"),
        (silent.local_addr().unwrap().to_string(), "timed out"),
        (closing, "does not speak TLS: for every ClientHello: connection closed"),
        (mail, "not a TLS record"),
        (alerting, "accepts no TLS version: 1.3: alert handshake_failure, 1.2:"),
        (refusing, "refused"),
        ("does-not-exist.invalid".to_owned(), "cannot resolve"),
    ] {
        let ended = Weir::run(&["probe", &server, "--timeout", "500ms"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{server}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        let host = server.split(':').next().unwrap();
        assert!(ended.stderr.contains(expected) && ended.stderr.contains(host), "{}", ended.stderr);
    }
}

#[test]
fn errors_name_their_flags() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let empty = empty.path().to_str().unwrap();
    for (args, expected) in [
        (&["http://a"][..], "http:// has no TLS"),
        (&["a:99999"], "invalid port `99999` (0 to 65535)"),
        (&["a", "--tries", "0"], "--tries"),
        (&["a", "--timeout", "0s"], "--timeout"),
        (&["a", "--cacert", "/nope"], "--cacert: cannot read /nope: No such file"),
        (&["a", "--cacert", empty], "it contains no certificate: it is empty: expected PEM"),
        (&["a", "-k", "--cert", empty, "--key", empty], "--cert: "),
        (&["a", "--cert", "x"], "--key"),
        (&["a", "-k", "--sni", "a b"], "--sni: invalid name `a b`: expected"),
        (&[], "HOST"),
    ] {
        let ended = Weir::run(&[&["probe"], args].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
    }
}

/// A server that stops responding: the findings until then are shown, with a note that they are incomplete.
#[test]
fn a_server_that_stops_responding_leaves_a_partial_report() {
    let Some(server) = OpenSsl::start(KeyKind::EcdsaP256, &["-tls1_3"]) else { return };
    let upstream = server.address.clone();
    let mut connections = 0;
    let front = answering(move |stream| {
        connections += 1;
        let mut hello = [0; 4096];
        let length = stream.read(&mut hello).unwrap_or(0);
        if (4..=5).contains(&connections) {
            // Reads until the client gives up, and again when it retries.
            while stream.read(&mut hello).is_ok_and(|length| length > 0) {}
            return;
        }
        if length == 0 {
            return;
        }
        let Ok(mut to) = TcpStream::connect(&upstream) else { return };
        let _ = to.write_all(&hello[..length]);
        let length = to.read(&mut hello).unwrap_or(0);
        let _ = stream.write_all(&hello[..length]);
    });
    let report = report(&front, &["-k", "--tries", "1", "--timeout", "1s"]);
    assert_eq!(offered(&report), ["1.3"]);
    // The server responds on the connection that tests the address, to the first hello, and for one suite; then it is
    // silent.
    assert_eq!(suites(&report, "1.3").len(), 1);
    let incomplete = version_of(&report, "1.3")["incomplete"].as_str().unwrap();
    assert!(incomplete.contains("suites: timed out"), "{incomplete}");
}
