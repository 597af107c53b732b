//! Flow control, also between two connections that exchange messages.

use super::peer::*;
use super::server::stream;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::LazyLock;
use weir_http2::frame::{Kind, flag};
use weir_http2::*;

/// A server that has sent a head on stream 1.
fn responding() -> (Tested, StreamNo) {
    let mut server = Tested::server();
    let no = stream(&mut server, 1);
    let head = Part::Head { end: false };
    server.connection.head(no, head, |to| to.status(200), &mut Vec::new()).unwrap();
    (server, no)
}

#[test]
fn windows_bound_what_is_sent() {
    let (mut server, no) = responding();
    let body = [b'x'; 70_000];
    let mut out = Vec::new();
    assert_eq!(server.connection.data(no, &body, true, &mut out), Ok(65_535));
    assert_eq!(server.connection.data(no, &body[65_535..], true, &mut out), Ok(0));
    // The windows of the stream and of the connection are both used up, so the peer must open both.
    assert_eq!(server.events(&window(1, 4000)), ["room Some(1)"]);
    assert_eq!(server.connection.data(no, &body[65_535..], true, &mut out), Ok(0));
    assert_eq!(server.events(&window(0, 10_000)), ["room None"]);
    assert_eq!(server.connection.data(no, &body[65_535..], true, &mut out), Ok(4000));
    assert_eq!(server.events(&[window(0, 1), window(1, 1000)].concat()), ["room Some(1)"]);
    assert_eq!(server.connection.data(no, &body[69_535..], true, &mut out), Ok(465));
    assert_eq!(server.written(&out).last().unwrap(), "data 1 465 end");
}

/// RFC 9113, section 6.9.2: a window may become negative; nothing is sent until it is positive again.
#[test]
fn a_smaller_initial_window_moves_open_streams() {
    let (mut server, no) = responding();
    let mut out = Vec::new();
    assert_eq!(server.connection.data(no, &[0; 50_000], false, &mut out), Ok(50_000));
    assert_eq!(server.events(&settings(&[(4, 30_000)])), ["settings"]);
    assert_eq!(server.connection.data(no, &[0; 100], false, &mut out), Ok(0));
    assert_eq!(server.events(&window(1, 20_000)), [""; 0]);
    assert_eq!(server.events(&window(1, 10)), ["room Some(1)"]);
    assert_eq!(server.connection.data(no, &[0; 100], false, &mut out), Ok(10));
    assert_eq!(server.events(&settings(&[(4, 30_090)])), ["settings"]);
    assert_eq!(server.connection.data(no, &[0; 90], true, &mut out), Ok(90));
}

#[test]
fn credit_opens_the_window_in_halves() {
    let mut server = Tested::server();
    let no = stream(&mut server, 1);
    for _ in 0..4 {
        server.events(&data(1, &[0; 16_384]));
    }
    let beyond = server.events(&data(1, &[0; 1]));
    assert_eq!(beyond, ["failed 1 FlowControl"]);
    assert_eq!(server.settle(), ["rst 1 flow_control_error"]);

    let mut server = Tested::server();
    let other = stream(&mut server, 1);
    assert_eq!(no, other);
    server.events(&[data(1, &[0; 16_384]), data(1, &[0; 16_384])].concat());
    server.connection.credit(no, 16_384);
    assert!(server.settle().is_empty());
    server.connection.credit(no, 16_384);
    assert_eq!(server.settle(), ["window 1 +32768"]);
    // No update for a request that has ended.
    server.events(&frame(Kind::Data, flag::END_STREAM, 1, &[0; 16_384]));
    server.connection.credit(no, 16_384);
    assert!(server.settle().is_empty());
    assert_eq!(server.connection.held(), 0);
}

/// Our window applies to the client once it has acknowledged the setting. Before, it may send 65535 bytes.
#[test]
fn a_window_binds_when_it_is_acknowledged() {
    let settings = Settings { initial_window_size: 10, ..Settings::default() };
    let config = Config { settings, ..Config::default() };
    let mut server = Tested::fresh(Role::Server, config);
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &super::peer::settings(&[])].concat();
    server.events(&preface);
    let early = [post(1), data(1, &[0; 1000])].concat();
    assert_eq!(server.events(&early), ["head 1: POST /p", "data 1 '1000 bytes' 1000"]);
    let ack = frame(Kind::Settings, flag::ACK, 0, b"");
    let late = [ack, data(1, b"x")].concat();
    assert_eq!(server.events(&late), ["failed 1 FlowControl"]);
}

