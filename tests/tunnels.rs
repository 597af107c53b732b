//! Upgrades from HTTP to a tunnel of bytes in both directions.

use crate::common::{Case, Certificates, Client, Ending, MODES, Mode, Peer, Switch, Upstream, Weir, pattern};
use weir_http::Method;

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

#[test]
fn after_a_switch_bytes_pass_both_ways_and_each_end_is_passed_on() {
    for mode in MODES {
        let said = pattern(300_000);
        let answer = said.clone();
        let case = Case::new(mode, &[], move |peer| {
            peer.head();
            // The first bytes of the new protocol arrive with the head.
            peer.answer([SWITCHED.as_bytes(), b"hello"].concat());
            let mut got = Vec::new();
            while got.len() < answer.len() {
                assert_eq!(peer.stream.receive(&mut got), None);
            }
            assert!(got == answer);
            // The client sends more after this end.
            peer.answer(&answer);
            peer.stream.finish();
            peer.read_to_end();
        });
        let mut client = case.client();
        client.send(UPGRADE);
        let head = client.answer(Method::Get);
        assert_eq!(head.status, 101, "{mode:?}");
        assert_eq!(head.fields("upgrade"), ["websocket"], "{mode:?}");
        assert_eq!(head.fields("connection"), ["Upgrade"], "{mode:?}");
        assert_eq!(head.fields("sec-websocket-accept").len(), 1, "{mode:?}");
        client.send(&said);
        let (bytes, ending) = client.read_to_end();
        assert!(bytes == [b"hello", &said[..]].concat(), "{mode:?}: {} bytes", bytes.len());
        assert_eq!(ending, Ending::Clean, "{mode:?}");
        client.send("and bye");
        client.stream.finish();
        assert_eq!(case.upstream.wait_for_ending(0), Ending::Clean, "{mode:?}");
        let received = case.upstream.received(0);
        let head = String::from_utf8_lossy(&received).to_ascii_lowercase();
        assert!(head.contains("\r\nconnection: upgrade\r\nupgrade: websocket\r\n"), "{mode:?}: {head}");
        assert!(received.ends_with(b"and bye"), "{mode:?}");
        let ended = case.stop();
        assert!(ended.stdout.contains("tunnels: 1;"), "{mode:?}: {}", ended.stdout);
        assert!(ended.stdout.contains("ended early: none"), "{mode:?}: {}", ended.stdout);
    }
}

#[test]
fn what_the_client_sends_behind_its_request_waits_for_the_switch() {
    for mode in MODES {
        let (seen, switch) = (Switch::default(), Switch::default());
        let (saw, gate) = (seen.clone(), switch.clone());
        let case = Case::new(mode, &[], move |peer| {
            peer.head();
            saw.throw();
            gate.wait();
            peer.answer(SWITCHED);
            peer.read_to_end();
        });
        let mut client = case.client();
        client.send([UPGRADE, "early"].concat());
        seen.wait();
        assert!(!case.upstream.received(0).ends_with(b"early"), "{mode:?}");
        switch.throw();
        assert_eq!(client.answer(Method::Get).status, 101, "{mode:?}");
        client.stream.finish();
        assert_eq!(case.upstream.wait_for_ending(0), Ending::Clean, "{mode:?}");
        assert!(case.upstream.received(0).ends_with(b"early"), "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn an_upgrade_that_the_upstream_ignores_is_an_ordinary_request() {
    for mode in MODES {
        let case = Case::answering(mode, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        let mut client = case.client();
        for _ in 0..2 {
            assert_eq!(client.ask(UPGRADE).text(), "ok", "{mode:?}");
        }
        assert_eq!(case.upstream.connections(), 1, "{mode:?}: it is reused");
        drop(client);
        case.stop();
    }
}

/// Regression test: `h2c` was recognised only as the whole value. A server may choose any protocol of a list, and
/// cleartext HTTP/2 would then have carried requests past the gateway's checks.
#[test]
fn no_list_of_protocols_leads_to_cleartext_http_2() {
    for protocols in ["h2c", "websocket, h2c", "h2c ,websocket", ",H2C", "websocket,h2c/2.0"] {
        let case = Case::new(MODES[0], &[], |peer| {
            peer.head();
            peer.answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n");
            peer.read_to_end();
        });
        let request =
            format!("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: {protocols}\r\n\r\n");
        let answer = case.client().ask(request);
        assert_eq!(answer.status, 502, "{protocols}");
        assert!(answer.text().contains("upstream_switched_protocols"), "{protocols}: {}", answer.text());
        let received = String::from_utf8_lossy(&case.upstream.received(0)).to_ascii_lowercase();
        assert!(!received.contains("h2c") && !received.contains("upgrade"), "{protocols}: {received}");
        case.stop();
    }
}

#[test]
fn a_side_that_is_cut_off_resets_the_other() {
    for mode in MODES {
        let (case, client) = silent_tunnel(mode);
        client.stream.reset();
        assert_eq!(case.upstream.wait_for_ending(0), Ending::Reset, "{mode:?}");
        case.weir.wait_for_stderr(&["client_closed", "request=\"GET /chat\""]);
        case.stop();
    }
}

#[test]
fn a_tunnel_without_traffic_ends_with_a_drain() {
    for mode in MODES {
        let (case, mut client) = silent_tunnel(mode);
        case.weir.terminate();
        let (_, ending) = client.read_to_end();
        assert_eq!(ending, Ending::Reset, "{mode:?}");
        case.stop();
    }
}

/// A tunnel with an upstream that is silent after the switch, and its client.
#[track_caller]
fn silent_tunnel(mode: Mode) -> (Case, Client) {
    let case = Case::new(mode, &[], |peer| {
        peer.head();
        peer.answer(SWITCHED);
        peer.read_to_end();
    });
    let mut client = case.client();
    client.send(UPGRADE);
    assert_eq!(client.answer(Method::Get).status, 101, "{mode:?}");
    (case, client)
}

/// Regression test: if a client's stream ended within its handshake, the poller reported the end again in every turn,
/// so a health check of a relay used its whole core until the handshake's deadline. Load balancers check every few
/// seconds.
#[test]
fn a_client_that_leaves_within_its_handshake_is_gone_at_once() {
    let certificates = Certificates::new();
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        peer.read_to_end();
    });
    let (cert, key) = (certificates.cert.to_str().unwrap(), certificates.key.to_str().unwrap());
    let to = format!("http://{}", upstream.address);
    let weir = Weir::start(&[
        "relay",
        "--workers",
        "1",
        "--listen",
        "https://127.0.0.1:0",
        "--cert",
        cert,
        "--key",
        key,
        "--to",
        &to,
    ]);
    for index in 0..3 {
        drop(std::net::TcpStream::connect(weir.address()).unwrap());
        upstream.wait_for_ending(index);
    }
    let ended = weir.stop();
    assert!(ended.code == Some(0) && !ended.stderr.contains("timeout"), "{}", ended.stderr);
}
