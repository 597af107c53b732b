//! `weir probe` against servers whose settings are known: our own origin, OpenSSL, nginx and HAProxy.

#![allow(clippy::print_stdout)]

mod common;

use common::{Certificates, DEADLINE, Ended, Weir, peer, poll_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use weir_tls::issue::{KeyKind, issue};

#[test]
fn what_the_origin_has() {
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
    // An address is no name to send; and the server has counted the resumptions as well.
    assert_eq!(report["server_name"], Value::Null);
    let ended = origin.stop();
    assert!(ended.stdout.contains(" 15 resumed"), "{}", ended.stdout);
}

/// The command that it gives runs, and measures what was probed.
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
fn what_is_no_tls_server_says_so_in_one_line() {
    let certificates = Certificates::new();
    let http = common::origin(false, &certificates);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let closing = answering(|_| {});
    let mail = answering(|stream| drop(stream.write_all(b"220 mail.test ESMTP\r\n")));
    let alerting = answering(|stream| drop(stream.write_all(&[21, 3, 3, 0, 2, 2, 40])));
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    for (server, expected) in [
        (http.address().to_string(), "plain HTTP"),
        (silent.local_addr().unwrap().to_string(), "no answer in time"),
        (closing, "speaks no TLS: to every ClientHello: the connection is closed"),
        (mail, "no TLS record"),
        (alerting, "negotiates nothing: 1.3: alert handshake_failure, 1.2:"),
        (refusing, "refused"),
        ("does-not-exist.invalid".to_owned(), "does not resolve"),
    ] {
        let ended = Weir::run(&["probe", &server, "--timeout", "500ms"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{server}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        let host = server.split(':').next().unwrap();
        assert!(ended.stderr.contains(expected) && ended.stderr.contains(host), "{}", ended.stderr);
    }
}

#[test]
fn wrong_flags_name_themselves() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let empty = empty.path().to_str().unwrap();
    for (args, expected) in [
        (&["http://a"][..], "no TLS in http://"),
        (&["a:99999"], "no number from 0 to 65535"),
        (&["a", "--tries", "0"], "--tries"),
        (&["a", "--timeout", "0s"], "--timeout"),
        (&["a", "--cacert", "/nope"], "--cacert: /nope: cannot be read"),
        (&["a", "--cacert", empty], "no usable certificate"),
        (&["a", "-k", "--cert", empty, "--key", empty], "--cert: "),
        (&["a", "--cert", "x"], "--key"),
        (&["a", "-k", "--sni", "a b"], "--sni: `a b` is neither"),
        (&[], "HOST"),
    ] {
        let ended = Weir::run(&[&["probe"], args].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
    }
}

/// A server that stops answering in the middle: what was found until then is shown, and that there may be
/// more.
#[test]
fn a_server_that_falls_silent_leaves_a_part() {
    let Some(server) = OpenSsl::start(KeyKind::EcdsaP256, &["-tls1_3"]) else { return };
    let upstream = server.address.clone();
    let mut connections = 0;
    let front = answering(move |stream| {
        connections += 1;
        let mut hello = [0; 4096];
        let length = stream.read(&mut hello).unwrap_or(0);
        if (4..=5).contains(&connections) {
            // Until the client gives up, and when it asks once more.
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
    // The connection to find the address, the first hello, one suite; then silence.
    assert_eq!(suites(&report, "1.3").len(), 1);
    let incomplete = version_of(&report, "1.3")["incomplete"].as_str().unwrap();
    assert!(incomplete.contains("suites: no answer in time"), "{incomplete}");
}

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
    // In OpenSSL's own order, without those that need another key than this server has.
    let fits =
        |name: &&String| !["_ECDSA_", "_DSS_", "_PSK_", "_SRP_"].iter().any(|other| name.contains(other));
    assert_eq!(found, expected.iter().filter(fits).collect::<Vec<_>>());
    found.retain(|name| name.contains("_anon_"));
    assert!(!found.is_empty());
    assert!(advises(&report, "broken suites are offered"));
    assert!(advises(&report, "rsa-2048 certificate"));
    assert!(advises(&report, "TLS 1.1 and 1.0"));
    assert_eq!(report["tickets_13"]["count"], 5);
    assert_eq!(report["tickets_13"]["tickets"][4]["max_early_data"], 16384);
    assert!(advises(&report, "early data of 16384 bytes"));
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
    // Without the curve of its key the server refuses everything, and has P-384 nevertheless.
    assert_eq!(sorted(&version_of(&report, "1.2")["groups"]), ["p256", "p384"]);
    assert!(suites(&report, "1.2").iter().all(|name| name.starts_with("ecdhe-ecdsa-")));
    assert_eq!(report["session_12"]["ticket"], Value::Null);
    assert_eq!(resumed(&report, "resume-1.2-id"), (3, 3));
    assert_eq!(not_tried(&report, "resume-1.2-ticket"), "no ticket is given");
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
    assert_eq!(not_tried(&report, "resume-1.3-psk"), "no ticket is given");
    assert!(advises(&report, "0 tickets"));
    assert!(advises(&report, "a first key share for p384 avoids it"));
}

/// rustls has none of these suites, so there is no whole handshake; the rest is known all the same.
#[test]
fn openssl_with_what_rustls_has_not() {
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
fn openssl_that_wants_to_know_the_client() {
    let Some(server) = OpenSsl::start(KeyKind::EcdsaP256, &["-Verify", "1", "-verify_quiet"]) else { return };
    let unknown = server.report(&[]);
    assert_eq!(unknown["client_certificate"], "asked_none_presented");
    assert_eq!(unknown["tickets_13"], Value::Null);
    assert!(advises(&unknown, "give one by --cert and --key"));
    let folder = server.folder.path().to_str().unwrap();
    let identity = ["cert.pem", "key.pem"].map(|name| format!("{folder}/{name}"));
    let known = server.report(&["--cert", &identity[0], "--key", &identity[1]]);
    assert_eq!(known["client_certificate"], "presented");
    assert_eq!(known["tickets_13"]["count"], 2);
    assert_eq!(resumed(&known, "resume-1.3-psk"), (3, 3));
}

/// A server with two keys shows two chains, one of them with the root that no client needs.
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
    assert!(advises(&report, "the chain has the root"));
}

#[test]
fn nginx_with_a_shared_cache_and_no_tickets() {
    let settings = "ssl_session_tickets off; ssl_session_cache shared:S:1m; ssl_protocols TLSv1.2; \
                    ssl_ecdh_curve secp384r1:prime256v1; ssl_prefer_server_ciphers on; \
                    ssl_ciphers ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256;";
    let Some((_nginx, report)) = nginx(2, settings, &["--tries", "10"]) else { return };
    assert_eq!(offered(&report), ["1.2"]);
    let expected = ["ecdhe-ecdsa-aes256-gcm-sha384", "ecdhe-ecdsa-aes128-gcm-sha256"];
    assert_eq!(suites(&report, "1.2"), expected);
    assert_eq!(version_of(&report, "1.2")["suite_preference"], "server");
    assert_eq!(sorted(&version_of(&report, "1.2")["groups"]), ["p256", "p384"]);
    assert_eq!(resumed(&report, "resume-1.2-id"), (10, 10));
    assert_eq!(not_tried(&report, "resume-1.2-ticket"), "no ticket is given");
}

/// Two workers, each with a cache of its own: about half of those who return resume, whatever they offer.
#[test]
fn nginx_whose_workers_share_nothing() {
    let settings = "ssl_session_tickets off; ssl_session_cache builtin:1000; ssl_protocols TLSv1.2 TLSv1.3;";
    let Some((_nginx, report)) = nginx(2, settings, &["--tries", "60"]) else { return };
    assert_eq!(offered(&report), ["1.3", "1.2"]);
    for kind in ["resume-1.2-id", "resume-1.3-psk"] {
        let (resumed, tries) = resumed(&report, kind);
        assert!(tries == 60 && 0 < resumed && resumed < 60, "{kind} {resumed} of {tries}");
        assert!(
            advises(&report, &format!("{kind} {resumed} of 60: workers or hosts share no")),
            "{}",
            report["advice"]
        );
    }
}

/// nginx gives identifiers that it does not take.
#[test]
fn nginx_without_a_cache() {
    let settings = "ssl_session_tickets off; ssl_session_cache none; ssl_protocols TLSv1.2 TLSv1.3;";
    let Some((_nginx, report)) = nginx(1, settings, &["--tries", "3"]) else { return };
    let given = report["session_12"]["id_bytes"].as_u64().unwrap() > 0;
    assert_eq!(resumed(&report, "resume-1.2-id"), (0, if given { 3 } else { 0 }));
    assert_eq!(resumed(&report, "resume-1.3-psk").0, 0);
}

#[test]
fn haproxy_of_tls_1_3_alone() {
    let Some(program) = peer("haproxy") else { return };
    let bind = "ssl-min-ver TLSv1.3 curves P-256 alpn h2 ciphersuites TLS_CHACHA20_POLY1305_SHA256";
    let configured = |server: &Files, port: u16| {
        let pem = server.folder.path().join("both.pem");
        let both = ["cert.pem", "key.pem"].map(|name| fs::read(server.folder.path().join(name)).unwrap());
        fs::write(&pem, both.concat()).unwrap();
        let text = format!(
            "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n\
             frontend f\n bind 127.0.0.1:{port} ssl crt {} {bind}\n http-request return status 200\n",
            pem.display()
        );
        fs::write(server.folder.path().join("haproxy.cfg"), text).unwrap();
        let mut command = Command::new(&program);
        command.arg("-db").arg("-f").arg(server.folder.path().join("haproxy.cfg"));
        command
    };
    let server = Files::on_a_free_port(configured);
    let report = server.report(&["--tries", "3"]);
    assert_eq!(offered(&report), ["1.3"]);
    assert_eq!(suites(&report, "1.3"), ["chacha20-poly1305-sha256"]);
    assert_eq!(list(&version_of(&report, "1.3")["groups"]), ["p256"]);
    assert_eq!(report["alpn"]["h2"], "h2");
    assert_eq!(resumed(&report, "resume-1.3-psk"), (3, 3));
    assert!(advises(&report, "a first key share for p256 avoids it"));
}

/// Runs it with `--json -`, and expects that there is nothing but JSON on standard output.
fn report(server: &str, flags: &[&str]) -> Value {
    let Ended { code, stdout, stderr } = Weir::run(&[&["probe", server, "--json", "-"], flags].concat());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    println!("{report:#}");
    report
}

fn version_of<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["versions"].as_array().unwrap().iter().find(|version| version["version"] == name).unwrap()
}

fn offered(report: &Value) -> Vec<&str> {
    let versions = report["versions"].as_array().unwrap().iter();
    versions.filter(|v| v["offered"] == true).map(|v| v["version"].as_str().unwrap()).collect()
}

fn suites<'a>(report: &'a Value, version: &str) -> Vec<&'a str> {
    let suites = version_of(report, version)["suites"].as_array().unwrap().iter();
    suites.map(|suite| suite["name"].as_str().unwrap()).collect()
}

fn iana<'a>(report: &'a Value, version: &str) -> Vec<&'a str> {
    let suites = version_of(report, version)["suites"].as_array().unwrap().iter();
    suites.map(|suite| suite["iana"].as_str().unwrap()).collect()
}

