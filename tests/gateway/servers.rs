//! Draining, weighting and restoring servers at run time.

use super::dns::{NameServer, twins};
use super::unix::exchange;
use super::{ask, get, metric, named};
use crate::common::{Client, DEADLINE, Ending, Peer, Switch, Upstream, Weir, poll_until};
use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// A configuration with a service `app` that has these servers; `more` adds lines to it.
fn config(servers: &[SocketAddr], more: &str) -> String {
    let urls: Vec<_> = servers.iter().map(|address| format!("'http://{address}'")).collect();
    format!(
        "workers = 2\n[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nservice = 'app'\n\
         [admin]\nbind = '127.0.0.1:0'\n[service.app]\nservers = [{}]\n{more}",
        urls.join(", ")
    )
}

/// Changes a server of `app`, and returns its new state.
fn change(weir: &Weir, server: &Upstream, query: &str) -> Value {
    let answer = weir.ask_admin(&format!("POST /services/app/servers/{}?{query}", server.address));
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_str(answer.text()).unwrap()
}

fn shown(weir: &Weir, server: &Upstream) -> Value {
    let answer = weir.ask_admin(&format!("GET /services/app/servers/{}", server.address));
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_str(answer.text()).unwrap()
}

/// The number of `count` requests on one connection that go to a server.
fn share(weir: &Weir, server: &str, count: usize) -> usize {
    let mut client = Client::connect(weir.address(), None);
    let answers = (0..count).map(|_| client.ask(GET));
    let mut of_server = 0;
    for answer in answers {
        assert_eq!(answer.status, 200, "{}", answer.text());
        of_server += usize::from(answer.fields("x-server") == [server]);
    }
    of_server
}

