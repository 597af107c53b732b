//! Replacing a service's servers at run time.

use super::dns::{NameServer, twins};
use super::upgrade::{Line, answering, to};
use super::{get, metric, named};
use crate::common::{Answer, Client, DEADLINE, Ending, Peer, Switch, Upstream, Weir, poll_until};
use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const PATH: &str = "/services/app/servers";

/// A configuration with a service `app` that has these servers; `more` adds lines to it.
fn config(servers: &[SocketAddr], more: &str) -> String {
    let urls: Vec<_> = servers.iter().map(|address| format!("'http://{address}'")).collect();
    format!(
        "workers = 2\n[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nservice = 'app'\n\
         [admin]\nbind = '127.0.0.1:0'\n[service.app]\nservers = [{}]\n{more}",
        urls.join(", ")
    )
}

fn list(servers: &[SocketAddr]) -> String {
    let urls: Vec<_> = servers.iter().map(|address| format!("\"http://{address}\"")).collect();
    format!("[{}]", urls.join(", "))
}

fn request(method: &str, path: &str, body: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn admin(weir: &Weir, method: &str, path: &str, body: &str) -> Answer {
    Client::connect(weir.admin(), None).ask(request(method, path, body))
}

/// Changes the servers of `app`, and returns the service.
fn change(weir: &Weir, method: &str, path: &str, body: &str) -> Value {
    let answer = admin(weir, method, path, body);
    assert_eq!(answer.status, 200, "{method} {path} {body}: {}", answer.text());
    serde_json::from_str(answer.text()).unwrap()
}

fn put(weir: &Weir, servers: &[SocketAddr]) -> Value {
    change(weir, "PUT", PATH, &list(servers))
}

/// The source of a service's servers, and their URLs.
fn summary(service: &Value) -> (String, Vec<String>) {
    let urls = service["servers"].as_array().unwrap().iter();
    (
        service["servers_from"].as_str().unwrap().to_owned(),
        urls.map(|server| server["url"].as_str().unwrap().to_owned()).collect(),
    )
}

fn of(from: &str, servers: &[SocketAddr]) -> (String, Vec<String>) {
    (from.to_owned(), servers.iter().map(|address| format!("http://{address}")).collect())
}

#[test]
fn changes_under_load_lose_no_request() {
    const CHANGES: usize = 60;
    let [a, b, c] = ["a", "b", "c"].map(named);
    let lists: [&[SocketAddr]; 4] =
        [&[b.address], &[a.address, b.address, c.address], &[c.address, a.address], &[a.address]];
    let weir = Weir::configured(&config(&[a.address], ""), 1);
    let (is_over, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (weir, is_over, served) = (&weir, &is_over, &served);
            scope.spawn(move || {
                let mut kept = Client::connect(weir.address(), None);
                while !is_over.load(Ordering::SeqCst) {
                    let answer = match client {
                        0 => Client::connect(weir.address(), None).ask(GET),
                        _ => {
                            kept.send(GET);
                            kept.answer(Method::Get)
                        }
                    };
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    served.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for round in 0..CHANGES {
            let servers = lists[round % lists.len()];
            assert_eq!(summary(&put(&weir, servers)), of("admin", servers));
            let before = served.load(Ordering::SeqCst);
            poll_until(DEADLINE, "requests", || served.load(Ordering::SeqCst) >= before + 10);
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(!b.requests().is_empty() && !c.requests().is_empty());
    assert_eq!(weir.stop().code, Some(0));
}

#[test]
fn a_server_that_stays_keeps_connections_settings_and_requests() {
    let switch = Switch::default();
    let hold = switch.clone();
    let a = Upstream::start(None, move |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            if request.head.starts_with("GET /slow") {
                hold.wait();
            }
            peer.answer("HTTP/1.1 200 OK\r\nX-Server: a\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let b = named("b");
    let weir = Weir::configured(&config(&[a.address], "").replace("workers = 2", "workers = 1"), 1);
    assert_eq!(get(&weir, "h", "/").fields("x-server"), ["a"]);
    let mut slow = Client::connect(weir.address(), None);
    slow.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    a.wait_for_requests(2);
    assert_eq!(a.connections(), 1);
    let drain = weir.ask_admin(&format!("POST {PATH}/{}?state=drain", a.address));
    assert_eq!(drain.status, 200, "{}", drain.text());
    let now = change(&weir, "POST", PATH, &format!("{{\"url\": \"http://{}\", \"weight\": 3}}", b.address));
    assert_eq!(summary(&now), of("admin", &[a.address, b.address]));
    assert_eq!(
        (&now["servers"][0]["state"], &now["servers"][0]["in_flight"]),
        (&Value::from("drained"), &Value::from(1))
    );
    assert_eq!((&now["servers"][1]["weight"], &now["servers"][1]["from"]), (&3.into(), &"admin".into()));
    assert_eq!(get(&weir, "h", "/").fields("x-server"), ["b"]);
    assert_eq!(weir.ask_admin(&format!("POST {PATH}/{}?state=ready", a.address)).status, 200);
    switch.throw();
    assert_eq!(slow.answer(Method::Get).status, 200);
    let now = change(&weir, "DELETE", &format!("{PATH}/{}", b.address), "");
    assert_eq!(summary(&now), of("admin", &[a.address]));
    assert_eq!(b.wait_for_ending(0), Ending::Clean);
    assert_eq!(get(&weir, "h", "/").fields("x-server"), ["a"]);
    assert_eq!(a.connections(), 1, "one connection for all");
    assert_eq!(summary(&change(&weir, "DELETE", PATH, "")), of("file", &[a.address]));
    assert_eq!(get(&weir, "h", "/").fields("x-server"), ["a"]);
    assert_eq!(a.connections(), 1);
    for line in
        ["servers of the admin address: 2 (1 new, 0 removed)", "servers of the file: 1 (0 new, 0 removed)"]
    {
        weir.wait_for_stderr(&[line]);
    }
}

/// A server that is down or ejected stays so while others change; a server that is added again starts with a clean
/// state.
#[test]
fn a_server_that_stays_keeps_its_health_and_ejections() {
    let [a, b] = ["a", "b"].map(named);
    let gone = named("gone");
    let down = gone.address;
    drop(gone);
    let more = "health = { every = '20ms', timeout = '5s', rise = 1, fall = 1 }";
    let weir = Weir::configured(&config(&[down, a.address], more), 1);
    weir.wait_for_stderr(&["is down: "]);
    let state = |service: &Value, at: usize| service["servers"][at]["state"].as_str().unwrap().to_owned();
    poll_until(DEADLINE, "it is down", || state(&change(&weir, "GET", PATH, ""), 0) == "down");
    let now = put(&weir, &[a.address, down, b.address]);
    assert_eq!([0, 1, 2].map(|at| state(&now, at)), ["up", "down", "up"]);
    for _ in 0..10 {
        assert_eq!(get(&weir, "h", "/").status, 200);
    }
    // The server returns as a new one.
    put(&weir, &[a.address]);
    put(&weir, &[a.address, down]);
    poll_until(DEADLINE, "it is checked", || weir.stderr().matches("is down: ").count() >= 2);

    let refusing = super::services::refusing(9);
    let more = "eject = { failures = 1, for = '1h' }";
    let weir =
        Weir::configured(&config(&[refusing, a.address], more).replace("workers = 2", "workers = 1"), 1);
    for _ in 0..4 {
        get(&weir, "h", "/");
    }
    assert_eq!(state(&change(&weir, "GET", PATH, ""), 0), "ejected");
    let now = put(&weir, &[b.address, refusing]);
    assert_eq!([0, 1].map(|at| state(&now, at)), ["up", "ejected"]);
}

#[test]
fn without_servers_the_response_is_no_server_until_some_are_there() {
    let a = named("a");
    let weir = Weir::configured(&config(&[a.address], "max_connections = 1"), 1);
    assert_eq!(summary(&put(&weir, &[])), of("admin", &[]));
    let answer = get(&weir, "h", "/");
    assert_eq!(answer.status, 503);
    assert_eq!(metric(&weir, "weir_ended_early_total{reason=\"no_server\"}"), 1);
    let config = weir.ask_admin("GET /config");
    assert!(
        config.text().contains("Servers set at run time\n  app              none\n"),
        "{}",
        config.text()
    );
    change(&weir, "POST", PATH, &format!("\"http://{}\"", a.address));
    assert_eq!(get(&weir, "h", "/").fields("x-server"), ["a"]);
}

#[test]
fn a_cookie_leads_to_the_same_server_in_another_list() {
    let [a, b, c] = ["a", "b", "c"].map(named);
    let weir = Weir::configured(&config(&[c.address], "sticky = 'SRV'"), 1);
    put(&weir, &[a.address, b.address]);
    let first = get(&weir, "h", "/");
    let cookie = first.fields("set-cookie")[0].split(';').next().unwrap().to_owned();
    for servers in [[c.address, b.address, a.address], [b.address, a.address, c.address]] {
        put(&weir, &servers);
        for _ in 0..4 {
            let again = Client::connect(weir.address(), None)
                .ask(format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: {cookie}\r\n\r\n"));
            assert_eq!(again.fields("x-server"), first.fields("x-server"));
            assert!(again.fields("set-cookie").is_empty());
        }
    }
}

/// A request that waits for a connection goes to a new server; without servers, it fails.
#[test]
fn queued_requests_follow_the_change() {
    let switch = Switch::default();
    let busy = super::held_back(&switch, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let b = named("b");
    let more = "max_connections = 1";
    let weir = Weir::configured(&config(&[busy.address], more).replace("workers = 2", "workers = 1"), 1);
    let mut first = Client::connect(weir.address(), None);
    first.send(GET);
    busy.wait_for_requests(1);
    let queued = || {
        let mut client = Client::connect(weir.address(), None);
        client.send(GET);
        poll_until(DEADLINE, "it waits", || metric(&weir, "weir_waiting_requests") == 1);
        client
    };
    let mut waits = queued();
    put(&weir, &[busy.address, b.address]);
    assert_eq!(waits.answer(Method::Get).fields("x-server"), ["b"]);
    put(&weir, &[busy.address]);
    let mut waits = queued();
    put(&weir, &[]);
    assert_eq!(waits.answer(Method::Get).status, 503);
    assert_eq!(metric(&weir, "weir_waiting_requests"), 0);
    switch.throw();
    assert_eq!(first.answer(Method::Get).status, 200, "the request in flight finishes");
}

/// The gateway keeps resolving a name that was set at run time, even if the service's servers change all the time.
#[test]
fn names_of_new_servers_are_resolved_and_followed() {
    const NAME: &str = "app.test";
    let [old, new] = [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2)];
    let (names, (at_old, at_new)) = (NameServer::start(), twins());
    names.say_addresses(NAME, 1, &[old]);
    let (a, port) = (named("a"), at_old.address.port());
    let weir = Weir::configured(&config(&[a.address], &format!("[dns]\nservers = '{}'", names.address)), 1);
    let list = |more: usize| {
        let more = if more == 0 {
            String::new()
        } else {
            format!(", {{\"url\": \"http://n{more}.test:1\", \"backup\": true}}")
        };
        format!("[\"http://{NAME}:{port}\"{more}]")
    };
    for more in 1..=9 {
        names.say_addresses(&format!("n{more}.test"), 600, &[old]);
    }
    change(&weir, "PUT", PATH, &list(0));
    assert_eq!(get(&weir, "h", "/").fields("x-server"), ["old"]);
    names.say_addresses(NAME, 1, &[new]);
    let mut round = 0;
    poll_until(DEADLINE, "it has moved", || {
        round += 1;
        change(&weir, "PUT", PATH, &list(round % 10))["servers"][0]["address"]
            .as_str()
            .is_some_and(|at| at.starts_with("127.0.0.2:"))
    });
    assert_eq!(get(&weir, "h", "/").fields("x-server"), ["new"]);
    assert_eq!(at_new.connections(), 1);
}

#[test]
fn a_reload_keeps_the_list_while_the_files_list_is_the_same() {
    let [a, b, c] = ["a", "b", "c"].map(named);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    fs::write(&file, config(&[a.address], "")).unwrap();
    let weir = Weir::of_file(&file, 1);
    let reload = |config: &str, status: u16| {
        fs::write(&file, config).unwrap();
        let answer = weir.ask_admin("POST /reload");
        assert_eq!(answer.status, status, "{}", answer.text());
        answer.text().to_owned()
    };
    let now = || summary(&change(&weir, "GET", "/services/app", ""));
    put(&weir, &[b.address]);
    reload(&config(&[a.address], "balance = 'least-in-flight'\n"), 200);
    assert_eq!(now(), of("admin", &[b.address]));
    assert_eq!(get(&weir, "h", "/").fields("x-server"), ["b"]);
    assert_eq!(b.connections(), 1);
    reload(&config(&[a.address, c.address], ""), 200);
    assert_eq!(now(), of("file", &[a.address, c.address]));
    weir.wait_for_stderr(&["weir: app: the file has other servers now, which replace those set at run time"]);
    put(&weir, &[b.address]);
    reload(&config(&[a.address], "").replace(".app]", ".other]").replace("'app'", "'other'"), 200);
    reload(&config(&[a.address, c.address], ""), 200);
    assert_eq!(now(), of("file", &[a.address, c.address]), "the service was gone");
    // A list that is no longer valid for the service.
    put(&weir, &[]);
    let refused = reload(&config(&[a.address, c.address], "balance = 'nonsense'"), 409);
    assert!(refused.contains("service.app.balance"), "{refused}");
    assert_eq!(now(), of("admin", &[]), "a reload that is refused changes nothing");
}

#[test]
fn an_upgrade_keeps_the_list_while_the_files_list_is_the_same() {
    /// More servers than fit into one message of the hand-over.
    const MANY: u16 = 150;
    let [a, b] = ["a", "b"].map(named);
    let line = Line::new(&to(&a, 2), 1);
    let ask = |method: &str, path: &str, body: &str| -> Value {
        let answer = line.ask(&request(method, path, body));
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_str(answer.text()).unwrap()
    };
    let mut servers = vec![b.address];
    servers.extend((1..=MANY).map(|port| SocketAddr::from(([127, 0, 0, 9], 1000 + port))));
    ask("PUT", PATH, &list(&servers));
    for server in &servers[1..] {
        ask("POST", &format!("{PATH}/{server}?state=drain"), "");
    }
    line.upgrade();
    let now = ask("GET", PATH, "");
    assert_eq!(summary(&now), of("admin", &servers));
    assert_eq!(now["servers"][usize::from(MANY)]["state"], "drained");
    assert_eq!(Client::connect(line.weir.address(), None).ask(GET).fields("x-server"), ["b"]);
    ask("PUT", PATH, "[]");
    line.upgrade();
    assert_eq!(summary(&ask("GET", PATH, "")), of("admin", &[]));
    line.write(&to(&b, 2));
    line.upgrade();
    assert_eq!(summary(&ask("GET", PATH, "")), of("file", &[b.address]));
    line.write(&answering("ok"));
    line.upgrade();
    assert_eq!(line.ask("GET /services HTTP/1.1\r\nHost: localhost\r\n\r\n").text(), "{\"services\":[]}\n");
    line.stop();
}

#[test]
fn what_is_no_list_of_servers_is_refused_in_words_and_changes_nothing() {
    let a = named("a");
    let names = NameServer::start();
    let dns = format!("sticky = 'SRV'\n[dns]\nservers = '{}'", names.address);
    let weir = Weir::configured(&config(&[a.address], &dns), 1);
    let own = format!("\"http://{}\"", a.address);
    for (method, path, body, status, words) in [
        ("PUT", "/services/x/servers", "[]", 404, "unknown service `x`"),
        ("DELETE", "/services/x/servers", "", 404, "unknown service `x`"),
        ("DELETE", &format!("{PATH}/b"), "", 404, "unknown server `b`: expected one of `http://127.0.0.1:"),
        ("PUT", PATH, "", 400, "servers: EOF while parsing a value at line 1 column 0"),
        ("PUT", PATH, "[1]", 400, "servers.0: invalid type: integer `1`, expected a URL"),
        (
            "PUT",
            PATH,
            "[\"http://a\", {\"url\": \"http://b\", \"wieght\": 1}]",
            400,
            "servers.1.wieght: unknown field `wieght`",
        ),
        (
            "PUT",
            PATH,
            "[{\"url\": \"http://127.0.0.1:1\", \"weight\": 1001}]",
            400,
            "servers.0.weight: invalid value `1001`: expected 0 to 1000",
        ),
        (
            "PUT",
            PATH,
            "[\"https://127.0.0.1:1\"]",
            400,
            "servers.0: `https://127.0.0.1:1`: expected the scheme",
        ),
        ("PUT", PATH, "[\"http://127.0.0.1:0\"]", 400, "servers.0: http://127.0.0.1:0: invalid port 0"),
        (
            "PUT",
            PATH,
            "[\"http://name.invalid:1\"]",
            400,
            "servers.0: cannot resolve `name.invalid`: there is no such name",
        ),
        (
            "PUT",
            PATH,
            &format!("[{own}, \"http://127.0.0.1:1\", {own}]"),
            400,
            "servers.2: duplicate server `http://127.0.0.1:",
        ),
        ("POST", PATH, &own, 409, "it as servers.0"),
        ("POST", PATH, "[]", 400, "server: invalid type: sequence, expected a URL"),
        ("POST", &format!("{PATH}?weight=1"), &own, 400, "expected no `?`"),
        ("PUT", &format!("{PATH}/127.0.0.1:1"), "", 405, "expected GET, HEAD, POST or DELETE"),
        ("PATCH", PATH, "", 405, "expected GET, HEAD, PUT, POST or DELETE"),
        ("PUT", "/services/app", "", 405, "expected GET or HEAD"),
        ("DELETE", PATH, "x", 400, "expected no body"),
    ] {
        let answer = admin(&weir, method, path, body);
        let text = answer.text();
        assert!(
            answer.status == status && text.contains(words),
            "{method} {path} {body}: {} {text}",
            answer.head
        );
    }
    // A request as a web page in a local browser can send it.
    for method in ["PUT", "POST", "DELETE"] {
        let request =
            request(method, PATH, "[]").replace("\r\n\r\n", "\r\nOrigin: http://evil.example\r\n\r\n");
        assert_eq!(Client::connect(weir.admin(), None).ask(request).status, 403, "{method}");
    }
    assert_eq!(summary(&change(&weir, "GET", "/services/app", "")), of("file", &[a.address]));
    assert!(!weir.stderr().contains("servers of"), "{}", weir.stderr());
}

#[test]
fn bodies_may_come_in_pieces_and_the_connection_persists() {
    const LIMIT: usize = 1 << 20;
    let [a, b] = ["a", "b"].map(named);
    let weir = Weir::configured(&config(&[a.address], ""), 1);
    let mut client = Client::connect(weir.admin(), None);
    let mut accepted = |request: String, servers: &[SocketAddr]| {
        client.send(request);
        let answer = client.answer(Method::Put);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(summary(&serde_json::from_str(answer.text()).unwrap()), of("admin", servers));
    };
    let both = [a.address, b.address];
    let (json, head) = (list(&both), format!("PUT {PATH} HTTP/1.1\r\nHost: localhost\r\n"));
    accepted(request("PUT", PATH, &list(&[b.address])), &[b.address]);
    let (one, two) = json.split_at(10);
    let chunks = format!("{:x}\r\n{one}\r\n{:x};a=b\r\n{two}\r\n0\r\nX: y\r\n\r\n", one.len(), two.len());
    accepted(format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}"), &both);
    // The maximum body.
    let of_a = list(&[a.address]);
    let padded = format!("{of_a}{}", " ".repeat(LIMIT - of_a.len()));
    accepted(request("PUT", PATH, &padded), &[a.address]);
    client.send(format!("{head}Content-Length: {}\r\nExpect: 100-continue\r\n\r\n", json.len()));
    assert_eq!(client.answer(Method::Put).status, 100);
    client.send(&json);
    assert_eq!(client.answer(Method::Put).status, 200);
    client.send(request("PUT", PATH, "nonsense"));
    assert_eq!(client.answer(Method::Put).status, 400);
    client.send("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.answer(Method::Get).status, 200);
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    for (request, status) in [
        (request("PUT", PATH, &format!("{padded} ")), 413),
        (format!("{head}Content-Length: 99999999999\r\n\r\n"), 413),
        (format!("{chunked}{:x}\r\n{padded} \r\n0\r\n\r\n", LIMIT + 1), 413),
        (format!("{chunked}x\r\n"), 400),
    ] {
        let mut client = Client::connect(weir.admin(), None);
        client.send(&request);
        let answer = client.answer(Method::Put);
        assert!(answer.status == status && answer.says_close(), "{}: {}", answer.head, answer.text());
    }
    assert_eq!(summary(&change(&weir, "GET", "/services/app", "")), of("admin", &both));
}