fn list(values: &Value) -> Vec<String> {
    values.as_array().unwrap().iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}

fn sorted(values: &Value) -> Vec<String> {
    let mut list = list(values);
    list.sort();
    list
}

fn resumption<'a>(report: &'a Value, kind: &str) -> &'a Value {
    report["resumptions"].as_array().unwrap().iter().find(|tried| tried["kind"] == kind).unwrap()
}

/// How often it resumed, of how many tries.
fn resumed(report: &Value, kind: &str) -> (u64, u64) {
    let tried = resumption(report, kind);
    assert_eq!(tried["failed"], 0);
    (tried["resumed"].as_u64().unwrap(), tried["tries"].as_u64().unwrap())
}

fn not_tried<'a>(report: &'a Value, kind: &str) -> &'a str {
    resumption(report, kind)["not_tried"].as_str().unwrap()
}

fn advises(report: &Value, what: &str) -> bool {
    list(&report["advice"]).iter().any(|line| line.contains(what))
}

/// A server that does `serve` to each connection, one after the other, for as long as the test runs.
fn answering(mut serve: impl FnMut(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            serve(&mut stream);
        }
    });
    address
}

/// `openssl s_server`, killed when this is dropped.
struct OpenSsl {
    child: Child,
    address: String,
    folder: TempDir,
}

