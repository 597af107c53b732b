//! Frames that cost the gateway more than the client: each kind has a budget, and the gateway sends GOAWAY and closes a
//! connection that exceeds one. It keeps serving other connections, and its memory does not grow.

use super::fields::{block, literal, request};
use super::{Client, gateway, holding, upstream};
use crate::common::{DEADLINE, Peer, Switch, Upstream, Weir, poll_until};
use weir_http2::ErrorCode;
use weir_http2::frame::{Kind, flag};

/// Checks that the gateway closed the connection with GOAWAY, this code, reason and detail, and serves others.
pub(super) fn ended(weir: &Weir, mut client: Client, code: ErrorCode, reason: &str, detail: &str) -> Client {
    client.flush();
    assert_eq!(client.end().map(|(_, code)| code), Some(code), "{detail}");
    weir.wait_for_stderr(&[&format!(" {reason} "), &format!("detail=\"{detail}\"")]);
    serves_others(weir, detail);
    client
}

/// Another client is served, and memory use is limited.
fn serves_others(weir: &Weir, detail: &str) {
    assert_eq!(Client::connect(weir.address()).get(1, "/other").response(1).text(), "ok", "{detail}");
    // A debug build with all its threads uses about 30 MiB.
    let resident = weir.memory_kib("VmRSS");
    assert!(resident < 150 * 1024, "{detail}: {resident} KiB");
}

fn flooded(weir: &Weir, client: Client, detail: &str) -> Client {
    ended(weir, client, ErrorCode::ENHANCE_YOUR_CALM, "http2_abuse", detail)
}

/// As [`flooded`], for floods whose lines about streams use up the limit of lines per second on stderr.
fn flooded_by_streams(weir: &Weir, mut client: Client) {
    let before = count(weir, "http2_abuse");
    client.flush();
    assert_eq!(client.end().map(|(_, code)| code), Some(ErrorCode::ENHANCE_YOUR_CALM));
    poll_until(DEADLINE, "it is counted", || count(weir, "http2_abuse") > before);
    serves_others(weir, "streams");
}

/// The number of early ends for this reason.
fn count(weir: &Weir, reason: &str) -> u64 {
    let metrics = weir.ask_admin("GET /metrics");
    let name = format!("weir_ended_early_total{{reason=\"{reason}\"}} ");
    let value = metrics.text().lines().find_map(|line| line.strip_prefix(&name));
    value.map_or(0, |value| value.parse().unwrap())
}

const ADMIN: &str = "[admin]\nbind = '127.0.0.1:0'\n";

#[test]
fn requests_that_are_reset_at_once() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", ADMIN);
    let mut client = Client::connect(weir.address());
    for stream in (1..4000).step_by(2) {
        client.get(stream, "/").reset(stream, ErrorCode::CANCEL);
    }
    flooded_by_streams(&weir, client);
    // One for each reset that the budget allows, and one for the reset that exceeds it.
    assert!(count(&weir, "client_reset") <= 401);
    // After the first reset, a request begins only if no reset follows it in the same input.
    assert!(upstream.connections() <= 60, "{}", upstream.connections());
}

/// After a reset, requests of a connection wait for the end of the input, and few begin per turn.
#[test]
fn a_client_that_has_reset_many_streams_is_served() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            let body = [request.head.split(' ').nth(1).unwrap().as_bytes(), &request.body].concat();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            peer.answer([head.as_bytes(), &body].concat());
        }
    });
    let weir = gateway(&upstream, "", ADMIN);
    // From 64 resets on, the gateway makes the client wait between its frames.
    for resets in [30, 100] {
        let before = count(&weir, "client_reset");
        let mut client = Client::connect(weir.address());
        let first = 2 * resets + 1;
        for stream in (1..first).step_by(2) {
            client.get(stream, "/reset").reset(stream, ErrorCode::CANCEL);
        }
        for stream in (first..first + 100).step_by(10) {
            client.get(stream, "/a").get(stream + 2, "/b");
            client.post(stream + 4, "/c").data(stream + 4, b"body", true);
            client.post(stream + 6, "/d").data(stream + 6, b"half", false);
            client.headers(stream + 6, &[(b"a", b"b")], true);
            client.get(stream + 8, "/e").reset(stream + 8, ErrorCode::CANCEL);
        }
        client.flush();
        for stream in (first..first + 100).step_by(10) {
            for (offset, text) in [(0, "/a"), (2, "/b"), (4, "/cbody"), (6, "/dhalf")] {
                assert_eq!(client.response(stream + offset).text(), text, "{stream}");
            }
        }
        let all = before + u64::from(resets) + 10;
        poll_until(DEADLINE, "all resets are counted", || count(&weir, "client_reset") == all);
    }
    assert_eq!(count(&weir, "http2_abuse"), 0);
}