/// If the owner releases a stream within a DATA frame, the rest of the frame is dropped and credited.
#[test]
fn a_release_within_a_frame() {
    let mut server = Tested::server();
    let no = stream(&mut server, 1);
    let frame = data(1, b"hello");
    assert_eq!(server.events(&frame[..11]), ["data 1 'he' 2"]);
    server.connection.release(no);
    let mut rest = [&frame[11..], &get(3)].concat();
    let step = server.connection.feed(&mut rest, &mut server.head).unwrap();
    assert!(matches!(step.event, Some(Event::Head { .. })));
    assert_eq!(server.connection.held(), 2);
    server.connection.credit(no, 2);
    assert_eq!(server.connection.held(), 0);
}

/// One side of the exchange: a connection and its owner.
struct Side {
    connection: Connection,
    head: Head,
    input: Vec<u8>,
    out: Vec<u8>,
    streams: Vec<Exchange>,
}

struct Exchange {
    no: StreamNo,
    to_send: &'static [u8],
    has_sent: usize,
    /// Whether END_STREAM was sent, or the stream was reset.
    is_sent: bool,
    received: usize,
    is_received: bool,
    uncredited: Vec<u32>,
}

impl Side {
    fn new(role: Role, window: u32) -> Self {
        let settings = Settings { initial_window_size: window, ..Config::default().settings };
        let connection = Connection::new(role, Config { settings, ..Config::default() });
        Self { connection, head: Head::new(), input: Vec::new(), out: Vec::new(), streams: Vec::new() }
    }

    fn exchange(&mut self, no: StreamNo) -> Option<&mut Exchange> {
        self.streams.iter_mut().find(|exchange| exchange.no == no)
    }

    fn add(&mut self, no: StreamNo, to_send: &'static [u8]) {
        self.streams.push(Exchange {
            no,
            to_send,
            has_sent: 0,
            is_sent: false,
            received: 0,
            is_received: false,
            uncredited: Vec::new(),
        });
    }

    /// Takes up to `bytes` from the peer, and responds to each head with `body`.
    fn receive(&mut self, peer: &mut Self, bytes: usize, body: &'static [u8]) {
        self.input.extend(peer.out.drain(..bytes.min(peer.out.len())));
        loop {
            let step = self.connection.feed(&mut self.input, &mut self.head).unwrap();
            match step.event {
                None => {
                    self.input.drain(..step.consumed);
                    return;
                }
                Some(Event::Head { stream, end }) => {
                    if self.exchange(stream).is_none() {
                        self.add(stream, body);
                        let head = Part::Head { end: false };
                        self.connection.head(stream, head, |to| to.status(200), &mut self.out).unwrap();
                    }
                    self.exchange(stream).unwrap().is_received = end;
                }
                Some(Event::Data { stream, range, flow, end }) => {
                    let data = self.input[range].to_vec();
                    let exchange = self.exchange(stream).unwrap();
                    assert_eq!(data, &pattern(exchange.received + data.len())[exchange.received..]);
                    exchange.received += data.len();
                    exchange.uncredited.push(flow);
                    exchange.is_received = end;
                }
                Some(Event::Reset { stream, .. }) => {
                    let exchange = self.exchange(stream).unwrap();
                    (exchange.is_sent, exchange.is_received) = (true, true);
                }
                Some(Event::Settings | Event::Room { .. }) => {}
                Some(other) => panic!("{other:?}"),
            }
            self.input.drain(..step.consumed);
        }
    }

