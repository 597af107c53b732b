//! Certificates that are replaced at run time.

use super::named;
use crate::common::{Answer, Certificates, Client, Upstream, Weir};
use serde_json::{Value, json};
use std::fs;
use weir_tls::{Client as TlsClient, ClientSettings, Roots};

const PATH: &str = "/certificates/web";

/// A gateway with the certificates `web` and `other`, on two listeners; the second one presents `other` alone.
fn gateway(web: &Certificates, other: &Certificates, upstream: &Upstream) -> Weir {
    let certificate = |name: &str, of: &Certificates| {
        format!(
            "[[certificate]]\nname = '{name}'\nchain = '{}'\nkey = '{}'\n",
            of.cert.display(),
            of.key.display()
        )
    };
    let config = format!(
        "workers = 2\n[listener.a]\nbind = '127.0.0.1:0'\ntls = {{}}\n\
         [listener.b]\nbind = '127.0.0.1:0'\ntls = {{}}\ncertificates = 'other'\n{}{}\
         [admin]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n",
        certificate("web", web),
        certificate("other", other),
        upstream.address
    );
    Weir::configured(&config, 2)
}

fn admin(weir: &Weir, method: &str, path: &str, body: &str) -> Answer {
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
    Client::connect(weir.admin(), None).ask(head + body)
}

fn put(weir: &Weir, certificates: &Certificates) -> Answer {
    let read = |path| fs::read_to_string(path).unwrap();
    let body = json!({ "chain": read(&certificates.cert), "key": read(&certificates.key) }).to_string();
    admin(weir, "PUT", PATH, &body)
}

/// The response to a client that trusts this CA alone and asks for `web.test`, on the first listener.
fn status(weir: &Weir, certificates: &Certificates) -> u16 {
    let roots = Roots::File(certificates.ca.clone());
    let settings = ClientSettings { roots, ..ClientSettings::default() };
    let session = TlsClient::new(&settings).unwrap().core().connect(&"web.test".parse().unwrap());
    Client::connect(weir.address(), Some(session)).ask("GET / HTTP/1.1\r\nHost: web.test\r\n\r\n").status
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
    // All workers have it once the response is there.
    for _ in 0..8 {
        assert_eq!(status(&weir, &set), 200);
    }
    let all = shown(&admin(&weir, "GET", "/certificates", ""));
    let from: Vec<_> = all["certificates"].as_array().unwrap().iter().map(|one| &one["from"]).collect();
    assert_eq!(from, ["admin", "file"]);
    assert_eq!(admin(&weir, "POST", "/reload", "").status, 200);
    assert_eq!(status(&weir, &set), 200, "a reload keeps it");
    let config = admin(&weir, "GET", "/config", "");
    assert!(config.text().contains("\nCertificates set at run time\n  web "), "{}", config.text());
    assert!(!config.text().contains("PRIVATE KEY"));

    assert_eq!(shown(&admin(&weir, "DELETE", PATH, ""))["from"], "file");
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
        ("PUT", PATH, mismatched.as_str(), 400, "key: the key in the given key does not match"),
        ("PUT", PATH, twice.as_str(), 400, "are both for other.test, with the same kind of key"),
        ("PUT", PATH, "{", 400, "certificate: invalid JSON at line 1"),
        ("PUT", PATH, "{}", 400, "chain: missing"),
        ("PUT", "/certificates/x", mismatched.as_str(), 400, "key: "),
        ("DELETE", "/certificates/x", "", 404, "unknown certificate `x`: expected one of `web`, `other`"),
        ("GET", "/certificates/x", "", 404, "unknown certificate `x`"),
        ("POST", PATH, "", 405, "expected GET, HEAD, PUT or DELETE"),
        ("PUT", "/certificates", "", 405, "expected GET or HEAD"),
        ("PUT", queried.as_str(), "", 400, "expected no `?`"),
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