#[test]
fn a_drained_server_gets_no_requests_under_load_and_none_is_lost() {
    let [a, b] = ["a", "b"].map(named);
    let weir = Weir::configured(&config(&[a.address, b.address], ""), 1);
    let (is_over, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    let serve_more = |count: usize| {
        let before = served.load(Ordering::SeqCst);
        poll_until(DEADLINE, "requests", || served.load(Ordering::SeqCst) >= before + count);
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::connect(weir.address(), None);
                let begun = std::time::Instant::now();
                while !is_over.load(Ordering::SeqCst) && begun.elapsed() < DEADLINE {
                    let answer = client.ask(GET);
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    served.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for _ in 0..3 {
            let before = a.requests().len();
            poll_until(DEADLINE, "it gets requests", || a.requests().len() > before + 10);
            let drained = change(&weir, &a, "state=drain");
            assert_eq!((&drained["state"], &drained["idle"]), (&"drained".into(), &0.into()));
            poll_until(DEADLINE, "those in flight end", || shown(&weir, &a)["in_flight"] == 0);
            assert_eq!(shown(&weir, &a)["idle"], 0, "no connection is kept");
            let rest = a.requests().len();
            serve_more(200);
            assert_eq!(a.requests().len(), rest);
            assert_eq!(change(&weir, &a, "state=ready")["state"], "up");
        }
        let before = a.requests().len();
        poll_until(DEADLINE, "it is back", || a.requests().len() > before);
        is_over.store(true, Ordering::SeqCst);
    });
    let line = format!("weir: app: http://{} was set: state drain (was ready)", a.address);
    poll_until(DEADLINE, "lines", || weir.stderr().matches(&line).count() == 3);
    assert_eq!(weir.stderr().matches("state ready (was drain)").count(), 3);
    assert_eq!(weir.stop().code, Some(0));
}

#[test]
fn a_request_in_flight_finishes_at_a_drained_server_and_its_connection_is_closed() {
    let switch = Switch::default();
    let hold = switch.clone();
    let a = Upstream::start(None, move |peer: &mut Peer| {
        while peer.request().is_some() {
            hold.wait();
            peer.answer("HTTP/1.1 200 OK\r\nX-Server: a\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let weir = Weir::configured(&config(&[a.address], ""), 1);
    let mut client = Client::connect(weir.address(), None);
    client.send(GET);
    a.wait_for_requests(1);
    assert_eq!(change(&weir, &a, "state=drain")["in_flight"], 1);
    assert_eq!(get(&weir, "h", "/").status, 503);
    switch.throw();
    assert_eq!(client.answer(Method::Get).status, 200);
    assert_eq!(a.wait_for_ending(0), Ending::Clean);
    assert_eq!(client.ask(GET).status, 503, "the next one on the same connection");
    change(&weir, &a, "state=ready");
    assert_eq!(get(&weir, "h", "/").status, 200);
}

#[test]
fn weights_shift_the_shares_until_they_are_the_configured_ones_again() {
    let [a, b] = ["a", "b"].map(named);
    let more = "eject.slow_return = '1ms'";
    let weir = Weir::configured(&config(&[a.address, b.address], more), 1);
    assert_eq!(share(&weir, "a", 100), 50);
    let now = change(&weir, &a, "weight=4");
    assert_eq!(
        (&now["weight"], &now["configured_weight"], &now["state"]),
        (&4.into(), &1.into(), &"up".into())
    );
    // Round robin is exact, apart from its starting position.
    let of_a = share(&weir, "a", 500);
    assert!((398..=402).contains(&of_a), "{of_a}");
    assert_eq!(change(&weir, &a, "weight=0")["state"], "off");
    assert_eq!(share(&weir, "a", 100), 0);
    assert_eq!(change(&weir, &a, "weight=default")["weight"], 1);
    poll_until(DEADLINE, "its share is back", || share(&weir, "a", 20) == 10);
    weir.wait_for_stderr(&["was set: weight 4 (was 1 as configured)"]);
    weir.wait_for_stderr(&["was set: weight 1 as configured (was 0)"]);
}

#[test]
fn clients_stay_with_a_drained_server_by_their_cookie_but_not_with_a_weight_of_0() {
    let [a, b] = ["a", "b"].map(named);
    let weir = Weir::configured(&config(&[a.address, b.address], "sticky = 'SRV'"), 1);
    let mut cookie = None;
    poll_until(DEADLINE, "a client of a", || {
        let answer = get(&weir, "h", "/");
        let pair = answer.fields("set-cookie")[0].split(';').next().unwrap().to_owned();
        cookie = (answer.fields("x-server") == ["a"]).then_some(pair);
        cookie.is_some()
    });
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: {}\r\n\r\n", cookie.unwrap());
    let servers =
        || (0..10).map(|_| ask(&weir, &request).fields("x-server")[0].to_owned()).collect::<String>();
    change(&weir, &a, "state=drain");
    assert_eq!((servers().as_str(), share(&weir, "a", 10)), ("aaaaaaaaaa", 0));
    change(&weir, &a, "state=ready&weight=0");
    assert_eq!(servers(), "bbbbbbbbbb");
}

/// A drained server is not used even as a last resort, and requests do not wait for it.
#[test]
fn when_all_are_drained_the_answer_is_no_server() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        peer.read_to_end();
    });
    let config = format!("{}\n[timeouts]\nqueue = '1h'", config(&[upstream.address], "max_connections = 1"));
    let weir = Weir::configured(&config, 1);
    let mut first = Client::connect(weir.address(), None);
    first.send(GET);
    poll_until(DEADLINE, "its only connection is in use", || upstream.received_bytes() > 0);
    let mut waiting: Vec<_> = (0..4).map(|_| Client::connect(weir.address(), None)).collect();
    waiting.iter_mut().for_each(|client| client.send(GET));
    poll_until(DEADLINE, "they wait", || metric(&weir, "weir_waiting_requests") == 4);
    change(&weir, &upstream, "state=drain");
    for client in &mut waiting {
        let answer = client.answer(Method::Get);
        assert_eq!((answer.status, answer.text().contains("no_server")), (503, true), "{}", answer.text());
    }
    let answer = get(&weir, "h", "/");
    assert_eq!((answer.status, answer.text().contains("no_server")), (503, true));
    assert_eq!(metric(&weir, "weir_waiting_requests"), 0);
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn what_was_set_outlives_reloads_while_the_server_is_there() {
    let [a, b] = ["a", "b"].map(named);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let both = config(&[a.address, b.address], "");
    fs::write(&file, &both).unwrap();
    let weir = Weir::of_file(&file, 1);
    let reload = |config: &str| {
        fs::write(&file, config).unwrap();
        let answer = weir.ask_admin("POST /reload");
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    change(&weir, &a, "state=drain&weight=9");
    // For the workers this is a new server, for the operator the same one.
    reload(&format!("{both}\nmax_connections = 7\nbalance = 'least-in-flight'"));
    let now = shown(&weir, &a);
    assert_eq!((&now["state"], &now["weight"]), (&"drained".into(), &9.into()));
    assert_eq!(share(&weir, "a", 20), 0);
    reload(&config(&[b.address], ""));
    assert_eq!(weir.ask_admin(&format!("GET /services/app/servers/{}", a.address)).status, 404);
    reload(&both);
    let now = shown(&weir, &a);
    assert_eq!((&now["state"], &now["weight"]), (&"up".into(), &1.into()), "it was gone meanwhile");
    // Round robin continues from its previous position.
    assert!((9..=11).contains(&share(&weir, "a", 20)));
}

#[test]
fn a_name_that_moves_keeps_what_was_set_for_it() {
    const NAME: &str = "app.test";
    let [old, new] = [Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2)];
    let (names, (at_old, at_new)) = (NameServer::start(), twins());
    names.say_addresses(NAME, 1, &[old]);
    let port = at_old.address.port();
    let config = format!(
        "workers = 2\n[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nservice = 'app'\n[admin]\nbind = '127.0.0.1:0'\n\
         [service.app]\nservers = 'http://{NAME}:{port}'\n[dns]\nservers = '{}'",
        names.address
    );
    let weir = Weir::configured(&config, 1);
    assert_eq!(get(&weir, "h", "/").status, 200);
    let server = format!("/services/app/servers/{}:{port}", NAME.to_uppercase());
    assert_eq!(weir.ask_admin(&format!("POST {server}?state=drain")).status, 200);
    names.say_addresses(NAME, 1, &[new]);
    weir.wait_for_stderr(&[" is at 127.0.0.2:"]);
    poll_until(DEADLINE, "it has moved", || {
        weir.ask_admin(&format!("GET {server}")).text().contains("127.0.0.2:")
    });
    assert_eq!((get(&weir, "h", "/").status, at_new.connections()), (503, 0));
    assert_eq!(weir.ask_admin(&format!("POST {server}?state=ready")).status, 200);
    assert_eq!(get(&weir, "h", "/").fields("x-server"), ["new"]);
}

/// The gateway checks a drained server's health and shows it.
#[test]
fn a_drained_server_that_is_down_is_not_up_when_it_is_ready() {
    let a = named("a");
    let address = a.address;
    let weir = Weir::configured(
        &config(&[address], "health = { every = '20ms', timeout = '5s', rise = 1, fall = 1 }"),
        1,
    );
    change(&weir, &a, "state=drain");
    drop(a);
    weir.wait_for_stderr(&["is down: "]);
    let server = format!("/services/app/servers/{address}");
    poll_until(DEADLINE, "it is shown", || {
        weir.ask_admin(&format!("GET {server}")).text().contains("\"down\":true")
    });
    assert!(weir.ask_admin(&format!("GET {server}")).text().contains("\"state\":\"drained\""));
    assert!(weir.ask_admin(&format!("POST {server}?state=ready")).text().contains("\"state\":\"down\""));
    assert_eq!(get(&weir, "h", "/").status, 503);
}

#[test]
fn what_is_no_change_is_refused_in_words_and_changes_nothing() {
    let a = named("a");
    let weir =
        Weir::configured(&config(&[a.address, a.address, SocketAddr::from(([127, 0, 0, 1], 1))], ""), 1);
    let [twin, other] = [a.address.to_string(), "127.0.0.1:1".to_owned()];
    for (request, status, words) in [
        ("POST /services/x/servers/a?state=drain", 404, "unknown service `x`: expected one of `app`"),
        (
            "POST /services/app/servers/b?state=drain",
            404,
            "unknown server `b`: expected one of `http://127.0.0.1:",
        ),
        (&format!("POST /services/app/servers/{twin}?state=drain"), 409, "is 2 of its servers"),
        ("POST /services/app/servers/127.0.0.1:1", 400, "missing parameter: expected `state=drain`"),
        ("POST /services/app/servers/127.0.0.1:1?state=off", 400, "state: invalid value `off`"),
        (
            "POST /services/app/servers/127.0.0.1:1?weight=1001",
            400,
            "weight: invalid value `1001`: expected 0 to 1000",
        ),
        ("GET /services/app/servers/127.0.0.1:1?state=drain", 405, "expected POST"),
        ("PUT /services/app/servers/127.0.0.1:1?state=drain", 405, "expected GET, HEAD, POST or DELETE"),
        ("POST /services?state=drain", 405, "expected GET or HEAD"),
        ("GET /services/app/", 404, "/services/NAME/servers/SERVER"),
    ] {
        let answer = weir.ask_admin(request);
        assert!(
            answer.status == status && answer.text().contains(words),
            "{request}: {} {}",
            answer.head,
            answer.text()
        );
    }
    let server = format!("/services/app/servers/{other}?state=drain HTTP/1.1\r\nHost: localhost\r\n");
    let mut head = Client::connect(weir.admin(), None);
    head.send(format!("HEAD {server}\r\n"));
    assert_eq!(head.answer(Method::Head).status, 405);
    // A request as a web page in a local browser can send it.
    for (more, status) in [("Origin: http://evil.example\r\n", 403), ("Content-Length: 11\r\n", 400)] {
        let answer = Client::connect(weir.admin(), None).ask(format!("POST {server}{more}\r\nstate=drain"));
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    let text = weir.ask_admin("GET /services").text().to_owned();
    assert!(text.matches("\"state\":\"up\"").count() == 3 && !text.contains("drained"), "{text}");
    assert!(!weir.stderr().contains("was set"), "{}", weir.stderr());
}

#[test]
fn all_views_agree_and_a_socket_is_as_good_as_a_port() {
    let [a, b] = ["a", "b"].map(named);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.sock");
    let config = config(&[a.address, b.address], "")
        .replace("'127.0.0.1:0'\n[service", &format!("'unix:{}'\n[service", path.display()));
    let _weir = Weir::configured(&config, 1);
    let fetch = |request: &str| {
        let answer =
            exchange(&path, &format!("{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        body.to_owned()
    };
    let encoded = format!("http%3A%2F%2F{}", a.address);
    fetch(&format!("POST /services/app/servers/{encoded}?state=drain"));
    fetch(&format!("POST /services/%61pp/servers/http://{}?weight=3", b.address));
    let services: Value = serde_json::from_str(&fetch("GET /services")).unwrap();
    let status: Value = serde_json::from_str(&fetch("GET /status")).unwrap();
    let servers = &services["services"][0]["servers"];
    assert_eq!(services["services"][0]["name"], "app");
    for (at, (upstream, state, weight)) in [(&a, "drained", 1), (&b, "up", 3)].into_iter().enumerate() {
        let server = &servers[at];
        assert_eq!(server["url"], format!("http://{}", upstream.address));
        assert_eq!(server["address"], upstream.address.to_string());
        for server in [server, &status["servers"][at]] {
            assert_eq!(
                (&server["server"], &server["state"], &server["weight"], &server["configured_weight"]),
                (&upstream.address.to_string().into(), &state.into(), &weight.into(), &1.into())
            );
        }
    }
    let metrics = fetch("GET /metrics");
    for (server, state) in [(&a, "drained"), (&b, "up")] {
        for known in ["up", "ejected", "down", "off", "drained"] {
            let labels = format!("{{service=\"app\",server=\"{}\",state=\"{known}\"}}", server.address);
            let line = format!("weir_server_state{labels} {}", u64::from(known == state));
            assert!(metrics.lines().any(|found| found == line), "no `{line}` in {metrics}");
        }
    }
    let weight = format!("weir_server_weight{{service=\"app\",server=\"{}\"}} 3", b.address);
    assert!(metrics.lines().any(|line| line == weight), "{metrics}");
    let place = format!("unix:{}", path.display());
    let top = Weir::run(&["top", "--admin", &place, "--once", "--every", "0.1"]).stdout;
    let line = |server: &Upstream| {
        let line = top.lines().find(|line| line.contains(&server.address.to_string())).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        (&line(&a)[2..4], &line(&b)[2..4]),
        (&["drained", "1"].map(str::to_owned)[..], &["up", "3*"].map(str::to_owned)[..])
    );
}
