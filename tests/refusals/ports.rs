//! Connections with the wrong protocol for the port.

use super::refused::{GET, OK, refusal};
use crate::common::{Case, Certificates, Client, MODES, Stream, Weir};
use std::net::TcpStream;

#[test]
fn tls_on_a_cleartext_port_is_400_in_cleartext() {
    let case = Case::answering(MODES[0], OK);
    let certificates = Certificates::new();
    let mut hello = Vec::new();
    certificates.session().receive(&mut [], &mut Vec::new(), &mut hello).unwrap();
    let mut client = case.client();
    client.send(&hello);
    let (status, body) = refusal(&mut client, "TLS");
    assert!(status == 400 && body.contains("tls_on_cleartext"), "{body}");
    assert_eq!(case.client().ask(GET).text(), "ok");
    assert_eq!(case.upstream.requests().len(), 1);
    case.stop();
}

/// A connection without TLS to a TLS port.
fn raw(weir: &Weir) -> Client {
    Client { stream: Stream::over(TcpStream::connect(weir.address()).unwrap(), None).unwrap() }
}

#[test]
fn cleartext_on_a_tls_port_is_400_in_cleartext() {
    for mode in MODES.into_iter().filter(|mode| mode.client_tls) {
        let case = Case::answering(mode, OK);
        for request in [GET, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "G"] {
            let mut client = raw(&case.weir);
            client.send(request);
            let (status, body) = refusal(&mut client, request);
            assert!(status == 400 && body.contains("not_tls"), "{mode:?} {request:?}: {body}");
        }
        assert_eq!(case.upstream.connections(), 0, "{mode:?}");
        assert_eq!(case.client().ask(GET).text(), "ok", "{mode:?}");
        case.stop();
    }
}

/// Pseudo-random bytes, the same in every run.
fn garbage(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn garbage_on_any_port_closes_only_its_connection() {
    for mode in MODES {
        let case = Case::answering(mode, OK);
        // After a valid handshake, a record that does not decrypt.
        if mode.client_tls {
            let mut stream = case.connect().unwrap();
            stream.send(b"GET / HT").unwrap();
            let mut tcp = stream.tcp().try_clone().unwrap();
            std::io::Write::write_all(
                &mut tcp,
                &[23, 3, 3, 0, 30, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
            )
            .unwrap();
            std::io::Write::write_all(&mut tcp, &[0; 20]).unwrap();
            case.weir.wait_for_stderr(&["client_tls", "cannot decrypt a record"]);
        }
        for seed in 0..60 {
            let mut bytes = garbage(seed * 7919, 1 + seed as usize * 37);
            match seed % 4 {
                // Looks like a handshake record.
                0 if bytes.len() > 5 => bytes[..5].copy_from_slice(&[22, 3, 1, 0, 32]),
                // Looks like an alert or a change of ciphers.
                1 if bytes.len() > 5 => bytes[..5].copy_from_slice(&[20 + (seed % 2) as u8, 3, 3, 0, 2]),
                _ => {}
            }
            let mut client = raw(&case.weir);
            client.send(&bytes);
            // The expected bytes never arrive.
            client.stream.finish_tcp();
            let (answer, _) = client.read_to_end();
            let text = String::from_utf8_lossy(&answer);
            // An alert (21), an error response, or nothing.
            assert!(
                answer.is_empty() || answer[0] == 21 || text.starts_with("HTTP/1.1 "),
                "{mode:?} {seed}: {text:?}"
            );
        }
        assert_eq!(case.client().ask(GET).text(), "ok", "{mode:?}");
        assert_eq!(case.upstream.requests().len(), 1, "{mode:?}");
        case.stop();
    }
}
