//! Request bodies: buffered, padded, kept for another attempt, or queued.

use super::client::Upload;
use super::fields::request;
use super::{Client, gateway};
use crate::common::{Peer, Switch, Upstream, Weir, pattern};
use crate::gateway::reload::Case;
use weir_http2::ErrorCode;
use weir_http2::frame::{Kind, flag};

#[test]
fn a_buffered_body_reaches_a_server_whole() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            let body = request.body.len().to_string();
            peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        }
    });
    let weir = gateway(&upstream, "request_buffer = '64KiB'\nrequest_trailers = 'X-Sum'", "");
    let mut client = Client::connect(weir.address());
    let body = pattern(50_000);
    client.post(1, "/").data(1, &body[..40_000], false).sync();
    assert_eq!(upstream.connections(), 0);
    client.data(1, &body[40_000..], false).headers(1, &[(b"x-sum", b"7")], true);
    assert_eq!(client.response(1).text(), "50000");
    let first = upstream.requests()[0].clone();
    // The length of a buffered body without trailers is known.
    assert!(first.body == body && first.raw_body.ends_with(b"\r\n0\r\nx-sum: 7\r\n\r\n"), "{}", first.head);
    // Only the end arrives.
    client.post(3, "/").data(3, &body[..10], false).sync();
    client.data(3, b"", true);
    assert_eq!(client.response(3).text(), "10");
    // Bodies larger than the buffer, within the stream's window and beyond it.
    let large = pattern(300_000);
    client.post(5, "/").read_until(|client| client.updates.contains_key(&0));
    client.upload(5, &large, &mut Upload::default());
    assert_eq!(client.response(5).text(), "300000");
    assert_eq!(upstream.requests()[2].body, large);
    // A request whose client disconnects within the body does not reach a server.
    client.post(7, "/").data(7, &body[..10], false).reset(7, ErrorCode::CANCEL).sync();
    assert_eq!(upstream.requests().len(), 3);
    weir.wait_for_stderr(&[" client_reset "]);
}

#[test]
fn a_buffered_body_follows_its_request_to_another_service() {
    let (old, next) = (super::upstream(), super::upstream());
    let to = |service: &str, upstream: &Upstream| {
        format!(
            "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.{service}]\nservers = 'http://{}'\n\
             [[route]]\nservice = '{service}'\nrequest_buffer = '64KiB'\n",
            upstream.address
        )
    };
    let case = Case::new(&to("old", &old));
    let mut client = Client::connect(case.weir.address());
    client.post(1, "/").data(1, b"hello ", false).sync();
    case.take(&to("next", &next));
    client.data(1, b"world", true);
    assert_eq!(client.response(1).status(), 200);
    assert_eq!((old.connections(), &*next.requests()[0].body), (0, &b"hello world"[..]));
}

/// Regression test: a server responded after all bytes announced by Content-Length, and the gateway reset the stream at
/// once. httpx then fails, since it sends END_STREAM in a separate frame.
#[test]
fn a_stream_waits_for_its_end_when_the_response_is_complete() {
    let upstream = super::upstream();
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    let request = [&request("POST", "/")[..], &[(b"content-length", b"5")]].concat();
    let ends: [fn(&mut Client, u32) -> &mut Client; 3] = [
        |client, stream| client.data(stream, b"", true),
        |client, stream| client.headers(stream, &[(b"x-sum", b"7")], true),
        |client, stream| client.reset(stream, ErrorCode::CANCEL),
    ];
    for (stream, end) in [1, 3, 5].into_iter().zip(ends) {
        client.headers(stream, &request, false).data(stream, b"hello", false);
        client.read_until(|client| client.get_stream(stream).ended).sync();
        let response = client.get_stream(stream);
        assert_eq!((response.text(), response.reset), ("ok", None), "{stream}");
        assert_eq!(end(&mut client, stream).sync().get_stream(stream).reset, None, "{stream}");
    }
    // A drain does not wait for these streams.
    let ended = weir.stop();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_gateway_asks_for_a_body_that_it_buffers() {
    let upstream = super::upstream();
    let weir = gateway(&upstream, "request_buffer = '64KiB'", "");
    let mut client = Client::connect(weir.address());
    let waiting = [&request("POST", "/")[..], &[(b"content-length", b"5"), (b"expect", b"100-continue")]];
    client.headers(1, &waiting.concat(), false);
    client.read_until(|client| !client.get_stream(1).interim.is_empty());
    assert_eq!(
        (client.get_stream(1).interim, upstream.connections()),
        (vec![":status: 100\r\n".to_owned()], 0)
    );
    assert_eq!(client.data(1, b"hello", true).response(1).text(), "ok");
    assert!(!upstream.requests()[0].head.contains("xpect"));
}

/// Padding counts for the windows, and the gateway returns it.
#[test]
fn a_padded_body_arrives_without_its_padding() {
    let upstream = super::upstream();
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    let body = pattern(200_000);
    for (stream, padding) in [(1, 255), (3, 1)] {
        client.post(stream, "/").sync();
        client.upload(stream, &body, &mut Upload { padding, ..Upload::default() });
        assert_eq!(client.response(stream).text(), "ok");
    }
    // A frame that contains only padding.
    client.post(5, "/").frame(Kind::Data, flag::PADDED, 5, &[3, 0, 0, 0]).data(5, b"hello", false);
    client.frame(Kind::Data, flag::PADDED | flag::END_STREAM, 5, &[0]);
    assert_eq!(client.response(5).text(), "ok");
    let bodies: Vec<_> = upstream.requests().iter().map(|request| request.body.clone()).collect();
    assert!(bodies == [&body[..], &body, b"hello"]);
}

/// Request bytes that a server did not get must not be taken for the next request's.
#[test]
fn a_connection_with_half_a_request_is_not_used_again() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        while peer.head().is_some() {
            peer.answer(super::OK);
            let mut body = Vec::new();
            while peer.index == 0 && body.len() < 100 {
                if peer.stream.receive(&mut body).is_some() {
                    return;
                }
            }
        }
    });
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    let announced = [&request("POST", "/")[..], &[(b"content-length", b"100")]].concat();
    client.headers(1, &announced, false).data(1, b"hello", false);
    assert_eq!(client.response(1).text(), "ok");
    assert_eq!(client.get(3, "/").response(3).text(), "ok");
    assert_eq!(upstream.connections(), 2);
    client.read_until(|client| client.get_stream(1).reset.is_some());
    assert_eq!(client.get_stream(1).reset, Some(ErrorCode::NO_ERROR));
    // The remaining body was in transit.
    client.data(1, &[0; 95], true).get(5, "/");
    assert_eq!(client.response(5).text(), "ok");
}

