//! Response times by service and by named route.

use super::{held_back, named};
use crate::common::{Client, DEADLINE, Switch, Weir, poll_until};
use std::collections::BTreeMap;
use std::fs;
use weir_http::Method;

/// The numbers of responses by name and class, for the label `service` or `route`.
fn counts(weir: &Weir, label: &str) -> BTreeMap<String, u64> {
    let page = weir.ask_admin("GET /metrics");
    let begin = format!("weir_{label}_response_seconds_count{{{label}=\"");
    let samples = page.text().lines().filter_map(|line| line.strip_prefix(&begin));
    let parse = |sample: &str| {
        let (name, rest) = sample.split_once("\",class=\"").unwrap();
        let (class, count) = rest.split_once("\"} ").unwrap();
        (format!("{name} {class}"), count.parse().unwrap())
    };
    samples.map(parse).collect()
}

fn expected(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// The status of the response to a request with these additional lines in its head.
fn status(weir: &Weir, request: &str, lines: &str) -> u16 {
    Client::connect(weir.address(), None).ask(format!("{request} HTTP/1.1\r\nHost: h\r\n{lines}\r\n")).status
}

#[test]
fn responses_count_for_their_service_and_their_route() {
    let upstream = named("a");
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\n\
         [service.idle]\nservers = 'http://127.0.0.1:1'\n[service.down]\nservers = 'http://127.0.0.1:1'\n\
         [[route]]\nname = 'api'\npath = '/api/*'\nservice = 'app'\n\
         [[route]]\npath = '/unnamed'\nservice = 'app'\n\
         [[route]]\nname = 'down'\npath = '/down'\nservice = 'down'\n\
         [[route]]\nname = 'limited'\npath = '/limited'\nservice = 'app'\nrate = {{ requests = 1, per = '1h' }}\n\
         [[route]]\nname = 'small'\npath = '/small'\nservice = 'app'\nmax_body = 1\n\
         [[route]]\nname = 'own'\npath = '/own'\nrespond.status = 204\n\
         [admin]\nbind = '127.0.0.1:0'\n",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    assert_eq!((counts(&weir, "service"), counts(&weir, "route")), (expected(&[]), expected(&[])));
    for (request, lines, expected) in [
        ("GET /api/1", "", 200),
        ("GET /api/2", "", 200),
        ("TRACE /api/3", "", 405),
        ("GET /unnamed", "", 200),
        ("GET /down", "", 502),
        ("GET /limited", "", 200),
        ("GET /limited", "", 429),
        ("PUT /small", "Content-Length: 2\r\n", 413),
        ("GET /own", "", 204),
        ("GET /none", "", 404),
    ] {
        assert_eq!(status(&weir, request, lines), expected, "{request}");
    }
    assert_eq!(counts(&weir, "service"), expected(&[("app 2xx", 4), ("app 4xx", 3), ("down 5xx", 1)]));
    let of_routes = [
        ("api 2xx", 2),
        ("api 4xx", 1),
        ("down 5xx", 1),
        ("limited 2xx", 1),
        ("limited 4xx", 1),
        ("own 2xx", 1),
        ("small 4xx", 1),
    ];
    assert_eq!(counts(&weir, "route"), expected(&of_routes));
}

#[test]
fn a_divided_route_counts_for_the_service_that_got_the_request() {
    let upstream = named("a");
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.a]\nservers = 'http://{0}'\n\
         [service.b]\nservers = 'http://{0}'\n[[route]]\nname = 'shop'\nmax_body = 1\n\
         service = [{{ name = 'a', weight = 1 }}, {{ name = 'b', weight = 3 }}]\n[admin]\nbind = '127.0.0.1:0'\n",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    for _ in 0..8 {
        assert_eq!(status(&weir, "GET /", ""), 200);
    }
    // The request has no service yet.
    assert_eq!(status(&weir, "PUT /", "Content-Length: 2\r\n"), 413);
    assert_eq!(counts(&weir, "service"), expected(&[("a 2xx", 2), ("b 2xx", 6)]));
    assert_eq!(counts(&weir, "route"), expected(&[("shop 2xx", 8), ("shop 4xx", 1)]));
}

#[test]
fn a_reload_keeps_the_counts_of_the_names_that_it_keeps() {
    let switch = Switch::default();
    let (quick, slow) = (named("a"), held_back(&switch, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    let config = |services: &[&str]| {
        let one = |name: &&str| {
            let server = if *name == "slow" { slow.address } else { quick.address };
            format!(
                "[service.{name}]\nservers = 'http://{server}'\n\
                 [[route]]\nname = 'to-{name}'\npath = '/{name}'\nservice = '{name}'\n"
            )
        };
        let services: String = services.iter().map(one).collect();
        format!(
            "workers = 2\n[listener.web]\nbind = '127.0.0.1:0'\n[admin]\nbind = '127.0.0.1:0'\n{services}"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    fs::write(&file, config(&["a", "b", "slow"])).unwrap();
    let weir = Weir::of_file(&file, 1);
    for path in ["/a", "/b", "/b"] {
        assert_eq!(status(&weir, &format!("GET {path}"), ""), 200);
    }
    let mut waiting = Client::connect(weir.address(), None);
    waiting.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    slow.wait_for_requests(1);
    fs::write(&file, config(&["slow", "b", "c"])).unwrap();
    assert_eq!(weir.ask_admin("POST /reload").status, 200);
    assert_eq!(counts(&weir, "service"), expected(&[("b 2xx", 2)]));
    assert_eq!(counts(&weir, "route"), expected(&[("to-b 2xx", 2)]));
    // A request of the previous configuration counts for the names that exist in both configurations.
    switch.throw();
    assert_eq!(waiting.answer(Method::Get).text(), "ok");
    assert_eq!(status(&weir, "GET /c", ""), 200);
    poll_until(DEADLINE, "all responses count", || counts(&weir, "service").values().sum::<u64>() == 4);
    assert_eq!(counts(&weir, "service"), expected(&[("b 2xx", 2), ("c 2xx", 1), ("slow 2xx", 1)]));
    assert_eq!(counts(&weir, "route"), expected(&[("to-b 2xx", 2), ("to-c 2xx", 1), ("to-slow 2xx", 1)]));
}

#[test]
fn the_name_of_a_route_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    fs::write(
        &file,
        "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nname = 'a-1_B'\nrespond.status = 200\n",
    )
    .unwrap();
    let ended = Weir::run(&["check", "--explain", "--config", file.to_str().unwrap()]);
    assert!(ended.code == Some(0) && ended.stdout.contains("      named a-1_B\n"), "{}", ended.stdout);
}
