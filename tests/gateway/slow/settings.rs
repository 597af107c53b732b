//! Rate settings, and the time when a change takes effect.

use super::{GET, STRICT, configuration, counting, expect_length, let_a_window_pass, trickle};
use crate::common::{Certificates, Client, DEADLINE, Peer, Upstream, Weir, poll_until};
use crate::gateway::{check, metric};
use std::fs;
use weir_http::Method;

#[test]
fn an_exchange_keeps_what_it_began_with_in_a_reload() {
    const LARGE: usize = 32 << 20;
    let counting = counting();
    let pouring = Upstream::start(None, |peer: &mut Peer| {
        peer.serve(
            [format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n").into_bytes(), vec![b'x'; LARGE]]
                .concat(),
        );
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let config = |rest: &str| {
        let large = format!(
            "[service.large]\nservers = 'http://{}'\n[[route]]\npath = '/large'\nservice = 'large'\nresponse_buffer = '64MiB'\n",
            pouring.address
        );
        configuration(&counting, "", &format!("{large}{rest}"))
    };
    fs::write(&file, config("[min_rate]\nrequest = 0\nresponse = 0\nwindow = '300ms'")).unwrap();
    let weir = Weir::of_file(&file, 1);
    let mut sending = Client::connect(weir.address(), None);
    sending.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n1");
    let mut reading = Client::connect(weir.address(), None);
    // Otherwise the kernel would buffer the whole remaining response once the client continues.
    socket2::SockRef::from(reading.stream.tcp()).set_recv_buffer_size(64 * 1024).unwrap();
    reading.send(GET.replace("GET /", "GET /large"));
    poll_until(DEADLINE, "the servers have done what they can", || {
        counting.connections() == 1 && metric(&weir, "weir_server_idle_connections") == 1
    });
    fs::write(&file, config(&format!("[min_rate]\n{STRICT}"))).unwrap();
    let reload = weir.ask_admin("POST /reload");
    assert!(reload.text().contains("\"settings\":1"), "{}", reload.text());
    // Both continue, so that the gateway evaluates their deadlines, and then pause.
    sending.send("2");
    let mut bytes = Vec::new();
    while bytes.len() < LARGE / 4 {
        assert_eq!(reading.stream.receive(&mut bytes), None);
    }
    // The last bytes arrive a little after the read.
    for _ in 0..3 {
        let_a_window_pass(&weir);
    }
    sending.send("3");
    expect_length(&mut sending, 3);
    while bytes.len() < LARGE {
        assert_eq!(reading.stream.receive(&mut bytes), None, "{}", weir.stderr());
    }
    // A new request follows the new settings.
    sending.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n1");
    assert_eq!(sending.answer(Method::Post).status, 408);
}

#[test]
fn the_route_s_stall_holds_while_its_body_is_buffered() {
    let upstream = counting();
    let route = "request_buffer = '64KiB'\ntimeouts.stall = '200ms'\nmin_rate.request = 0";
    let weir = super::gateway(&upstream, route, "");
    let mut client = Client::connect(weir.address(), None);
    let answer = client.ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n1");
    assert!(answer.status == 408 && answer.text().contains("body_timeout"), "{}", answer.text());
}

#[test]
fn rates_and_windows_have_a_range_and_are_explained() {
    let base = "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n";
    for (setting, why) in [
        (
            "min_rate.request = '2GiB'",
            "5: route.0.min_rate.request: invalid value `2147483648`: expected 0 to 1073741824",
        ),
        ("min_rate.response = -1", "5: route.0.min_rate.response: invalid size -1: expected bytes"),
        ("min_rate.window = '99ms'", "5: route.0.min_rate.window: invalid value 99ms: expected 100ms to 1h"),
        ("min_rate.widow = '1s'", "unknown field `widow`; did you mean `window`?"),
        ("[min_rate]\nwindow = '2h'", "6: min_rate.window: invalid value 7200s: expected 100ms to 1h"),
        ("[min_rate]\nresponse = 'fast'", "6: min_rate.response: invalid size \"fast\": expected bytes"),
        ("[timeouts]\nbody = 0", "6: timeouts.body: "),
        ("timeouts.response_body = '10'", "5: route.0.timeouts.response_body: invalid duration `10`"),
    ] {
        check::refused(&format!("{base}{setting}\n"), why);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let explain = |more: &str| {
        let base = base.replace("respond.status = 200", "service = 'app'");
        fs::write(&file, format!("{base}{more}\n[service.app]\nservers = 'http://127.0.0.1:1'\n")).unwrap();
        Weir::run(&["check", "--config", file.to_str().unwrap(), "--explain"]).stdout
    };
    let text = explain("");
    for part in [
        "clients send at least 500 bytes/s, take 240 bytes/s, window 75s",
        "body unlimited, response body unlimited",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let text = explain(
        "min_rate.request = 0\ntimeouts.body = '1h'\n[min_rate]\nrequest = '1KiB'\nresponse = 0\nwindow = '5s'\n[timeouts]\nresponse_body = '1d'",
    );
    for part in [
        "clients send at least 1024 bytes/s, take any rate, window 5s",
        "body unlimited, response body 86400s",
        "body 3600s, min_rate request 0 bytes/s",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
}

#[test]
fn over_tls_it_is_the_same() {
    const LARGE: usize = 32 << 20;
    let certificates = Certificates::new();
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        if peer.head().is_some_and(|(head, _)| head.starts_with("GET ")) {
            peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"));
            peer.answer(vec![b'x'; LARGE]);
        }
        peer.read_to_end();
    });
    let pair = format!(
        "[[certificate]]\nchain = '{}'\nkey = '{}'\n[min_rate]\n{STRICT}",
        certificates.cert.display(),
        certificates.key.display()
    );
    let config = configuration(&upstream, "", &pair);
    let weir = Weir::configured(&config.replace("[service.app]", "tls = {}\n[service.app]"), 1);
    let mut client = Client::connect(weir.address(), Some(certificates.session()));
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
    trickle(&mut client, &mut std::iter::repeat(b'x'));
    let answer = client.answer(Method::Post);
    assert!(answer.status == 408 && answer.text().contains("body_too_slow"), "{}", answer.text());
    let mut client = Client::connect(weir.address(), Some(certificates.session()));
    client.send(GET);
    weir.wait_for_stderr(&["client_too_slow", "GET /"]);
    assert!(!client.answer(Method::Get).complete);
}