#[test]
fn streams_beyond_the_limit_are_refused_and_may_be_repeated() {
    let switch = Switch::default();
    let held = switch.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        while peer.request().is_some() {
            held.wait();
            peer.answer(super::OK);
        }
    });
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    for stream in (1..=299).step_by(2) {
        client.post(stream, "/").data(stream, b"hello", true);
    }
    for stream in (201..=299).step_by(2) {
        assert_eq!(client.response(stream).reset, Some(ErrorCode::REFUSED_STREAM), "{stream}");
    }
    switch.throw();
    for stream in (1..=199).step_by(2) {
        assert_eq!(client.response(stream).text(), "ok", "{stream}");
    }
    assert_eq!(client.get(301, "/").response(301).text(), "ok");
    assert_eq!(upstream.requests().len(), 101);
}

#[test]
fn streams_wait_for_a_connection_with_their_bodies() {
    let switch = Switch::default();
    let held = switch.clone();
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            held.wait();
            let body = request.body.len().to_string();
            peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        }
    });
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\nmax_connections = 1\n\
         max_waiting = 8\n[[route]]\nservice = 'app'\n",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    let mut client = Client::connect(weir.address());
    let body = pattern(60_000);
    for stream in (1..=17).step_by(2) {
        client.post(stream, "/").data(stream, &body[..stream as usize * 1000], true);
    }
    // The queue is full.
    let refused = client.get(19, "/").response(19);
    assert!(refused.status() == 503 && refused.text().contains("queue_full"), "{refused:?}");
    // One of the waiting requests is canceled.
    client.reset(5, ErrorCode::CANCEL).flush();
    weir.wait_for_stderr(&[" client_reset "]);
    switch.throw();
    for stream in (1..=17).step_by(2).filter(|stream| *stream != 5) {
        assert_eq!(client.response(stream).text(), (stream * 1000).to_string());
    }
    assert_eq!((upstream.connections(), upstream.requests().len()), (1, 8));
    let sizes: Vec<_> = upstream.requests().iter().map(|request| request.body.len()).collect();
    assert!(upstream.requests().iter().all(|request| body.starts_with(&request.body)), "{sizes:?}");
}

/// A pooled connection closes during a request, and the request with its body goes to a new one.
#[test]
fn requests_on_stale_connections_are_repeated_with_their_bodies() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        peer.request();
        peer.answer(super::OK);
        if peer.index > 0 {
            peer.serve(super::OK);
        }
        // The next request arrives, and the connection closes without a response.
        peer.request();
    });
    let weir = gateway(&upstream, "request_trailers = 'X-Sum'", "");
    let mut client = Client::connect(weir.address());
    assert_eq!(client.get(1, "/").response(1).text(), "ok");
    let body = pattern(5000);
    client.headers(3, &request("PUT", "/a"), false).data(3, &body, false).headers(
        3,
        &[(b"x-sum", b"7")],
        true,
    );
    assert_eq!(client.response(3).text(), "ok");
    let requests = upstream.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!((requests[1].connection, requests[2].connection), (0, 1));
    assert_eq!(
        (&requests[1].body, &requests[1].raw_body, &requests[1].head),
        (&body, &requests[2].raw_body, &requests[2].head)
    );
    assert!(requests[2].raw_body.ends_with(b"x-sum: 7\r\n\r\n"));
}

#[test]
fn a_retry_on_another_server_has_the_body() {
    let failing = Upstream::start(None, |peer: &mut Peer| {
        peer.serve("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
    });
    let working = super::upstream();
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = ['http://{}', 'http://{}']\n\
         [[route]]\nservice = 'app'\nretry.on = [503]\n",
        failing.address, working.address
    );
    let weir = Weir::configured(&config, 1);
    let mut client = Client::connect(weir.address());
    let body = pattern(5000);
    for stream in (1..20).step_by(2) {
        client.headers(stream, &request("PUT", "/"), false).data(stream, &body, true);
        assert_eq!(client.response(stream).text(), "ok");
    }
    assert_eq!(working.requests().len(), 10);
    assert!(!failing.requests().is_empty() && working.requests().iter().all(|request| request.body == body));
}