impl OpenSsl {
    fn start(kind: KeyKind, flags: &[&str]) -> Option<Self> {
        let openssl = peer("openssl")?;
        let folder = tempfile::tempdir().unwrap();
        issue(&["127.0.0.1", "localhost"], kind).unwrap().write_to(folder.path()).unwrap();
        let mut command = Command::new(openssl);
        command.args(["s_server", "-accept", "127.0.0.1:0", "-cert", "cert.pem", "-key", "key.pem"]);
        command.args(["-CAfile", "ca.pem"]).args(flags).current_dir(&folder);
        // At the end of its input it would end.
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines.find_map(|line| Some(line.strip_prefix("ACCEPT ")?.rsplit_once(':')?.1.to_owned()));
        let port = port.unwrap_or_else(|| panic!("s_server {flags:?} does not listen"));
        // It stops when nobody reads what it says.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, address: format!("127.0.0.1:{port}"), folder })
    }

    fn report(&self, flags: &[&str]) -> Value {
        let ca = self.folder.path().join("ca.pem");
        let own = ["--cacert", ca.to_str().unwrap(), "--tries", "3"];
        report(&self.address, &[&own[..], flags].concat())
    }

    /// What OpenSSL says that a list of suites is, by their names in the IANA registry.
    fn ciphers(&self, list: &str, flags: &[&str]) -> Vec<String> {
        let mut command = Command::new(peer("openssl").unwrap());
        let output = command.args(["ciphers", "-s", "-stdname"]).args(flags).arg(list).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that is told its port by a file, asked to end when this is dropped.
struct Files {
    child: Option<Child>,
    port: u16,
    folder: TempDir,
}

impl Files {
    /// Whoever takes a free port before the server does makes it fail, and it is tried again.
    fn on_a_free_port(configured: impl Fn(&Self, u16) -> Command) -> Self {
        for _ in 0..10 {
            let folder = tempfile::tempdir().unwrap();
            issue(&["127.0.0.1", "localhost"], KeyKind::EcdsaP256).unwrap().write_to(folder.path()).unwrap();
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut server = Self { child: None, port, folder };
            let mut child = configured(&server, port)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut ended = false;
            poll_until(DEADLINE, "the server listens or ends", || {
                ended = child.try_wait().unwrap().is_some();
                ended || TcpStream::connect(("127.0.0.1", port)).is_ok()
            });
            server.child = Some(child);
            if !ended {
                return server;
            }
        }
        panic!("the server does not start");
    }

    fn report(&self, flags: &[&str]) -> Value {
        let ca = self.folder.path().join("ca.pem");
        let server = format!("https://127.0.0.1:{}", self.port);
        report(&server, &[&["--cacert", ca.to_str().unwrap()], flags].concat())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Its workers go along only when it is asked to end. An error means that it has ended already.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            let _ = child.wait();
        }
    }
}

/// nginx with these settings, and what is found out about it.
fn nginx(workers: u32, settings: &str, flags: &[&str]) -> Option<(Files, Value)> {
    let program = peer("nginx")?;
    let configured = |server: &Files, port: u16| {
        let folder = server.folder.path();
        let path = Path::display(folder);
        // With a listener for each worker the kernel spreads the connections.
        let text = format!(
            "daemon off; user root; worker_processes {workers}; pid {path}/nginx.pid;\n\
             error_log stderr warn;\n\
             events {{ worker_connections 256; }}\n\
             http {{ access_log off; client_body_temp_path {path}/body; proxy_temp_path {path}/proxy;\n\
             fastcgi_temp_path {path}/fastcgi; uwsgi_temp_path {path}/uwsgi; scgi_temp_path {path}/scgi;\n\
             server {{ listen 127.0.0.1:{port} ssl reuseport; {settings}\n\
             ssl_certificate {path}/cert.pem; ssl_certificate_key {path}/key.pem; return 204; }} }}\n"
        );
        fs::write(folder.join("nginx.conf"), text).unwrap();
        let mut command = Command::new(&program);
        command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
        command
    };
    let server = Files::on_a_free_port(configured);
    let report = server.report(flags);
    Some((server, report))
}
