//! Handshakes: a flood does not delay other clients, and stalled ones time out.

use super::{DEADLINE, GET, metric, named, poll_until};
use crate::common::{Certificates, Client, Upstream, Weir};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use weir_tls::Session;

fn gateway(certificates: &Certificates, upstream: &Upstream, more: &str) -> Weir {
    let config = format!(
        "workers = 1\n{more}\n[listener.web]\nbind = '127.0.0.1:0'\ntls = {{}}\n[admin]\nbind = '127.0.0.1:0'\n\
         [[certificate]]\nchain = '{}'\nkey = '{}'\n\
         [service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n",
        certificates.cert.display(),
        certificates.key.display(),
        upstream.address
    );
    Weir::configured(&config, 1)
}

fn hello(mut session: Session) -> Vec<u8> {
    let mut hello = Vec::new();
    session.receive(&mut [], &mut Vec::new(), &mut hello).unwrap();
    hello
}

#[test]
fn a_flood_of_handshakes_keeps_nobody_waiting() {
    const SILENT: usize = 200;
    let (certificates, upstream) = (Certificates::new(), named("a"));
    let weir = gateway(&certificates, &upstream, "timeouts.handshake = '30s'");
    let mut warm = Client::connect(weir.address(), Some(certificates.session()));
    assert_eq!(warm.ask(GET).status, 200);
    let _silent = silent(&weir, &certificates, SILENT);
    // Handshakes whose ClientHello is complete, but which go no further.
    let _whole = whole(&weir, &certificates, SILENT);
    for _ in 0..100 {
        assert_eq!(warm.ask(GET).status, 200);
        assert_eq!(Client::connect(weir.address(), Some(certificates.session())).ask(GET).status, 200);
    }
}

#[test]
fn handshakes_that_go_nowhere_end() {
    const SILENT: usize = 20;
    let (certificates, upstream) = (Certificates::new(), named("a"));
    let weir = gateway(&certificates, &upstream, "timeouts.handshake = '500ms'");
    let _silent = silent(&weir, &certificates, SILENT);
    let _whole = whole(&weir, &certificates, SILENT);
    let ended = |reason| metric(&weir, &format!("weir_ended_early_total{{reason=\"{reason}\"}}")) as usize;
    poll_until(DEADLINE, "the silent ones are reaped", || ended("handshake_timeout") >= SILENT);
    // On a busy machine some may wait too long for their turn.
    let all = || ended("handshake_timeout") + ended("too_many_handshakes");
    poll_until(DEADLINE, "all are reaped", || all() >= 2 * SILENT);
    assert_eq!(
        (metric(&weir, "weir_handshakes_unfinished"), metric(&weir, "weir_handshakes_waiting")),
        (0, 0)
    );
    assert_eq!(metric(&weir, "weir_clients"), 0);
}

/// Clients that send nothing, or half a ClientHello.
fn silent(weir: &Weir, certificates: &Certificates, count: usize) -> Vec<TcpStream> {
    let half = hello(certificates.session());
    let begin = |nth: usize| {
        let mut stream = TcpStream::connect(weir.address()).unwrap();
        if nth.is_multiple_of(2) {
            stream.write_all(&half[..half.len() / 2]).unwrap();
        }
        stream
    };
    (0..count).map(begin).collect()
}

/// Clients that send a ClientHello and nothing more.
fn whole(weir: &Weir, certificates: &Certificates, count: usize) -> Vec<TcpStream> {
    let begin = |_| {
        let mut stream = TcpStream::connect(weir.address()).unwrap();
        stream.write_all(&hello(certificates.session())).unwrap();
        stream
    };
    (0..count).map(begin).collect()
}

#[test]
fn the_oldest_of_too_many_handshakes_is_closed() {
    let (certificates, upstream) = (Certificates::new(), named("a"));
    let weir = gateway(&certificates, &upstream, "limits.handshakes = 3\ntimeouts.handshake = '1h'");
    let mut silent: Vec<_> = (0..5).map(|_| TcpStream::connect(weir.address()).unwrap()).collect();
    weir.wait_for_stderr(&["too_many_handshakes"]);
    let refused = || metric(&weir, "weir_ended_early_total{reason=\"too_many_handshakes\"}");
    poll_until(DEADLINE, "two are closed", || refused() == 2);
    assert_eq!(metric(&weir, "weir_handshakes_unfinished"), 3);
    for (index, stream) in silent.iter_mut().enumerate() {
        if index < 2 {
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset, "{index}");
        } else {
            stream.set_nonblocking(true).unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "{index}");
        }
    }
    // A client that continues takes the place of the next one, and frees it once done.
    for _ in 0..3 {
        let mut client = Client::connect(weir.address(), Some(certificates.session()));
        assert_eq!(client.ask(GET).status, 200);
    }
    assert_eq!((refused(), metric(&weir, "weir_handshakes_unfinished")), (3, 2));
    let own = "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n[limits]\n";
    for (setting, why) in [
        ("handshakes = 0", "limits.handshakes: invalid value `0`: expected at least 1"),
        ("handshakes_per_turn = 0", "limits.handshakes_per_turn: invalid value `0`: expected 1 to 64"),
        ("handshakes_per_turn = 65", "limits.handshakes_per_turn: invalid value `65`: expected 1 to 64"),
    ] {
        super::super::check::refused(&format!("{own}{setting}\n"), why);
    }
}