/// The client makes the gateway reset its streams.
#[test]
fn streams_that_are_reset_by_provocation() {
    let switch = Switch::default();
    let upstream = holding(&switch);
    let weir = gateway(&upstream, "", ADMIN);
    type Provocation = fn(&mut Client, u32) -> &mut Client;
    let provocations: [(&str, Provocation); 7] = [
        ("increments of 0", |client, stream| {
            client.get(stream, "/held").frame(Kind::WindowUpdate, 0, stream, &[0; 4])
        }),
        ("windows that overflow", |client, stream| {
            client.get(stream, "/held").window_update(stream, u32::MAX >> 1)
        }),
        ("a priority of 4 bytes", |client, stream| {
            client.get(stream, "/held").frame(Kind::Priority, 0, stream, &[0; 4])
        }),
        ("a priority on itself", |client, stream| {
            let [a, b, c, d] = stream.to_be_bytes();
            client.get(stream, "/held").frame(Kind::Priority, 0, stream, &[a, b, c, d, 16])
        }),
        ("DATA after the end", |client, stream| client.get(stream, "/held").data(stream, b"a", false)),
        ("malformed heads", |client, stream| client.headers(stream, &[(b"A", b"")], true)),
        ("heads that are too large", |client, stream| {
            client.headers(
                stream,
                &[[(&b"a"[..], &b""[..])].repeat(200), request("GET", "/").to_vec()].concat(),
                true,
            )
        }),
    ];
    for (label, provoke) in provocations {
        println!("{label}");
        let mut client = Client::connect(weir.address());
        for stream in (1..800).step_by(2) {
            provoke(&mut client, stream);
        }
        flooded_by_streams(&weir, client);
    }
    assert!(count(&weir, "bad_http2_stream") <= 7 * 201);
    switch.throw();
}

#[test]
fn field_blocks_without_an_end() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    let start = block(&request("GET", "/"));
    let long = "a field block is too long";
    for (piece, count) in [(&[0; 0][..], 100), (b"\0", 100), (&[0; 16 * 1024], 100), (&[0; 1000], 9)] {
        let mut client = Client::connect(weir.address());
        client.frame(Kind::Headers, flag::END_STREAM, 1, &start);
        for _ in 0..count {
            client.frame(Kind::Continuation, 0, 1, piece);
        }
        ended(&weir, client, ErrorCode::ENHANCE_YOUR_CALM, "bad_http2", long);
    }
    assert!(upstream.requests().iter().all(|request| request.head.starts_with("GET /other ")));
}

/// One byte refers to a table entry: a long one (CVE-2016-6581), or a short one whose fields cost more than their
/// bytes.
#[test]
fn fields_that_are_references() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    let whole = flag::END_HEADERS | flag::END_STREAM;
    for length in [0, 1, 100, 4000] {
        let (mut first, mut bomb) = (block(&request("GET", "/")), block(&request("GET", "/")));
        literal(0x40, b"a", &vec![b'a'; length], &mut first);
        bomb.extend_from_slice(&[0x80 | 62; 16_000]);
        let mut client = Client::connect(weir.address());
        client.frame(Kind::Headers, whole, 1, &first);
        assert_eq!(client.response(1).text(), "ok");
        client.frame(Kind::Headers, whole, 3, &bomb);
        let detail = "a field block decompresses to far more than the limit";
        ended(&weir, client, ErrorCode::ENHANCE_YOUR_CALM, "bad_http2", detail);
        // Within the limit, the table remains in use.
        let mut client = Client::connect(weir.address());
        let (after, at) = (bomb.len() - 16_000, if length == 4000 { 20 } else { 300 });
        let mut large = bomb[..after + at].to_vec();
        large.extend_from_slice(&[]);
        client.frame(Kind::Headers, whole, 1, &first);
        client.frame(Kind::Headers, whole, 3, &large);
        assert_eq!(client.response(1).text(), "ok");
        let refused = client.response(3);
        assert_eq!((refused.status(), refused.reset), (431, None), "{length}");
        client.frame(Kind::Headers, whole, 5, &bomb[..after + 1]);
        assert_eq!(client.response(5).text(), "ok");
    }
}

/// The gateway serves other clients between the parts of such input.
#[test]
fn many_frames_within_a_budget_all_have_their_effect() {
    let server = upstream();
    let weir = gateway(&server, "", "");
    let mut client = Client::connect(weir.address());
    let payloads: Vec<[u8; 8]> = (0..3000_u64).map(u64::to_be_bytes).collect();
    for payload in &payloads {
        client.ping(*payload);
    }
    client.post(1, "/many");
    for byte in 0..900_u32 {
        client.data(1, &byte.to_be_bytes()[3..], byte == 899);
    }
    assert_eq!(client.response(1).text(), "ok");
    assert!(client.pongs == payloads, "{} of {} responses to PING", client.pongs.len(), payloads.len());
    assert_eq!(server.requests()[0].body.len(), 900);
}

#[test]
fn frames_that_need_a_response_or_have_no_effect() {
    let switch = Switch::default();
    let upstream = holding(&switch);
    let weir = gateway(&upstream, "", "");
    let no_effect = "too many frames without effect";
    let empty = "too many DATA frames of at most one byte";
    type Frame = fn(&mut Client) -> &mut Client;
    let floods: [(&str, u32, Frame); 9] = [
        ("too many SETTINGS frames", 1000, |client| client.frame(Kind::Settings, 0, 0, b"")),
        ("too many PING frames", 20_000, |client| client.ping([0; 8])),
        (no_effect, 3000, |client| client.frame(Kind::Priority, 0, 1, &[0, 0, 0, 3, 16])),
        (no_effect, 3000, |client| client.frame(Kind::Priority, 0, 99, &[0, 0, 0, 3, 16])),
        (no_effect, 3000, |client| client.frame(Kind::Unknown(0x10), 0, 0, b"u=1")),
        ("too many WINDOW_UPDATE frames", 20_000, |client| client.window_update(0, 1)),
        ("too many WINDOW_UPDATE frames", 20_000, |client| client.window_update(1, 1)),
        (empty, 3000, |client| client.data(1, b"", false)),
        (empty, 3000, |client| client.frame(Kind::Data, flag::PADDED, 1, &[3, 0, 0, 0])),
    ];
    for (detail, count, send) in floods {
        let mut client = Client::connect(weir.address());
        client.post(1, "/held");
        for _ in 0..count {
            send(&mut client);
        }
        flooded(&weir, client, detail);
    }
    switch.throw();
}