    /// Sends and credits on one stream, and releases it when it is over.
    fn work(&mut self, index: usize, bytes: usize) {
        let Some(exchange) = self.streams.get_mut(index) else { return };
        if !exchange.is_sent {
            let rest = &exchange.to_send[exchange.has_sent..];
            let piece = &rest[..rest.len().min(bytes)];
            let end = piece.len() == rest.len();
            let sent = self.connection.data(exchange.no, piece, end, &mut self.out).unwrap();
            exchange.has_sent += sent;
            exchange.is_sent = end && sent == piece.len();
        }
        for flow in exchange.uncredited.drain(..) {
            self.connection.credit(exchange.no, flow);
        }
        if exchange.is_sent && exchange.is_received {
            self.connection.release(exchange.no);
            self.streams.remove(index);
        }
        self.connection.settle(&mut self.out);
    }
}

#[derive(Clone, Debug)]
enum Move {
    Open(usize),
    Work { client: bool, index: usize, bytes: usize },
    Pass { to_client: bool, bytes: usize, body: usize },
    Reset { client: bool, index: usize },
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        2 => (0usize..90_000).prop_map(Move::Open),
        6 => (any::<bool>(), 0usize..4, 0usize..40_000)
            .prop_map(|(client, index, bytes)| Move::Work { client, index, bytes }),
        6 => (any::<bool>(), 0usize..50_000, 0usize..90_000)
            .prop_map(|(to_client, bytes, body)| Move::Pass { to_client, bytes, body }),
        1 => (any::<bool>(), 0usize..4).prop_map(|(client, index)| Move::Reset { client, index }),
    ];
    vec(one, 0..60)
}

/// The first bytes of a pattern, as a body of this length.
fn pattern(length: usize) -> &'static [u8] {
    static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| (0..100_000).map(|at| (at % 251) as u8).collect());
    &PATTERN[..length]
}

proptest! {
    /// Bodies arrive as they were sent, regardless of windows, pieces and resets. Finally, all windows are fully
    /// credited, and no stream remains.
    #[test]
    fn bodies_and_windows_are_conserved(moves in moves(), windows in (2000u32..100_000, 2000u32..100_000)) {
        let mut client = Side::new(Role::Client, windows.0);
        let mut server = Side::new(Role::Server, windows.1);
        client.connection.settle(&mut client.out);
        server.connection.settle(&mut server.out);
        // After the random moves, both sides complete all exchanges.
        let rest = (0..600).flat_map(|round| {
            let work = (0..12).map(move |index| Move::Work { client: round % 2 == 0, index: 11 - index, bytes: usize::MAX });
            work.chain([Move::Pass { to_client: round % 2 == 1, bytes: usize::MAX, body: 10 }])
        });
        for step in moves.into_iter().chain(rest) {
            match step {
                Move::Open(length) if client.streams.len() < 12 => {
                    let no = client.connection.open(false).unwrap();
                    let part = Part::Head { end: false };
                    let head = |to: &mut hpack::Encoder<'_>| to.request(b"POST", Scheme::Http, b"a", b"/");
                    client.connection.head(no, part, head, &mut client.out).unwrap();
                    client.add(no, pattern(length));
                }
                Move::Open(_) => {}
                Move::Work { client: true, index, bytes } => client.work(index, bytes),
                Move::Work { client: false, index, bytes } => server.work(index, bytes),
                Move::Pass { to_client: true, bytes, body: length } => client.receive(&mut server, bytes, pattern(length)),
                Move::Pass { to_client: false, bytes, body: length } => server.receive(&mut client, bytes, pattern(length)),
                Move::Reset { client: is_client, index } => {
                    let side = if is_client { &mut client } else { &mut server };
                    if let Some(exchange) = side.streams.get_mut(index) {
                        side.connection.reset(exchange.no, ErrorCode::CANCEL);
                        (exchange.is_sent, exchange.is_received) = (true, true);
                        side.connection.settle(&mut side.out);
                    }
                }
            }
            let is_done = client.streams.is_empty() && server.streams.is_empty()
                && client.out.is_empty() && server.out.is_empty();
            if is_done && client.connection.is_acknowledged() && server.connection.is_acknowledged() {
                break;
            }
        }
        for side in [&client, &server] {
            prop_assert_eq!((side.connection.streams(), side.connection.held()), (0, 0));
            prop_assert!(side.input.is_empty());
        }
    }
}
