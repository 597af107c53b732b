//! Clients that store their TLS sessions.

use super::{Client, Stream};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use weir_tls::{Client as TlsClient, ClientSettings, Connector, Offer, Roots, Version};

/// A client that trusts this CA, offers these versions (empty: all), and resumes sessions.
pub fn connector(ca: &Path, versions: &[Version]) -> Connector {
    let Offer { versions, suites, groups } =
        Offer { versions: versions.to_vec(), ..Offer::default() }.complete();
    let roots = Roots::File(ca.to_owned());
    let settings = ClientSettings { roots, versions, suites, groups, ..ClientSettings::default() };
    TlsClient::new(&settings).unwrap().core()
}

/// Connects to 127.0.0.1. Errors: the handshake failed, for example because the CA is not trusted.
pub fn connect(address: SocketAddr, connector: &Connector) -> io::Result<Client> {
    let session = connector.connect(&"127.0.0.1".parse().unwrap());
    Ok(Client { stream: Stream::connect(address, Some(session))? })
}

/// Whether the connection resumed a session.
pub fn is_resumed(client: &mut Client) -> bool {
    client.stream.session().and_then(|session| session.facts()).unwrap().kind.is_resumption()
}

/// Sends a request on a new connection, and reads the response and with it the tickets. Returns whether the connection
/// resumed a session.
pub fn resumes(address: SocketAddr, connector: &Connector) -> bool {
    let mut client = connect(address, connector).unwrap();
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    is_resumed(&mut client)
}
