//! How many handshakes a worker begins in a turn, and in which order: over real sockets, whose bytes are all there before.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;
use weir_gateway::Config;
use weir_gateway::bare::{Bare, Bound, Role};
use weir_gateway::document::{Limits, Listener as Site, Respond, Route};
use weir_reactor::{Listener, Reactor};
use weir_sim::{Storm, Toll};
use weir_tls::issue::{KeyKind, issue};
use weir_tls::{Client, ClientSettings, Roots, Server, ServerSettings};

const CLIENTS: usize = 12;

#[test]
fn as_many_as_are_set_in_a_turn_and_in_their_order() {
    for most in [1, 3, 64] {
        assert_eq!(
            answered_by_turns(most),
            (0..CLIENTS).collect::<Vec<_>>().chunks(most as usize).map(<[_]>::to_vec).collect::<Vec<_>>()
        );
    }
}

/// Which clients have got an answer to their ClientHello, turn by turn.
fn answered_by_turns(handshakes_per_turn: u32) -> Vec<Vec<usize>> {
    let issued = issue(&["a.example"], KeyKind::EcdsaP256).unwrap();
    let server = Server::new(&ServerSettings::new(issued.identity())).unwrap();
    let config = Config {
        listeners: [("web".to_owned(), Site::new(vec!["127.0.0.1:0".parse().unwrap()]))].into(),
        routes: vec![Route {
            respond: Some(Respond { status: 200, body: None, content_type: None }),
            ..Route::default()
        }],
        limits: Limits { handshakes_per_turn, ..Limits::default() },
        ..Config::default()
    };
    let bound = Bound::new(Role::Gateway, &config, Some(server), None).unwrap();
    let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 1).unwrap().remove(0);
    let address = listener.address().tcp().unwrap();
    let mut bare = Bare::new(Reactor::new().unwrap(), bound, vec![listener]).unwrap();
    let settings = ClientSettings { roots: Roots::DangerouslyNone, ..ClientSettings::default() };
    let client = Client::new(&settings).unwrap().core();
    let mut clients = Vec::new();
    while clients.len() < CLIENTS {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nonblocking(true).unwrap();
        clients.push(Some(stream));
        bare.turn().unwrap();
        assert_eq!(bare.census().clients, clients.len());
    }
    // All have asked before the next turn.
    for stream in &mut clients {
        let mut hello = Vec::new();
        client.connect(&"a.example".parse().unwrap()).receive(&mut [], &mut Vec::new(), &mut hello).unwrap();
        stream.as_mut().unwrap().write_all(&hello).unwrap();
    }
    let (mut by_turns, mut done) = (Vec::new(), Vec::new());
    while clients.iter().any(Option::is_some) {
        assert!(by_turns.len() <= CLIENTS, "{by_turns:?}");
        bare.turn().unwrap();
        let mut answered = Vec::new();
        for (index, client) in clients.iter_mut().enumerate() {
            if client.as_mut().is_some_and(|stream| stream.read(&mut [0; 64]).is_ok_and(|read| read > 0)) {
                answered.push(index);
                done.extend(client.take());
            }
        }
        if !answered.is_empty() {
            by_turns.push(answered);
        }
    }
    by_turns
}

/// Three times as many clients come as the gateway can shake hands with, whether its time for them or their places run out. What
/// it can do is done for clients that it then serves.
#[test]
fn in_a_storm_what_is_begun_is_finished() {
    let storm = Storm {
        per_turn: 3,
        steps_per_turn: 2,
        places: u32::MAX,
        limit: Duration::from_millis(100),
        way: 5,
        turns: 500,
    };
    for places in [u32::MAX, 60] {
        let Toll { answered, in_vain } = Storm { places, ..storm }.blow();
        assert!(answered > 400 && in_vain < 10, "{places} places: {answered} answered, {in_vain} in vain");
    }
}
