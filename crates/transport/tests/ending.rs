//! Closing a TLS connection, seen from the other side; over a Unix domain socket.

use std::os::unix::net::UnixListener;
use weir_tls::issue::{Authority, KeyKind};
use weir_tls::{Client, ClientSettings, Roots, Server, ServerSettings};
use weir_transport::{Address, End, Fault, Received, Transport, Wire};

/// Two sides after their handshake.
fn pair() -> (Transport, Transport, Wire) {
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
    let mut server = Transport::accepted(std::os::fd::OwnedFd::from(socket), Some(server.accept()));

    let (mut wire, mut none) = (Wire::default(), Vec::new());
    client.advance(&mut wire).unwrap();
    // Writes to such a socket arrive at once, so a few turns are enough.
    for _ in 0..10 {
        server.receive(&mut wire, &mut none).unwrap();
        client.receive(&mut wire, &mut none).unwrap();
    }
    assert!(client.is_open() && server.is_open() && none.is_empty());
    (client, server, wire)
}

/// What the server sees when `end` closes the client after some data.
fn seen(end: impl FnOnce(&mut Transport)) -> Result<(Vec<u8>, Received), Fault> {
    let (mut client, mut server, mut wire) = pair();
    client.send(b"last words", &mut wire).unwrap();
    end(&mut client);
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
    let (words, received) = seen(|client| client.finish().unwrap()).unwrap();
    assert_eq!((words.as_slice(), received.end), (&b"last words"[..], Some(End::Clean)));
    let (words, received) = seen(|client| client.finish_bare().unwrap()).unwrap();
    assert_eq!((words.as_slice(), received.end), (&b"last words"[..], Some(End::Truncated)));
}

#[test]
fn tickets_are_counted_as_they_come() {
    let (client, server, _) = pair();
    assert_eq!((client.tickets_received(), server.tickets_received()), (1, 0));
}
