//! TLS settings of the gateway and its peers.

use std::sync::OnceLock;
use weir_tls::issue::{Authority, KeyKind, issue};
use weir_tls::{Client, ClientSettings, Group, PeerName, Roots, ServerSettings, Session};

/// A client's session with the gateway or, with `passes`, with the origin after a passthrough.
pub(crate) fn client_session(passes: bool) -> Session {
    let name = if passes { PASSED.parse().expect("a valid name") } else { name() };
    client().core().connect(&name)
}

/// The session of a client that offers only HTTP/2.
pub(crate) fn h2_session() -> Session {
    h2_client().core().connect(&name())
}

/// An origin's session with the gateway.
pub(crate) fn server_session() -> Session {
    server().core().accept()
}

/// The session of an HTTP/2 origin.
pub(crate) fn h2_server_session() -> Session {
    h2_server().core().accept()
}

/// The server name of the gateway and of origins.
pub(crate) fn name() -> PeerName {
    NAME.parse().expect("a valid name")
}

/// The server settings of the gateway and of origins.
pub(crate) fn server() -> &'static weir_tls::Server {
    static SERVER: OnceLock<weir_tls::Server> = OnceLock::new();
    SERVER.get_or_init(|| server_with(&[]))
}

/// As [`server`], for clients that may offer HTTP/2.
pub(crate) fn h2_server() -> &'static weir_tls::Server {
    static SERVER: OnceLock<weir_tls::Server> = OnceLock::new();
    SERVER.get_or_init(|| server_with(&[H2, b"http/1.1"]))
}

fn server_with(alpn: &[&[u8]]) -> weir_tls::Server {
    let issued = issue(&[NAME], KeyKind::EcdsaP256).expect("a certificate");
    let (groups, alpn) = (Group::CLASSICAL.to_vec(), alpn.iter().map(|name| name.to_vec()).collect());
    let settings = ServerSettings { groups, alpn, ..ServerSettings::new(issued.identity()) };
    weir_tls::Server::new(&settings).expect("valid settings")
}

/// A TLS server with `count` certificates, of which only the last is for [`NAME`].
pub(crate) fn server_of_many(count: usize) -> weir_tls::Server {
    let authority = Authority::new().expect("an authority");
    let others = (1..count).map(|index| format!("h{index}.example"));
    let names: Vec<_> = others.chain([NAME.to_owned()]).collect();
    let identity = |name: &String| {
        authority.issue(&[name.as_str()], KeyKind::EcdsaP256).expect("a certificate").identity()
    };
    let mut identities = names.iter().map(identity);
    let first = identities.next().expect("at least one name");
    let settings = ServerSettings::new(first);
    let identities = settings.identities.into_iter().chain(identities).collect();
    weir_tls::Server::new(&ServerSettings { identities, ..settings }).expect("valid settings")
}

/// The server name of the gateway and of origins.
const NAME: &str = "origin.example";

/// The server name of passthrough connections.
pub(crate) const PASSED: &str = "passed.example";

/// The client settings of clients and of the gateway.
pub(crate) fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| client_with(&[]))
}

/// As [`client`], but offers only HTTP/2.
pub(crate) fn h2_client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| client_with(&[H2]))
}

fn client_with(alpn: &[&[u8]]) -> Client {
    // The simulation creates the certificates, and does not test their verification.
    let (roots, groups) = (Roots::DangerouslyNone, Group::CLASSICAL.to_vec());
    let alpn = alpn.iter().map(|name| name.to_vec()).collect();
    let settings = ClientSettings { roots, groups, alpn, ..ClientSettings::default() };
    Client::new(&settings).expect("valid settings")
}

/// The ALPN name of HTTP/2.
const H2: &[u8] = b"h2";
