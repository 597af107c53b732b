//! Calls that the server does not end: the gateway's own statuses, deadlines, and clients that give up.

use super::client::Calls;
use super::{Behind, each, run};
use crate::common::Weir;
use bytes::Bytes;
use std::time::Duration;
use tonic::{Code, Request};

const MESSAGE: Bytes = Bytes::from_static(b"hello");

#[test]
fn statuses_of_the_gateway() {
    let origin = Weir::start(&["origin", "--listen", "http://127.0.0.1:0"]);
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n\
         [service.dead]\nservers = 'http://127.0.0.1:1'\nhttp2 = true\n\
         [service.app]\nservers = '{}'\nhttp2 = true\n\
         [[route]]\npath = '/dead.S/*'\nservice = 'dead'\n\
         [[route]]\npath = '/closed.S/*'\nrespond = {{ status = 403 }}\n\
         [[route]]\npath = '/weir.Echo/Client'\nservice = 'app'\nmax_body = 100\n\
         [[route]]\npath = '/weir.Echo/*'\nservice = 'app'\ntimeouts.exchange = '100ms'\n",
        origin.urls[0]
    );
    let weir = Weir::configured(&config, 1);
    run(async {
        let mut calls = Calls::connect(weir.address(), None).await;
        for (path, code, words) in [
            ("/dead.S/M", Code::Unavailable, "502 Bad Gateway: upstream_connect"),
            ("/none.S/M", Code::Unimplemented, "404 Not Found"),
            ("/closed.S/M", Code::PermissionDenied, "403 Forbidden"),
            ("/weir.Echo/Unary?delay_ms=60000", Code::DeadlineExceeded, "504 Gateway Timeout"),
        ] {
            let status = calls.unary(path, MESSAGE).await.unwrap_err();
            assert_eq!(status.code(), code, "{path}: {status}");
            assert!(status.message().starts_with(words), "{path}: {status}");
        }
        // The call ends after the head, since it has more messages than the server can have read.
        let messages = tokio_stream::iter(std::iter::repeat_n(MESSAGE, 1000));
        let status = calls.upload("/weir.Echo/Client", messages).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
        // The connection still serves calls.
        assert_eq!(calls.unary("/weir.Echo/Unary", MESSAGE).await.unwrap().get_ref(), &MESSAGE);
    });
    assert_eq!(weir.stop().code, Some(0));
}

/// The client's timer and the gateway's, from `grpc-timeout`, race; either one ends the server's stream.
#[test]
fn deadlines() {
    each(async |calls, behind| {
        for number in 1..=5 {
            let mut request = Request::new(MESSAGE);
            request.set_timeout(Duration::from_millis(100));
            let status = calls.unary("/weir.Echo/Unary?delay_ms=60000", request).await.unwrap_err();
            // tonic reports the expiry of its own timer as a cancellation.
            let is_late = matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded);
            assert!(is_late, "{status}");
            until_ended(behind, number).await;
        }
        let mut request = Request::new(MESSAGE);
        request.set_timeout(Duration::from_secs(60));
        let response = calls.unary("/weir.Echo/Unary", request).await.unwrap();
        assert_eq!(response.get_ref(), &MESSAGE);
    });
}

/// A response that never ends, dropped by the client.
#[test]
fn clients_abandon_calls() {
    each(async |calls, behind| {
        for number in 1..=5 {
            let path = "/weir.Echo/Server?messages=1000000";
            let mut messages = calls.download(path, Bytes::from(vec![b'x'; 10_000])).await.unwrap();
            for _ in 0..3 {
                assert_eq!(messages.message().await.unwrap().unwrap().len(), 10_000);
            }
            drop(messages);
            // The connection still serves calls.
            assert_eq!(calls.unary("/weir.Echo/Unary", MESSAGE).await.unwrap().get_ref(), &MESSAGE);
            until_ended(behind, number).await;
        }
    });
}

/// Polls, within the deadline of [`run`], until the gateway has logged this many calls that ended early, all because of
/// the client.
async fn until_ended(behind: &Behind, number: usize) {
    loop {
        let stderr = behind.weir.stderr();
        let mut reasons = stderr.lines().map(|line| line.split(' ').nth(2).unwrap_or_default());
        assert!(reasons.all(|reason| ["client_reset", "exchange_timeout"].contains(&reason)), "{stderr}");
        if stderr.lines().count() == number {
            return;
        }
        // Meanwhile the client's connection needs this thread.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
