//! Requests on a reused connection that its server closes before responding.

use super::scripts::{GET, OK};
use crate::common::{Case, MODES, Mode, pattern};

/// An upstream whose first connection responds once and closes on the second request; further connections respond to
/// every request or, with `always`, behave like the first.
fn closing(mode: Mode, always: bool) -> Case {
    Case::new(mode, &[], move |peer| {
        peer.request();
        peer.answer(OK);
        if always || peer.index == 0 {
            // The request has arrived, and the connection closes without a response.
            peer.request();
            peer.stream.finish();
            peer.read_to_end();
        } else {
            peer.serve(OK);
        }
    })
}

#[test]
fn an_idempotent_request_is_sent_again_on_a_new_connection() {
    let body = pattern(3000);
    let put = |framing: &str, body: &[u8]| {
        [format!("PUT /again HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n").as_bytes(), body].concat()
    };
    let chunked = [b"bb8\r\n", &body[..], b"\r\n0\r\n\r\n"].concat();
    for mode in MODES {
        for request in [
            GET.as_bytes().to_vec(),
            put("Content-Length: 3000", &body),
            put("Transfer-Encoding: chunked", &chunked),
        ] {
            let case = closing(mode, false);
            let mut client = case.client();
            assert_eq!(client.ask(GET).text(), "ok", "{mode:?}");
            assert_eq!(client.ask(&request).text(), "ok", "{mode:?}");
            assert_eq!(case.upstream.connections(), 2, "{mode:?}");
            let requests = case.upstream.requests().clone();
            let [_, first, second] = &requests[..] else { panic!("{mode:?}: {requests:?}") };
            assert_eq!((&first.head, &first.body), (&second.head, &second.body), "{mode:?}");
            assert_eq!(client.ask(GET).text(), "ok", "{mode:?}: the connection goes on");
            drop(client);
            let ended = case.stop();
            assert!(ended.stdout.contains("retries: 1;"), "{mode:?}: {}", ended.stdout);
            assert!(ended.stdout.contains("ended early: none"), "{mode:?}: {}", ended.stdout);
        }
    }
}

#[test]
fn a_request_that_may_have_had_an_effect_is_not_sent_again() {
    for mode in MODES {
        let case = closing(mode, false);
        let mut client = case.client();
        assert_eq!(client.ask(GET).text(), "ok", "{mode:?}");
        let answer = client.ask("POST /once HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nok");
        assert_eq!(answer.status, 502, "{mode:?}");
        assert!(answer.text().contains("upstream_closed"), "{mode:?}");
        let requests = case.upstream.requests().clone();
        assert_eq!(requests.iter().filter(|request| request.head.contains("/once")).count(), 1, "{mode:?}");
        drop(client);
        case.stop();
    }
}

#[test]
fn a_long_body_is_not_kept_for_a_second_attempt() {
    let case = closing(MODES[0], false);
    let mut client = case.client();
    assert_eq!(client.ask(GET).text(), "ok");
    let body = pattern(100_000);
    let put = format!("PUT /long HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len());
    assert_eq!(client.ask([put.as_bytes(), &body].concat()).status, 502);
    assert_eq!(case.upstream.connections(), 1);
    drop(client);
    case.stop();
}

#[test]
fn a_request_on_a_new_connection_is_not_sent_again() {
    let case = Case::new(MODES[0], &[], |peer| {
        peer.request();
        peer.stream.finish();
        peer.read_to_end();
    });
    let mut client = case.client();
    let answer = client.ask(GET);
    assert!(answer.status == 502 && answer.text().contains("upstream_closed"), "{}", answer.text());
    assert_eq!(case.upstream.connections(), 1);
    drop(client);
    case.stop();
}

#[test]
fn an_answer_that_has_begun_is_not_asked_for_again() {
    for mode in MODES {
        let case = Case::new(mode, &[], |peer| {
            peer.request();
            peer.answer(OK);
            peer.request();
            peer.answer("HTTP/1.1 2");
            peer.stream.finish();
            peer.read_to_end();
        });
        let mut client = case.client();
        assert_eq!(client.ask(GET).text(), "ok", "{mode:?}");
        let answer = client.ask(GET);
        assert!(answer.status == 502 && answer.text().contains("upstream_truncated"), "{mode:?}");
        assert_eq!(case.upstream.connections(), 1, "{mode:?}");
        drop(client);
        case.stop();
    }
}
