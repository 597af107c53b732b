//! A drain: GOAWAY in two steps (RFC 9113 section 6.8), so that no request is lost.

use super::{Client, gateway, holding};
use crate::common::Switch;
use crate::gateway::reload::Case;
use weir_http2::ErrorCode;
use weir_http2::frame;

const ANY: (u32, ErrorCode) = (u32::MAX >> 1, ErrorCode::NO_ERROR);

#[test]
fn requests_in_flight_and_in_transit_are_served() {
    let switch = Switch::default();
    let upstream = holding(&switch);
    let mut weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    client.acknowledges = false;
    client.get(1, "/held").post(3, "/held").data(3, b"hel", false).get(5, "/").response(5);
    upstream.wait_for_requests(2);
    weir.terminate();
    client.read_until(|client| !client.pings.is_empty());
    assert_eq!(client.go_aways, [ANY]);
    // The client did not know of the drain yet.
    assert_eq!(client.get(7, "/").response(7).text(), "ok");
    client.get(9, "/held").data(3, b"lo", true).flush();
    upstream.wait_for_requests(5);
    // Now the client knows of the drain, and has sent its last request.
    let ping = client.pings[0];
    frame::write_ping(ping, true, &mut client.out);
    client.read_until(|client| client.go_aways.len() == 2);
    assert_eq!(client.go_aways[1], (9, ErrorCode::NO_ERROR));
    // The gateway ignores a later request, and the client repeats it elsewhere.
    client.get(11, "/").post(13, "/").data(13, b"hello", true).sync();
    switch.throw();
    for stream in [1, 3, 9] {
        assert_eq!(client.response(stream).text(), "ok", "{stream}");
    }
    assert_eq!(client.end(), Some((9, ErrorCode::NO_ERROR)));
    assert_eq!(client.streams().map(|(stream, _)| stream).collect::<Vec<_>>(), [1, 3, 5, 7, 9]);
    assert_eq!(weir.exit_code(), Some(0));
    assert_eq!(upstream.requests().len(), 5);
    assert!(upstream.requests().iter().any(|request| request.body == b"hello"));
}

#[test]
fn idle_and_silent_clients_do_not_hold_up_a_drain() {
    let switch = Switch::default();
    let upstream = holding(&switch);
    let mut weir = gateway(&upstream, "", "");
    let mut idle = Client::connect(weir.address());
    assert_eq!(idle.get(1, "/").response(1).text(), "ok");
    // The client does not acknowledge the drain's PING, neither when idle nor with a request in flight.
    let mut silent: Vec<_> = (0..2).map(|_| Client::connect(weir.address())).collect();
    silent[0].get(1, "/").response(1);
    silent[1].get(1, "/held").flush();
    upstream.wait_for_requests(3);
    weir.terminate();
    assert_eq!(idle.end(), Some((1, ErrorCode::NO_ERROR)));
    assert_eq!(idle.go_aways[0], ANY);
    for client in &mut silent {
        client.acknowledges = false;
    }
    silent[1].read_until(|client| !client.go_aways.is_empty());
    switch.throw();
    assert_eq!(silent[1].response(1).text(), "ok");
    for client in &mut silent {
        assert_eq!(client.end(), Some((1, ErrorCode::NO_ERROR)));
    }
    assert_eq!(weir.exit_code(), Some(0));
}

/// A reload removes one of two listeners.
#[test]
fn clients_of_a_listener_that_is_gone_drain_alone() {
    let switch = Switch::default();
    let upstream = holding(&switch);
    let config = |listeners: &str| {
        let service = format!("[service.app]\nservers = 'http://{}'\n", upstream.address);
        format!("workers = 1\n{listeners}{service}[[route]]\nservice = 'app'\n")
    };
    let [gone, web] = [("gone", "127.0.0.2:0"), ("web", "127.0.0.1:0")]
        .map(|(name, bind)| format!("[listener.{name}]\nbind = '{bind}'\n"));
    let case = Case::listening(&config(&format!("{gone}{web}")), 2);
    let [mut client, mut idle, mut other] =
        [0, 0, 1].map(|index| Client::connect(case.weir.address_of(index)));
    for client in [&mut idle, &mut other] {
        client.get(1, "/").response(1);
    }
    client.get(1, "/held").get(3, "/").response(3);
    upstream.wait_for_requests(4);
    case.take(&config(&web));
    client.read_until(|client| client.go_aways.len() == 2);
    assert_eq!(client.go_aways, [ANY, (3, ErrorCode::NO_ERROR)]);
    assert_eq!(idle.end(), Some((1, ErrorCode::NO_ERROR)));
    assert_eq!(other.get(3, "/").response(3).text(), "ok");
    switch.throw();
    assert_eq!(client.response(1).text(), "ok");
    assert_eq!(client.end(), Some((3, ErrorCode::NO_ERROR)));
    assert_eq!(other.get(5, "/").response(5).text(), "ok");
    assert!(other.go_aways.is_empty(), "its listener goes on");
}

