//! The first and last bytes of a TLS connection as the peer sees them, over a Unix domain socket.

use std::os::unix::net::UnixListener;
use weir_tls::issue::{Authority, KeyKind};
use weir_tls::{Client, ClientSettings, Roots, Server, ServerSettings};
use weir_transport::{Address, End, Fault, Received, Transport, Wire};

/// Both sides after the handshake.
fn pair() -> (Transport, Transport, Wire) {
    let (mut client, mut server, mut wire) = begin();
    let mut none = Vec::new();
    // Writes to a Unix socket arrive at once, so a few turns are enough.
    for _ in 0..10 {
        server.receive(&mut wire, &mut none).unwrap();
        client.receive(&mut wire, &mut none).unwrap();
    }
    assert!(client.is_open() && server.is_open() && none.is_empty());
    (client, server, wire)
}

/// Both sides; the ClientHello is in flight.
fn begin() -> (Transport, Transport, Wire) {
    let issued = Authority::new().unwrap().issue(&["localhost"], KeyKind::EcdsaP256).unwrap();
    let server = Server::new(&ServerSettings::new(issued.identity())).unwrap().core();
    let settings = ClientSettings { roots: Roots::DangerouslyNone, ..ClientSettings::default() };
    let client = Client::new(&settings).unwrap().core();

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("server.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let session = client.connect(&"localhost".parse().unwrap());
    let mut client = Transport::connect_from(None, &Address::Unix(path), Some(session)).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let server = Transport::accepted(std::os::fd::OwnedFd::from(socket), Some(server.accept()));
    let mut wire = Wire::default();
    client.advance(&mut wire).unwrap();
    (client, server, wire)
}

/// Both sides after the server has read the client's Finished and its request at once.
fn asked() -> (Transport, Transport, Wire) {
    let (mut client, mut server, mut wire) = begin();
    let mut plaintext = Vec::new();
    client.send(b"request", &mut wire).unwrap();
    server.receive(&mut wire, &mut plaintext).unwrap();
    assert!(client.receive(&mut wire, &mut plaintext).unwrap().handshake_finished);
    let received = server.receive(&mut wire, &mut plaintext).unwrap();
    assert!(received.handshake_finished, "they came in one read");
    assert_eq!(plaintext, b"request");
    (client, server, wire)
}

#[test]
fn a_request_leaves_with_the_end_of_the_handshake_and_the_tickets_with_the_answer() {
    let (mut client, mut server, mut wire) = asked();
    let mut plaintext = Vec::new();
    assert_eq!(client.receive(&mut wire, &mut plaintext).unwrap(), Received::default(), "nothing has come");
    assert_eq!(server.pending(), 0, "nobody waits for tickets");
    server.send(b"answer", &mut wire).unwrap();
    let received = client.receive(&mut wire, &mut plaintext).unwrap();
    assert_eq!((received.bytes, &plaintext[..], client.tickets_received()), (6, &b"answer"[..], 1));
    server.send(b" and more", &mut wire).unwrap();
    client.receive(&mut wire, &mut plaintext).unwrap();
    assert_eq!((&plaintext[..], client.tickets_received()), (&b"answer and more"[..], 1));
}

#[test]
fn tickets_that_no_answer_took_along_come_before_the_end_and_before_an_alert() {
    let (mut client, mut server, mut wire) = asked();
    server.finish(&mut wire).unwrap();
    let received = client.receive(&mut wire, &mut Vec::new()).unwrap();
    assert_eq!((received.end, client.tickets_received()), (Some(End::Clean), 1));

    let (mut client, mut server, mut wire) = asked();
    let mut garbage =
        [23, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];
    assert!(server.feed(&mut garbage, &mut Vec::new(), &mut wire).is_err());
    let fault = client.receive(&mut wire, &mut Vec::new()).unwrap_err();
    assert!(fault.to_string().contains("alert"), "{fault}");
    assert_eq!(client.tickets_received(), 1);
}

/// The server's view when `end` closes the client after some data.
fn seen(end: impl FnOnce(&mut Transport, &mut Wire)) -> Result<(Vec<u8>, Received), Fault> {
    let (mut client, mut server, mut wire) = pair();
    client.send(b"last words", &mut wire).unwrap();
    end(&mut client, &mut wire);
    drop(client);
    let mut plaintext = Vec::new();
    loop {
        let received = server.receive(&mut wire, &mut plaintext)?;
        if received.end.is_some() || received.bytes == 0 {
            return Ok((plaintext, received));
        }
    }
}

#[test]
fn close_notify_makes_an_end_clean_and_fin_alone_does_not() {
    let (words, received) = seen(|client, wire| client.finish(wire).unwrap()).unwrap();
    assert_eq!((words.as_slice(), received.end), (&b"last words"[..], Some(End::Clean)));
    let (words, received) = seen(|client, _| client.finish_bare().unwrap()).unwrap();
    assert_eq!((words.as_slice(), received.end), (&b"last words"[..], Some(End::Truncated)));
}

#[test]
fn tickets_are_counted_as_they_come() {
    let (client, server, _) = pair();
    assert_eq!((client.tickets_received(), server.tickets_received()), (1, 0));
}
