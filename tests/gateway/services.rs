//! Services with several servers: balancing, and failures of a server.

use super::{ask, get, named};
use crate::common::{Answer, Certificates, Client, DEADLINE, Ending, Peer, Upstream, Weir, poll_until};
use std::collections::BTreeMap;
use std::net::SocketAddr;

const LISTENER: &str = "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nservice = 'app'\n";

/// A gateway with these lines of a service.
fn serving(service: &str) -> Weir {
    Weir::configured(&format!("{LISTENER}[service.app]\n{service}"), 1)
}

fn urls(addresses: &[SocketAddr]) -> String {
    let urls: Vec<_> = addresses.iter().map(|address| format!("'http://{address}'")).collect();
    format!("servers = [{}]", urls.join(", "))
}

/// An address that refuses connections: no test listens on a privileged port.
pub(super) fn refusing(host: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, host], 1))
}

/// The number of responses by server, over this many requests.
fn shares(weir: &Weir, count: usize) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for _ in 0..count {
        let answer = get(weir, "h", "/");
        assert_eq!(answer.status, 200);
        *shares.entry(answer.fields("x-server")[0].to_owned()).or_default() += 1;
    }
    shares
}

fn counts(pairs: &[(&str, usize)]) -> BTreeMap<String, usize> {
    pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn servers_take_turns_by_weight_and_backups_wait() {
    let [a, b, c] = ["a", "b", "c"].map(named);
    let weir = serving(&format!(
        "servers = ['http://{}', {{ url = 'http://{}', weight = 3 }}, {{ url = 'http://{}', backup = true }}]",
        a.address, b.address, c.address
    ));
    assert_eq!(shares(&weir, 40), counts(&[("a", 10), ("b", 30)]));
}

#[test]
fn a_server_without_weight_waits_for_one() {
    let [a, b] = ["a", "b"].map(named);
    let service =
        format!("servers = ['http://{}', {{ url = 'http://{}', weight = 0 }}]", a.address, b.address);
    let weir =
        Weir::configured(&format!("{LISTENER}[admin]\nbind = '127.0.0.1:0'\n[service.app]\n{service}"), 1);
    assert_eq!(shares(&weir, 10), counts(&[("a", 10)]));
    let set = format!("POST /services/app/servers/http://{}?weight=1", b.address);
    assert_eq!(weir.ask_admin(&set).status, 200);
    // Its share grows slowly.
    assert!(shares(&weir, 20).contains_key("b"));
    let none = serving(&format!("servers = {{ url = 'http://{}', weight = 0 }}", a.address));
    let answer = get(&none, "h", "/");
    assert_eq!((answer.status, answer.text().contains("no_server")), (503, true));
}

#[test]
fn the_least_busy_server_gets_the_request() {
    let [a, b] = ["a", "b"].map(named);
    let weir = serving(&format!("{}\nbalance = 'least-in-flight'", urls(&[a.address, b.address])));
    // A request without its body keeps one of the servers busy.
    let mut busy = Client::connect(weir.address(), None);
    busy.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n");
    poll_until(DEADLINE, "one is busy", || a.received_bytes() + b.received_bytes() > 0);
    let free = if a.received_bytes() > 0 { "b" } else { "a" };
    assert_eq!(shares(&weir, 10), counts(&[(free, 10)]));
}

#[test]
fn two_choices_use_all_servers() {
    let [a, b, c] = ["a", "b", "c"].map(named);
    let service = urls(&[a.address, b.address, c.address]);
    let weir = serving(&format!("{service}\nbalance = 'two-choices'"));
    let shares = shares(&weir, 60);
    assert!(shares.len() == 3 && shares.values().all(|share| *share > 5), "{shares:?}");
}

#[test]
fn a_hash_keeps_a_user_on_one_server() {
    let servers = ["a", "b", "c"].map(named);
    let service = urls(&servers.each_ref().map(|server| server.address));
    for (hash, field) in [("header:X-User", "X-User: "), ("cookie:user", "Cookie: x=1; user=")] {
        let weir = serving(&format!("{service}\nbalance = 'hash'\nhash = '{hash}'"));
        let server = |user: usize| {
            let answer = ask(&weir, &format!("GET / HTTP/1.1\r\nHost: h\r\n{field}{user}\r\n\r\n"));
            answer.fields("x-server")[0].to_owned()
        };
        let first: Vec<_> = (0..30).map(server).collect();
        assert_eq!(first, (0..30).map(server).collect::<Vec<_>>());
        assert!(["a", "b", "c"].iter().all(|name| first.iter().any(|server| server == name)), "{first:?}");
    }
    // By default, the hash covers the client address.
    let weir = serving(&format!("{service}\nbalance = 'hash'"));
    assert_eq!(shares(&weir, 10).len(), 1);
}

#[test]
fn a_cookie_brings_a_client_back_to_its_server() {
    let [a, b] = ["a", "b"].map(named);
    let weir = serving(&format!("{}\nsticky = 'SRV'", urls(&[a.address, b.address])));
    let first = get(&weir, "h", "/");
    let cookie = first.fields("set-cookie")[0].to_owned();
    let (pair, attributes) = cookie.split_once(';').unwrap();
    assert!(pair.starts_with("SRV=") && attributes == " Path=/; HttpOnly; SameSite=Lax", "{cookie}");
    for _ in 0..5 {
        let again = ask(&weir, &format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: {pair}\r\n\r\n"));
        assert_eq!(again.fields("x-server"), first.fields("x-server"));
        assert!(again.fields("set-cookie").is_empty());
    }
    let forged = ask(&weir, "GET / HTTP/1.1\r\nHost: h\r\nCookie: SRV=nonsense\r\n\r\n");
    assert_eq!(forged.fields("set-cookie").len(), 1);
}

/// Regression test: the cookie was a hash of the server's URL, which a client could guess.
#[test]
fn a_cookie_counts_where_its_secret_is_known() {
    let [a, b] = ["a", "b"].map(named);
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let secrets = |name: &str, lines: [&str; 2]| {
        let path = folder.path().join(name);
        let lines = lines.map(|digits| digits.repeat(16)).join("\n");
        std::fs::write(&path, lines).unwrap();
        format!("tls.ticket_secrets = '{}'", path.display())
    };
    let [fleet, rotated, other] = [
        secrets("fleet", ["0011", "2233"]),
        secrets("rotated", ["4455", "0011"]),
        secrets("other", ["6677", "8899"]),
    ];
    let start = |tls: &str| {
        let config = format!(
            "{LISTENER}[service.app]
            {}
            sticky = 'SRV'
            [admin]
            bind = '127.0.0.1:0'
            [listener.z]
            bind = '127.0.0.1:0'
            {tls}
            [[certificate]]
            chain = '{}'
            key = '{}'",
            urls(&[a.address, b.address]),
            certificates.cert.display(),
            certificates.key.display()
        );
        Weir::configured(&config, 2)
    };
    let weirs = [&fleet, &rotated, &other, "tls = {}"].map(start);
    let cookie = |answer: &Answer| {
        answer.fields("set-cookie").first().map(|cookie| cookie.split(';').next().unwrap().to_owned())
    };
    let first = get(&weirs[0], "h", "/");
    let server = first.fields("x-server");
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: {}\r\n\r\n", cookie(&first).unwrap());
    // A gateway with the same first secret keeps the cookie; one with it as a later secret replaces it.
    for (weir, counts, stays) in [
        (&weirs[0], true, true),
        (&weirs[1], true, false),
        (&weirs[2], false, false),
        (&weirs[3], false, false),
    ] {
        let answers: Vec<_> = (0..4).map(|_| ask(weir, &request)).collect();
        assert_eq!(answers.iter().all(|answer| answer.fields("x-server") == server), counts);
        assert!(answers.iter().all(|answer| cookie(answer).is_none() == stays));
    }
    let weir = &weirs[3];
    let own = cookie(&get(weir, "h", "/")).unwrap();
    assert_eq!(weir.ask_admin("POST /reload").status, 200);
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: {own}\r\n\r\n");
    assert_eq!(cookie(&ask(weir, &request)), None, "a reload keeps the secret");
}

/// The gateway has not sent any part of the request, so another server may get it with its body, whatever its method.
#[test]
fn a_server_that_cannot_be_reached_costs_no_request() {
    let good = named("good");
    let weir = serving(&format!("{}\neject.failures = 3", urls(&[refusing(1), good.address])));
    for _ in 0..10 {
        let answer = ask(&weir, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody");
        assert_eq!((answer.status, answer.fields("x-server")), (200, vec!["good"]));
    }
    assert!(good.requests().iter().all(|request| request.body == b"body"));
    weir.wait_for_stderr(&["weir: app: http://127.0.0.1:", "keeps failing; it gets no requests for 10 s"]);
    let ended = weir.stop();
    // The third failure ejects it.
    assert!(ended.stdout.contains("retries: 3; ejections: 1;"), "{}", ended.stdout);
}

#[test]
fn when_no_server_can_be_reached_the_client_learns_it() {
    let weir = serving(&urls(&[refusing(1), refusing(2)]));
    for _ in 0..3 {
        let answer = get(&weir, "h", "/");
        assert_eq!((answer.status, answer.text().contains("upstream_connect")), (502, true));
    }
}

#[test]
fn a_server_that_breaks_its_answers_is_ejected() {
    let broken = Upstream::start(None, |peer: &mut Peer| {
        peer.request();
    });
    let good = named("good");
    let weir = serving(&format!(
        "{}\neject = {{ failures = 2, for = '1h' }}",
        urls(&[broken.address, good.address])
    ));
    let statuses: Vec<_> = (0..20).map(|_| get(&weir, "h", "/").status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 502).count(), 2, "{statuses:?}");
}

#[test]
fn idle_connections_are_bounded_in_number_requests_and_age() {
    let connections = |lines: &str| {
        let server = named("a");
        let weir = serving(&format!("{}\n{lines}", urls(&[server.address])));
        for _ in 0..4 {
            assert_eq!(get(&weir, "h", "/").status, 200);
        }
        server.connections()
    };
    assert_eq!(connections(""), 1);
    assert_eq!(connections("pool.max_idle = 0"), 4);
    assert_eq!(connections("pool.max_requests = 2"), 2);
    assert_eq!(connections("pool.max_age = '0.001ms'"), 4);
}

#[test]
fn what_a_service_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    for (lines, fault) in [
        (
            "servers = [{ url = 'http://127.0.0.1:1', weight = 1001 }]",
            "service.app.servers.0.weight: invalid value `1001`: expected 0 to 1000",
        ),
        ("servers = [{ uri = 'http://a' }]", "service.app.servers: unknown field `uri`; did you mean `url`?"),
        ("servers = 5", "service.app.servers: expected a URL or a table with `url`, found 5"),
        (
            "servers = 'http://127.0.0.1:1'\nbalance = 'best'",
            "service.app.balance: unknown variant `best`, expected one of `round-robin`",
        ),
        ("servers = 'http://127.0.0.1:1'\nhash = 'client'", "service.app.hash: needs `balance = \"hash\"`"),
        (
            "servers = 'http://127.0.0.1:1'\nhash = 'x'",
            "service.app.hash: invalid value `x`: expected `client`",
        ),
        (
            "servers = 'http://127.0.0.1:1'\nsticky = 'a b'",
            "service.app.sticky: invalid value `a b`: expected the name of a cookie",
        ),
    ] {
        std::fs::write(&file, format!("{LISTENER}[service.app]\n{lines}")).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
        assert!(ended.code == Some(2) && ended.stderr.contains(fault), "{lines}: {}", ended.stderr);
    }
}

/// Regression test: a client's last pipelined requests were lost if it had closed its sending side.
#[test]
fn requests_of_a_client_that_has_ended_are_answered() {
    let body = "x".repeat(10_000);
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond = {{ status = 200, body = '{body}' }}"
    );
    let weir = Weir::configured(&config, 1);
    let mut client = Client::connect(weir.address(), None);
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(300));
    client.stream.finish_tcp();
    let (bytes, ending) = client.read_to_end();
    assert_eq!(ending, Ending::Clean);
    assert_eq!(String::from_utf8_lossy(&bytes).matches("HTTP/1.1 200").count(), 300);
}