/// Until a client knows that its listener was removed, its requests use the old routes.
#[test]
fn late_requests_take_the_routes_of_the_listener_that_is_gone() {
    let switch = Switch::default();
    let upstream = holding(&switch);
    let config = |listeners: &str, routes: &str| {
        let service = format!("[service.app]\nservers = 'http://{}'\n", upstream.address);
        format!("workers = 1\n{listeners}{routes}{service}[[route]]\nservice = 'app'\n")
    };
    let (gone, web) = ("[listener.gone]\nbind = '127.0.0.2:0'\n", "[listener.web]\nbind = '127.0.0.1:0'\n");
    let denied =
        "[[route]]\nlistener = 'gone'\npath = '/secret'\nrespond = { status = 403, body = 'denied' }\n";
    let case = Case::listening(&config(&format!("{gone}{web}"), denied), 2);
    let mut client = Client::connect(case.weir.address_of(0));
    client.acknowledges = false;
    client.get(1, "/held").flush();
    upstream.wait_for_requests(1);
    case.take(&config(web, ""));
    client.read_until(|client| !client.pings.is_empty());
    let late = client.get(3, "/secret").response(3);
    assert_eq!((late.status(), late.text()), (403, "denied"));
    switch.throw();
    assert_eq!(client.response(1).text(), "ok");
}

/// A client that opens streams without acknowledging the PING cannot keep its listener's routes indefinitely.
#[test]
fn a_client_that_does_not_stop_is_stopped() {
    let switch = Switch::default();
    let upstream = holding(&switch);
    let mut weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    client.acknowledges = false;
    client.get(1, "/held").flush();
    upstream.wait_for_requests(1);
    weir.terminate();
    client.read_until(|client| !client.pings.is_empty());
    let late = (3..).step_by(2).take(1000);
    for stream in late {
        assert_eq!(client.get(stream, "/").response(stream).text(), "ok", "{stream}");
    }
    client.read_until(|client| client.go_aways.len() == 2);
    assert_eq!(client.go_aways[1], (2001, ErrorCode::NO_ERROR));
    switch.throw();
    assert_eq!(client.response(1).text(), "ok");
    assert_eq!(client.end(), Some((2001, ErrorCode::NO_ERROR)));
    assert_eq!(weir.exit_code(), Some(0));
}

/// Regression test: at the end of a drain, requests without a response were reset.
#[test]
fn a_drain_ends_in_time() {
    let switch = Switch::default();
    let upstream = holding(&switch);
    let mut weir = gateway(&upstream, "", "[timeouts]\ndrain = '300ms'");
    let mut client = Client::connect(weir.address());
    client.get(1, "/held").flush();
    upstream.wait_for_requests(1);
    weir.terminate();
    let late = client.response(1);
    assert!(late.status() == 503 && late.text().contains("drain_timeout"), "{late:?}");
    assert!(client.end().is_some());
    assert_eq!(weir.exit_code(), Some(0));
    switch.throw();
}

/// A client that sends GOAWAY still gets its responses.
#[test]
fn a_client_that_drains_has_its_responses() {
    let switch = Switch::default();
    let upstream = holding(&switch);
    let weir = gateway(&upstream, "", "");
    let mut client = Client::connect(weir.address());
    client.get(1, "/held").flush();
    upstream.wait_for_requests(1);
    frame::write_go_away(0, ErrorCode::NO_ERROR, &mut client.out);
    client.sync();
    switch.throw();
    assert_eq!(client.response(1).text(), "ok");
}
