//! Replacing certificates at run time.

use super::named;
use super::upgrade::Line;
use crate::common::sessions::{connector, resumes};
use crate::common::{Answer, Certificates, Client, Upstream, Weir};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use weir_tls::{Client as TlsClient, ClientSettings, Roots, Version};

const PATH: &str = "/certificates/web";

/// A configuration with the certificates `web` and `other` and two listeners; the second one presents only `other`.
/// `tls`: keys for the first one.
fn config(web: &Certificates, other: &Certificates, upstream: &Upstream, tls: &str) -> String {
    let certificate = |name: &str, of: &Certificates| {
        format!(
            "[[certificate]]\nname = '{name}'\nchain = '{}'\nkey = '{}'\n",
            of.cert.display(),
            of.key.display()
        )
    };
    format!(
        "workers = 2\n[listener.a]\nbind = '127.0.0.1:0'\ntls = {{ {tls} }}\n\
         [listener.b]\nbind = '127.0.0.1:0'\ntls = {{}}\ncertificates = 'other'\n{}{}\
         [service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n",
        certificate("web", web),
        certificate("other", other),
        upstream.address
    )
}

fn gateway(web: &Certificates, other: &Certificates, upstream: &Upstream) -> Weir {
    let config = config(web, other, upstream, "");
    Weir::configured(&format!("{config}[admin]\nbind = '127.0.0.1:0'\n"), 2)
}

