//! A request and its answer in each of the four modes.

mod common;

use common::{Case, MODES};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn a_request_is_answered_and_the_connections_are_kept_on_both_sides() {
    for mode in MODES {
        let case = Case::answering(mode, OK);
        let mut client = case.client();
        for _ in 0..3 {
            let answer = client.ask("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!(
                (answer.status, answer.text(), answer.says_close()),
                (200, "hello", false),
                "{mode:?}"
            );
        }
        drop(client);
        assert_eq!((case.upstream.connections(), case.upstream.requests().len()), (1, 3), "{mode:?}");
        let ended = case.stop();
        assert!(ended.stdout.contains("served 3 requests on 1 connections"), "{mode:?}: {}", ended.stdout);
    }
}
