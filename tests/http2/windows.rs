//! Flow control: each window limits only its own stream or connection.

use super::client::Upload;
use super::fields::request;
use super::{Client, gateway};
use crate::common::{Peer, Switch, Upstream, pattern};
use weir_http2::ErrorCode;
use weir_http2::frame::Kind;

pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(super) const LARGEST: u32 = u32::MAX >> 1;
pub(super) const BIG: usize = 1 << 20;
/// The size of a response that the gateway stores whole, so that its exchange ends before the client has read it.
const STORED: usize = 50_000;

/// Responds to `/big` with [`BIG`] bytes, to `/stored` with [`STORED`], and to other requests with the length of the
/// body.
fn serve(peer: &mut Peer) {
    while let Some(request) = peer.request() {
        let body = match request.head.split(' ').nth(1) {
            Some("/big") => pattern(BIG),
            Some("/stored") => pattern(STORED),
            _ => request.body.len().to_string().into_bytes(),
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        peer.answer([head.as_bytes(), &body].concat());
    }
}

pub(super) fn upstream() -> Upstream {
    Upstream::start(None, serve)
}

#[test]
fn a_stream_without_a_window_stalls_alone() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    let mut client = Client::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    client.get(1, "/big").get(3, "/big").window_update(3, LARGEST);
    assert_eq!(client.response(3).body, pattern(BIG));
    let stalled = client.sync().get_stream(1);
    assert_eq!((stalled.status(), stalled.frames, stalled.ended), (200, 0, false));
    client.window_update(1, LARGEST);
    assert_eq!(client.response(1).body, pattern(BIG));
}

/// A window may become negative (RFC 9113 section 6.9.2).
#[test]
fn settings_change_the_windows_of_open_streams() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    let mut client = Client::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, 1000)]);
    client.credits = false;
    client.get(1, "/big").read_until(|client| client.get_stream(1).body.len() == 1000);
    let set = |client: &mut Client, size: u32| {
        let [a, b, c, d] = size.to_be_bytes();
        client.frame(Kind::Settings, 0, 0, &[0, 4, a, b, c, d]);
    };
    set(&mut client, 0);
    client.window_update(1, 1000).sync();
    assert_eq!(client.get_stream(1).body.len(), 1000, "the window is 0");
    client.window_update(1, 1).read_until(|client| client.get_stream(1).body.len() == 1001);
    set(&mut client, 10);
    client.read_until(|client| client.get_stream(1).body.len() == 1011);
    client.credits = true;
    set(&mut client, LARGEST - 2000);
    assert_eq!(client.response(1).body, pattern(BIG));
}

#[test]
fn windows_of_one_byte_lose_nothing() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    let mut client = Client::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    client.credits = false;
    client.get(1, "/big");
    for length in 1..=500 {
        client.window_update(1, 1).read_until(|client| client.get_stream(1).body.len() == length);
    }
    client.credits = true;
    client.window_update(1, LARGEST - 10);
    assert_eq!(client.response(1).body, pattern(BIG));
}

#[test]
fn the_window_of_the_connection_holds_all_streams() {
    let upstream = upstream();
    let weir = gateway(&upstream, "", "");
    let mut client = Client::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, LARGEST)]);
    client.credits = false;
    client.get(1, "/big").get(3, "/big").get(5, "/small");
    let sum = |client: &Client| client.streams().map(|(_, stream)| stream.body.len()).sum::<usize>();
    client.read_until(|client| sum(client) == 65_535).sync();
    assert_eq!(sum(&client), 65_535);
    client.window_update(0, LARGEST - 65_535);
    assert_eq!(client.response(1).body, pattern(BIG));
    assert_eq!(client.response(3).body, pattern(BIG));
    assert_eq!(client.response(5).text(), "0");
}

/// Regression test: bytes that exceeded the connection's room were not sent if the socket had accepted all others at
/// once.
#[test]
fn output_goes_on_without_an_event() {
    let upstream = upstream();
    let weir = gateway(&upstream, "response_buffer = '1MiB'", "");
    let mut client = Client::with_settings(weir.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    client.credits = false;
    client.get(1, "/big").get(3, "/big").window_update(0, LARGEST - 65_535);
    client
        .read_until(|client| client.get_stream(1).status() == 200 && client.get_stream(3).status() == 200)
        .sync();
    client.window_update(1, LARGEST).window_update(3, LARGEST);
    assert_eq!(client.response(1).body, pattern(BIG));
    assert_eq!(client.response(3).body, pattern(BIG));
}

#[test]
fn an_upload_that_the_server_does_not_take_stalls_alone() {
    let switch = Switch::default();
    let held = switch.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        let Some((head, _)) = peer.head() else { return };
        if head.contains(" /held ") {
            held.wait();
        }
        // The head was read before, so only its body is left.
        let mut body = Vec::new();
        while body.len() < BIG {
            if peer.stream.receive(&mut body).is_some() {
                return;
            }
        }
        assert_eq!(body, pattern(BIG));
        peer.answer(super::OK);
    });
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    let length = BIG.to_string();
    for (stream, path) in [(1, "/held"), (3, "/free")] {
        client.headers(
            stream,
            &[&request("POST", path)[..], &[(b"content-length", length.as_bytes())]].concat(),
            false,
        );
    }
    let body = pattern(BIG);
    let (mut held, mut free) = (Upload::default(), Upload::default());
    // The client acknowledges the gateway's settings and knows their window.
    client.sync();
    while free.body < BIG {
        client.upload_some(1, &body, &mut held).upload_some(3, &body, &mut free);
        if free.body < BIG {
            let before = client.updates.clone();
            client.read_until(|client| client.updates != before);
        }
    }
    assert_eq!(client.response(3).text(), "ok");
    assert!(!client.get_stream(1).is_over());
    switch.throw();
    assert_eq!(client.upload(1, &body, &mut held).response(1).text(), "ok");
}

#[test]
fn data_beyond_a_window_ends_the_stream() {
    let switch = Switch::default();
    let held = switch.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        peer.head();
        held.wait();
    });
    let weir = gateway(&upstream, "", "[service.other]\nservers = 'http://127.0.0.1:9'");
    let mut client = Client::connect(weir.address());
    client.post(1, "/");
    // More than the windows and the buffers of kernel and gateway hold.
    for _ in 0..2000 {
        client.data(1, &[0; 16 * 1024], false);
    }
    let ended = client.response(1);
    assert_eq!(ended.reset, Some(ErrorCode::FLOW_CONTROL_ERROR));
    weir.wait_for_stderr(&[" bad_http2_stream ", "the peer exceeds the stream's window"]);
    switch.throw();
}
