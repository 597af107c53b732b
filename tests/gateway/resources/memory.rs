//! The limit for the connections' memory.

use super::{DEADLINE, GET, metric, poll_until};
use crate::common::{Client, Peer, Upstream, Weir};
use socket2::SockRef;
use weir_http::Method;

/// More than the kernel's buffers hold.
const LARGE: usize = 8 << 20;
const OWN: &str = "GET /own HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn at_the_cap_what_nobody_needs_goes_and_nothing_new_begins() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            let length = if request.head.starts_with("GET /large") { LARGE } else { 2 };
            peer.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}", "x".repeat(length)));
        }
    });
    let config = format!(
        "workers = 1\n[limits]\nmemory = '1MiB'\n[listener.web]\nbind = '127.0.0.1:0'\n[admin]\nbind = '127.0.0.1:0'\n\
         [service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\nresponse_buffer = '256KiB'\n\
         [[route]]\npath = '/own'\nrespond.status = 200\n\
         [[route]]\npath = '/held'\nservice = 'app'\nrequest_buffer = '16KiB'\n",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    let mut known = Client::connect(weir.address(), None);
    let held = "POST /held HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
    assert_eq!(known.ask(held).status, 200);
    assert_eq!(metric(&weir, "weir_memory_limited"), 0);
    assert!(metric(&weir, "weir_memory_bytes") < 100_000);
    let slow = |_| {
        let mut client = Client::connect(weir.address(), None);
        SockRef::from(client.stream.tcp()).set_recv_buffer_size(64 * 1024).unwrap();
        client.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
        client
    };
    let mut slow: Vec<_> = (0..8).map(slow).collect();
    poll_until(DEADLINE, "the limit is reached", || metric(&weir, "weir_memory_limited") == 1);
    assert!(metric(&weir, "weir_memory_bytes") >= 900_000);
    let mut late = Client::connect(weir.address(), None);
    late.send(OWN);
    weir.wait_for_stderr(&["weir: accept: connections have ", " limits.memory is 1048576; clients wait"]);
    let refused = known.ask(held);
    assert_eq!((refused.status, refused.text().contains("no_memory")), (503, true), "{}", refused.head);
    assert_eq!(upstream.requests().iter().filter(|request| request.head.starts_with("POST")).count(), 1);
    for client in &mut slow {
        let answer = client.answer(Method::Get);
        assert_eq!((answer.status, answer.body.len()), (200, LARGE), "what has begun goes on");
    }
    drop(slow);
    assert_eq!(late.answer(Method::Get).status, 200);
    assert_eq!(metric(&weir, "weir_memory_limited"), 0);
    assert!(metric(&weir, "weir_accept_rests_total{cause=\"memory\"}") >= 1);
    assert_eq!(late.ask(held).status, 200);
    assert_eq!(late.ask(GET).status, 200);
    let own = "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n[limits]\n";
    let why = "limits.memory: invalid value `1024`: expected 1048576 to 1099511627776";
    super::super::check::refused(&format!("{own}memory = '1KiB'\n"), why);
}
