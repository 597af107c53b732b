//! Clients that close their sending side, which usually means that they have disconnected.

use super::scripts::{GET, OK, echo_target};
use crate::common::{Case, Client, DEADLINE, Ending, MODES, Mode, Switch, Upstream, Weir, poll_until};
use std::io::Read as _;
use weir_http::Method;

const SERVE: &str = "half_close = 'serve'";
const FIRST_HALF: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nha";

type Way = (&'static str, fn(&mut Client));

/// The ways in which a client closes its sending side. Over TLS, either close_notify or FIN alone has the same effect.
const WAYS: [Way; 3] = [
    ("close_notify and FIN", |client| client.stream.finish()),
    ("FIN", |client| client.stream.finish_tcp()),
    ("close_notify", |client| client.stream.finish_tls()),
];

fn ways(mode: Mode) -> impl Iterator<Item = Way> {
    WAYS.into_iter().filter(move |(name, _)| mode.client_tls || *name == "FIN")
}

/// Regression test: the server processed a request to the end for a client that had disconnected, and the log said 200.
#[test]
fn a_client_that_gives_up_ends_the_attempt() {
    for mode in MODES {
        for (way, close) in ways(mode) {
            for begun in [false, true] {
                let what = format!("{mode:?}, {way}, begun: {begun}");
                let case = Case::configured(mode, "", move |peer| {
                    peer.request();
                    if begun {
                        peer.answer(FIRST_HALF);
                    }
                    peer.read_to_end();
                });
                let mut client = case.client();
                client.send(GET);
                case.upstream.wait_for_requests(1);
                if begun {
                    let mut bytes = Vec::new();
                    while !bytes.ends_with(b"ha") {
                        assert_eq!(client.stream.receive(&mut bytes), None, "{what}");
                    }
                }
                close(&mut client);
                // A FIN could mean only the end of the request, as it does for this client.
                assert_eq!(case.upstream.wait_for_ending(0), Ending::Reset, "{what}");
                case.weir.wait_for_stderr(&["client_closed", "GET /"]);
                let ended = case.stop();
                assert!(ended.stdout.contains("ended early: 1 client_closed"), "{what}: {}", ended.stdout);
            }
        }
    }
}

#[test]
fn a_half_closed_client_is_served_where_that_is_set() {
    for mode in MODES {
        for (way, close) in ways(mode).filter(|(way, _)| *way == "FIN") {
            let go_on = Switch::default();
            let gate = go_on.clone();
            let case = Case::configured(mode, SERVE, move |peer| {
                peer.request();
                gate.wait();
                peer.answer(OK);
                peer.read_to_end();
            });
            let mut client = case.client();
            client.send(GET);
            close(&mut client);
            case.upstream.wait_for_requests(1);
            go_on.throw();
            let answer = client.answer(Method::Get);
            assert_eq!(answer.text(), "ok", "{mode:?} {way}");
            client.expect_end();
            case.stop();
        }
    }
}

#[test]
fn a_close_notify_after_a_request_does_not_lose_its_response_where_that_is_set() {
    for mode in MODES.into_iter().filter(|mode| mode.client_tls) {
        let body = "x".repeat(100_000);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let case = Case::configured(mode, SERVE, move |peer| peer.serve(&answer));
        let mut stream = case.connect().unwrap();
        stream.send(GET.as_bytes()).unwrap();
        // The session reads nothing after its own close_notify, so count the encrypted bytes.
        stream.finish();
        let mut received = 0;
        let mut bytes = vec![0; 1 << 16];
        loop {
            match stream.tcp().read(&mut bytes).unwrap() {
                0 => break,
                some => received += some,
            }
        }
        assert!(received > body.len(), "{mode:?}: {received} bytes of a response of {}", body.len());
        let ended = case.stop();
        assert!(ended.stdout.contains("ended early: none"), "{mode:?}: {}", ended.stdout);
    }
}

const THREE: &str =
    "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\nGET /3 HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn all_requests_before_a_half_close_get_responses_where_that_is_set() {
    // Regression test: the end of the client's stream dropped all requests after the first one.
    for mode in MODES {
        let case = Case::configured(mode, SERVE, echo_target);
        let mut client = case.client();
        client.send(THREE);
        client.stream.finish_tcp();
        for n in 1..=3 {
            assert_eq!(client.answer(Method::Get).text(), format!("/{n}"), "{mode:?}");
        }
        client.expect_end();
        case.stop();
    }
}

/// A client that half-closes after pipelined requests waits for their responses.
#[test]
fn requests_that_wait_behind_another_are_served() {
    for mode in MODES {
        let go_on = Switch::default();
        let gate = go_on.clone();
        let case = Case::configured(mode, "", move |peer| {
            while let Some(request) = peer.request() {
                if request.head.starts_with("GET /1 ") {
                    gate.wait();
                }
                peer.answer(OK);
            }
        });
        let mut client = case.client();
        client.send(THREE);
        client.stream.finish_tcp();
        case.upstream.wait_for_requests(1);
        // The worker handles connections in order, so it has noticed that end once it serves a later connection.
        let answer = case.client().ask("GET /other HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(answer.text(), "ok", "{mode:?}");
        go_on.throw();
        for _ in 1..=3 {
            assert_eq!(client.answer(Method::Get).text(), "ok", "{mode:?}");
        }
        client.expect_end();
        let ended = case.stop();
        assert!(ended.stdout.contains("ended early: none"), "{mode:?}: {}", ended.stdout);
    }
}

/// A request that waits for an upstream connection leaves the queue if its client disconnects: the gateway opens no
/// connection for it.
#[test]
fn a_client_that_gives_up_in_the_queue_leaves_it() {
    let go_on = Switch::default();
    let gate = go_on.clone();
    let upstream = Upstream::start(None, move |peer| {
        while peer.request().is_some() {
            gate.wait();
            peer.answer(OK);
        }
    });
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\nmax_connections = 1\n\
         [[route]]\nservice = 'app'\n",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    let mut first = Client::connect(weir.address(), None);
    first.send(GET);
    upstream.wait_for_requests(1);
    let mut second = Client::connect(weir.address(), None);
    second.send("GET /second HTTP/1.1\r\nHost: h\r\n\r\n");
    second.stream.finish_tcp();
    second.expect_end();
    weir.wait_for_stderr(&["client_closed"]);
    go_on.throw();
    assert_eq!(first.answer(Method::Get).text(), "ok");
    assert_eq!(first.ask(GET).text(), "ok");
    poll_until(DEADLINE, "two requests", || upstream.requests().len() == 2);
    assert!(upstream.requests().iter().all(|request| request.head.starts_with("GET / ")));
}

/// The gateway sends a generated response before it handles the client's half-close.
#[test]
fn own_responses_reach_a_half_closed_client() {
    let weir = Weir::configured(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond = { status = 200, body = 'own' }\n",
        1,
    );
    let mut client = Client::connect(weir.address(), None);
    client.send(GET);
    client.stream.finish_tcp();
    assert_eq!(client.answer(Method::Get).text(), "own");
    client.expect_end();
}