fn request(method: &str, path: &str, body: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn admin(weir: &Weir, method: &str, path: &str, body: &str) -> Answer {
    Client::connect(weir.admin(), None).ask(request(method, path, body))
}

/// The request body that sets these certificates.
fn body(certificates: &Certificates) -> String {
    let read = |path| fs::read_to_string(path).unwrap();
    json!({ "chain": read(&certificates.cert), "key": read(&certificates.key) }).to_string()
}

fn put(weir: &Weir, certificates: &Certificates) -> Answer {
    admin(weir, "PUT", PATH, &body(certificates))
}

/// A connection of a client that trusts only this CA and asks for `name`.
fn connect(address: SocketAddr, certificates: &Certificates, name: &str) -> Client {
    let roots = Roots::File(certificates.ca.clone());
    let settings = ClientSettings { roots, ..ClientSettings::default() };
    let session = TlsClient::new(&settings).unwrap().core().connect(&name.parse().unwrap());
    Client::connect(address, Some(session))
}

fn status_of(client: &mut Client, host: &str) -> u16 {
    client.ask(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).status
}

/// The status for a client that trusts only this CA and asks for `web.test`, on the first listener.
fn status(weir: &Weir, certificates: &Certificates) -> u16 {
    status_of(&mut connect(weir.address(), certificates, "web.test"), "web.test")
}

fn shown(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_str(answer.text()).unwrap()
}

#[test]
fn a_certificate_is_replaced_kept_over_a_reload_and_given_back() {
    let [web, set, renewed] = [(); 3].map(|()| Certificates::for_names(&["web.test"]));
    let (other, upstream) = (Certificates::for_names(&["other.test"]), named("a"));
    let weir = gateway(&web, &other, &upstream);
    assert_eq!(status(&weir, &web), 200);
    let changed = shown(&put(&weir, &set));
    assert_eq!((&changed["from"], &changed["names"]), (&json!("admin"), &json!(["web.test"])));
    // Once the response has arrived, all workers use the certificate.
    for _ in 0..8 {
        assert_eq!(status(&weir, &set), 200);
    }
    let all = shown(&admin(&weir, "GET", "/certificates", ""));
    let from: Vec<_> = all["certificates"].as_array().unwrap().iter().map(|one| &one["from"]).collect();
    assert_eq!(from, ["admin", "file"]);
    assert_eq!(admin(&weir, "POST", "/reload", "").status, 200);
    assert_eq!(status(&weir, &set), 200, "a reload keeps it");
    // Regression test: after a reload, the report listed the certificate among those of the files, even if the files no
    // longer contained it.
    let config = || admin(&weir, "GET", "/config", "").text().to_owned();
    let file = format!("\n               web: {}\n", web.cert.display());
    assert!(
        config().contains("\nCertificates set at run time\n  web ") && config().contains(&file),
        "{}",
        config()
    );
    assert!(!config().contains("PRIVATE KEY"));

    assert_eq!(shown(&admin(&weir, "DELETE", PATH, ""))["from"], "file");
    assert!(!config().contains("set at run time") && config().contains(&file), "{}", config());
    assert_eq!(status(&weir, &web), 200);
    put(&weir, &set);
    fs::copy(&renewed.cert, &web.cert).unwrap();
    fs::copy(&renewed.key, &web.key).unwrap();
    assert_eq!(admin(&weir, "POST", "/reload", "").status, 200);
    assert_eq!(status(&weir, &renewed), 200, "the file has another one");
    let ended = weir.stop();
    let key = fs::read_to_string(&set.key).unwrap();
    assert!(!ended.stderr.contains(key.lines().nth(1).unwrap()), "the key is not logged");
    assert!(ended.stderr.contains("web: the file has another certificate now"), "{}", ended.stderr);
}

#[test]
fn a_faulty_request_changes_nothing() {
    let [web, foreign] = [(); 2].map(|()| Certificates::for_names(&["web.test"]));
    let (other, upstream) = (Certificates::for_names(&["other.test"]), named("a"));
    let weir = gateway(&web, &other, &upstream);
    let read = |path| fs::read_to_string(path).unwrap();
    let mismatched = json!({ "chain": read(&web.cert), "key": read(&foreign.key) }).to_string();
    let (queried, twice) =
        (format!("{PATH}?a"), json!({ "chain": read(&other.cert), "key": read(&other.key) }).to_string());
    for (method, path, body, status, expected) in [
        ("PUT", PATH, mismatched.as_str(), 400, "key: the key in the given PEM does not match"),
        ("PUT", PATH, twice.as_str(), 400, "are both for other.test, with the same kind of key"),
        ("PUT", PATH, "{", 400, "certificate: invalid JSON at line 1"),
        ("PUT", PATH, "{}", 400, "chain: missing"),
        ("PUT", "/certificates/x", mismatched.as_str(), 400, "key: "),
        ("DELETE", "/certificates/x", "", 404, "unknown certificate `x`: expected one of `web`, `other`"),
        ("GET", "/certificates/x", "", 404, "unknown certificate `x`"),
        ("POST", PATH, "", 405, "expected GET, HEAD, PUT or DELETE"),
        ("PUT", "/certificates", "", 405, "expected GET or HEAD"),
        ("PUT", queried.as_str(), "", 400, "expected no `?`"),
        ("PUT", "/certificates/%77eb", mismatched.as_str(), 400, "key: "),
        ("DELETE", "/certificates/%00%1b", "", 404, "unknown certificate `%00%1b`"),
        ("DELETE", "/certificates/..", "", 404, "unknown certificate `..`"),
        ("DELETE", "/certificates/web/", "", 404, "expected one of /, /metrics"),
        ("DELETE", PATH, "", 200, "\"from\":\"file\""),
        ("DELETE", PATH, "", 200, "\"from\":\"file\""),
    ] {
        let answer = admin(&weir, method, path, body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        assert!(answer.text().contains(expected), "{method} {path}: {}", answer.text());
    }
    let large = format!("PUT {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048577\r\n\r\n");
    assert_eq!(Client::connect(weir.admin(), None).ask(large).status, 413);
    let page = format!("DELETE {PATH} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\r\n");
    assert_eq!(Client::connect(weir.admin(), None).ask(page).status, 403);
    assert_eq!(status(&weir, &web), 200);
}

/// Private keys stay in memory, so they must not appear on stderr, either.
#[test]
fn an_upgrade_keeps_it_while_the_files_of_its_own_are_the_same() {
    let [web, set, next, renewed] = [(); 4].map(|()| Certificates::for_names(&["web.test"]));
    // The certificate gives up the name, which `other` then gets.
    let moved = Certificates::for_names(&["new.test"]);
    let (other, upstream) = (Certificates::for_names(&["other.test"]), named("a"));
    let line = Line::new(&config(&web, &other, &upstream, ""), 2);
    let ask = |method: &str, path: &str, body: &str| shown(&line.ask(&request(method, path, body)));
    let is_served = |certificates: &Certificates, name: &str| {
        assert_eq!(status_of(&mut connect(line.weir.address(), certificates, name), name), 200, "{name}");
    };
    ask("PUT", PATH, &body(&set));
    for _ in 0..2 {
        line.upgrade();
        assert_eq!(ask("GET", PATH, "")["from"], "admin");
        is_served(&set, "web.test");
        is_served(&other, "other.test");
    }
    assert_eq!(line.ask(&request("POST", "/reload", "")).status, 200);
    is_served(&set, "web.test");
    ask("PUT", PATH, &body(&moved));
    ask("PUT", "/certificates/other", &body(&next));
    line.upgrade();
    is_served(&moved, "new.test");
    is_served(&next, "web.test");
    let refused = line.ask(&request("DELETE", PATH, ""));
    assert!(refused.status == 400 && refused.text().contains("are both for web.test"), "{}", refused.text());
    ask("DELETE", "/certificates/other", "");
    ask("DELETE", PATH, "");
    is_served(&web, "web.test");
    ask("PUT", PATH, &body(&set));
    fs::copy(&renewed.cert, &web.cert).unwrap();
    fs::copy(&renewed.key, &web.key).unwrap();
    line.upgrade();
    assert_eq!(ask("GET", PATH, "")["from"], "file");
    is_served(&renewed, "web.test");
    line.weir.wait_for_stderr(&["weir: web: the file has another certificate now"]);
    line.stop();
    let stderr = line.weir.stderr();
    for certificates in [&set, &moved, &next] {
        let key = fs::read_to_string(&certificates.key).unwrap();
        assert!(!stderr.contains(key.lines().nth(1).unwrap()), "{stderr}");
    }
}

/// Regression test: a controller that repeated a request discarded the stored sessions.
#[test]
fn the_same_certificate_again_changes_nothing() {
    let [web, set] = [(); 2].map(|()| Certificates::for_names(&["127.0.0.1", "localhost"]));
    let (other, upstream) = (Certificates::for_names(&["other.test"]), named("a"));
    let tls = "tickets = 0, versions = '1.2'";
    let config = config(&web, &other, &upstream, tls) + "[admin]\nbind = '127.0.0.1:0'\n";
    let weir = Weir::configured(&config, 2);
    let connector = connector(&set.ca, &[Version::Tls12]);
    put(&weir, &set);
    assert!(!resumes(weir.address(), &connector));
    assert_eq!(shown(&put(&weir, &set))["from"], "admin");
    assert!(resumes(weir.address(), &connector), "stored sessions stay");
    put(&weir, &web);
    weir.wait_for_stderr(&["weir: web: certificate of the admin address"]);
    put(&weir, &set);
    assert!(!resumes(weir.address(), &connector), "those of another certificate do not");
    let ended = weir.stop();
    let written = ended.stderr.matches("weir: web: certificate of the admin address").count();
    assert_eq!(written, 3, "{}", ended.stderr);
}

/// Files with such certificates also get a warning.
#[test]
fn an_expired_certificate_is_served_with_a_warning() {
    let (web, other) = (Certificates::for_names(&["web.test"]), Certificates::for_names(&["other.test"]));
    let weir = gateway(&web, &other, &named("a"));
    let answer = admin(&weir, "PUT", PATH, &json!({ "chain": EXPIRED, "key": EXPIRED }).to_string());
    assert_eq!(shown(&answer)["not_after"], 1_580_515_200);
    let why =
        "certificate `web` set at run time expired on Sat, 01 Feb 2020 00:00:00 GMT, so clients reject it";
    weir.wait_for_stderr(&["weir: warning: ", why, "; renew it"]);
}

/// New connections follow the rules of the new names (RFC 9110 section 7.4), older ones those of the certificates with
/// which they began.
#[test]
fn hosts_are_misdirected_by_the_names_of_the_connections_own_certificates() {
    let web = Certificates::for_names(&["web.test"]);
    let set = Certificates::for_names(&["new.test"]);
    let (other, upstream) = (Certificates::for_names(&["other.test"]), named("a"));
    let weir = gateway(&web, &other, &upstream);
    let connect = || connect(weir.address(), &other, "other.test");
    let mut before = connect();
    assert_eq!([status_of(&mut before, "other.test"), status_of(&mut before, "new.test")], [200, 200]);
    put(&weir, &set);
    assert_eq!([status_of(&mut before, "new.test"), status_of(&mut before, "web.test")], [200, 421]);
    let mut after = connect();
    assert_eq!([status_of(&mut after, "web.test"), status_of(&mut after, "new.test")], [200, 421]);
    assert_eq!(shown(&admin(&weir, "DELETE", PATH, ""))["names"], json!(["web.test"]));
    let mut again = connect();
    assert_eq!([status_of(&mut again, "new.test"), status_of(&mut again, "web.test")], [200, 421]);
}

/// A certificate for `web.test` with its key, expired on 2020-02-01.
const EXPIRED: &str = "\
-----BEGIN CERTIFICATE-----
MIIBSjCB8aADAgECAgEBMAoGCCqGSM49BAMCMBMxETAPBgNVBAMMCHdlYi50ZXN0
MB4XDTIwMDEwMTAwMDAwMFoXDTIwMDIwMTAwMDAwMFowEzERMA8GA1UEAwwId2Vi
LnRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAS8wJec11TcOARSgCIapn16
ZdIdq5x41Ah2fbrWyxpOWozH5XOnrszOu9gbWRimUCJsK3L6wbMCJ25S0WQRP7DG
ozYwNDATBgNVHREEDDAKggh3ZWIudGVzdDAdBgNVHQ4EFgQUtmEWAk93znixY2kA
BCRkZnOdkgwwCgYIKoZIzj0EAwIDSAAwRQIgBi/IX73o25NfkB38syJFYSfY7UvG
aAXHpD1XkmmIcq4CIQDnts4YfPGePC3tptbkF02SpyC1dIzs0P7CdCUj/y4bwg==
-----END CERTIFICATE-----
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgDVS+/Eux014770B6
0qMf+WICwy87w/gKwcU/TdLO2cahRANCAAS8wJec11TcOARSgCIapn16ZdIdq5x4
1Ah2fbrWyxpOWozH5XOnrszOu9gbWRimUCJsK3L6wbMCJ25S0WQRP7DG
-----END PRIVATE KEY-----
";
