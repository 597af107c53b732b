//! The client's address, as reported to servers.

use super::{ask, named};
use crate::common::{Upstream, Weir};

fn gateway(settings: &str, listener: &str, upstream: &Upstream) -> Weir {
    let config = format!(
        "workers = 1\n{settings}\n[listener.web]\nbind = '127.0.0.1:0'\n{listener}\n[service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n",
        upstream.address
    );
    Weir::configured(&config, 1)
}

/// The fields with facts about the client that the server receives.
fn told(weir: &Weir, fields: &str) -> Vec<String> {
    let answer = ask(weir, &format!("GET / HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n"));
    let lines = answer.text().lines().filter(|line| line.to_ascii_lowercase().contains("forwarded"));
    lines.map(str::to_owned).collect()
}

const THEIRS: &str = "Forwarded: for=198.51.100.7;proto=https;host=b.example\r\nX-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: wss\r\n";

#[test]
fn servers_are_told_in_the_fields_that_are_set() {
    let upstream = named("app");
    let x = ["X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http", "X-Forwarded-Host: a.example"];
    let rfc = ["Forwarded: for=127.0.0.1;proto=http;host=a.example"];
    for (setting, expected) in [
        ("", x.to_vec()),
        ("client_fields = 'x-forwarded'", x.to_vec()),
        ("client_fields = 'forwarded'", rfc.to_vec()),
        ("client_fields = ['x-forwarded', 'forwarded']", [&x[..], &rfc].concat()),
        ("client_fields = []", vec![]),
    ] {
        assert_eq!(told(&gateway(setting, "", &upstream), THEIRS), expected, "{setting}");
    }
}

/// The subset of these request fields that the server receives.
fn passed(weir: &Weir, fields: &str) -> Vec<String> {
    let answer = ask(weir, &format!("GET / HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n"));
    let sent: Vec<_> = fields.split_terminator("\r\n").collect();
    answer.text().lines().filter(|line| sent.contains(line)).map(str::to_owned).collect()
}

#[test]
fn proxies_in_front_may_write_fields_that_clients_may_not() {
    let upstream = named("app");
    let fields = "X-Real-IP: 1\r\nX.Real.IP: 2\r\nX-Forwarded-Port: 443\r\nClient-Cert: :YQ==:\r\nProxy: p\r\nX-Kept: 1\r\n";
    assert_eq!(passed(&gateway("", "", &upstream), fields), ["X-Kept: 1"]);
    let weir = gateway("", "trusted_proxies = '127.0.0.1'", &upstream);
    assert_eq!(
        passed(&weir, fields),
        ["X-Real-IP: 1", "X-Forwarded-Port: 443", "Client-Cert: :YQ==:", "X-Kept: 1"]
    );
}

#[test]
fn what_a_route_sets_is_forged_in_no_spelling() {
    let upstream = named("app");
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n\
         request_headers.set = {{ X-User-Name = 'nobody' }}\nrequest_headers.remove = 'CF-Connecting-IP'\n",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    let fields =
        "X-User-Name: a\r\nx.user.name: b\r\nX-User.Name: c\r\nCF.Connecting-IP: d\r\nX-UserName: e\r\n";
    assert_eq!(passed(&weir, fields), ["X-UserName: e"]);
    assert_eq!(passed(&weir, "X-User-Name: nobody\r\n"), ["X-User-Name: nobody"]);
}

#[test]
fn proxies_in_front_are_believed_in_one_field() {
    let upstream = named("app");
    let by = |field: &str| format!("trusted_proxies = '127.0.0.1'\nproxy_field = '{field}'");
    let weir = gateway("", &by("forwarded"), &upstream);
    assert_eq!(
        told(&weir, THEIRS),
        [
            "X-Forwarded-For: 198.51.100.7, 127.0.0.1",
            "X-Forwarded-Proto: https",
            "X-Forwarded-Host: b.example"
        ]
    );
    let weir = gateway("client_fields = 'forwarded'", &by("x-forwarded-for"), &upstream);
    assert_eq!(told(&weir, THEIRS), ["Forwarded: for=203.0.113.9;proto=wss;host=a.example, for=127.0.0.1"]);
    super::check::refused(
        "[listener.web]\nbind = '127.0.0.1:0'\nproxy_field = 'forwarded'\n[[route]]\nrespond.status = 200\n",
        "listener.web.proxy_field: needs `trusted_proxies`",
    );
}

/// Regression test: a client opened a quoted string that swallowed the next proxy's element, and the gateway trusted
/// the result.
#[test]
fn a_client_cannot_quote_what_a_proxy_adds() {
    let upstream = named("app");
    let listener = "trusted_proxies = '127.0.0.1'\nproxy_field = 'forwarded'";
    let weir = gateway("client_fields = ['x-forwarded', 'forwarded']", listener, &upstream);
    for (fields, x, rfc) in [
        ("Forwarded: for=10.1.1.1;by=\"x, for=203.0.113.7\r\n", "127.0.0.1", "for=127.0.0.1;proto=http"),
        (
            "Forwarded: for=10.1.1.1;by=\"x\r\nForwarded: for=203.0.113.7\r\n",
            "203.0.113.7, 127.0.0.1",
            "for=203.0.113.7, for=127.0.0.1;proto=http",
        ),
    ] {
        let told = told(&weir, fields);
        assert_eq!(
            (told.first().unwrap().as_str(), told.last().unwrap().as_str()),
            (&*format!("X-Forwarded-For: {x}"), &*format!("Forwarded: {rfc}")),
            "{fields}"
        );
    }
}

/// Regression test: because of an empty element after the last comma, the gateway took the proxy for the client.
#[test]
fn empty_elements_hide_no_client() {
    let upstream = named("app");
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\ntrusted_proxies = ['127.0.0.1', '10.0.0.0/8']\n[service.app]\n\
         servers = 'http://{}'\n[[route]]\nservice = 'app'\nrequest_headers.set = {{ X-Seen = 'seen {{client_ip}}' }}\n",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    for (fields, client) in [
        ("X-Forwarded-For: 203.0.113.7,10.0.0.1,\r\n", "203.0.113.7"),
        ("X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-For: ,\r\nX-Forwarded-For:\r\n", "203.0.113.7"),
        ("X-Forwarded-For: 203.0.113.7,\t, 10.0.0.1:443\r\n", "203.0.113.7"),
        ("X-Forwarded-For: 203.0.113.7, unknown, 10.0.0.1\r\n", "10.0.0.1"),
        ("X-Forwarded-For: ,\r\n", "127.0.0.1"),
    ] {
        let answer = ask(&weir, &format!("GET / HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n"));
        assert!(answer.text().contains(&format!("X-Seen: seen {client}\r\n")), "{fields}: {}", answer.text());
    }
}
