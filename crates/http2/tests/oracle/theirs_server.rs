//! Exchanges between our client and the oracle's server.

use super::message::{Message, Planned, encode, exchanges, of_map, to_map};
use super::ours::{Half, stream_of};
use super::pipe::{Ours, Pipe, context};
use super::theirs::{Receiving, send};
use bytes::Bytes;
use proptest::prelude::*;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use weir_http2::{Config, Connection, Event, Part, Role, Scheme};

/// The maximum number of rounds, the same as with the oracle's client.
const ROUNDS: usize = 300;

fn exchange_all(planned: &[Planned]) {
    let pipe = Pipe::default();
    let mut ours = Ours::new(Connection::new(Role::Client, Config::default()), pipe.clone());
    let mut context = context();
    let mut halves = Vec::new();
    for one in planned {
        let stream = ours.connection.open(false).unwrap();
        let write = |to: &mut weir_http2::hpack::Encoder<'_>| {
            to.request(b"PUT", Scheme::Https, b"example.com", one.path.as_bytes());
            encode(&one.request.fields, to);
        };
        ours.connection.head(stream, Part::Head { end: false }, write, &mut ours.out).unwrap();
        halves.push(Half::new(stream, one.request.clone()));
    }
    ours.send();
    let mut handshake = pin!(h2::server::Builder::new().handshake::<_, Bytes>(pipe));
    let Poll::Ready(Ok(mut server)) = handshake.as_mut().poll(&mut context) else {
        panic!("the client's preface is complete")
    };
    let mut receiving: Vec<Option<Receiving>> = Vec::new();
    let mut done = 0;
    for _ in 0..ROUNDS {
        while let Poll::Ready(accepted) = server.poll_accept(&mut context) {
            let (request, mut respond) = accepted.unwrap().unwrap();
            let one = &planned[receiving.len()];
            let (head, stream) = request.into_parts();
            assert_eq!(
                (head.method.as_str(), head.uri.to_string()),
                ("PUT", format!("https://example.com{}", one.path))
            );
            let received = Message { fields: of_map(&head.headers), ..Message::default() };
            receiving.push(Some(Receiving { stream, received }));
            let mut response = http::Response::builder().status(one.status).body(()).unwrap();
            *response.headers_mut() = to_map(&one.response.fields);
            send(&mut respond.send_response(response, false).unwrap(), &one.response);
        }
        for (slot, one) in receiving.iter_mut().zip(planned) {
            if slot.as_mut().is_some_and(|receiving| receiving.poll(&mut context)) {
                assert_eq!(slot.take().map(|receiving| receiving.received), Some(one.request.normal()));
                done += 1;
            }
        }
        while let Some((event, input)) = ours.event() {
            let Some(stream) = stream_of(&event) else { continue };
            let index = stream.get() as usize / 2;
            if let Event::Head { .. } = event {
                assert_eq!(ours.head.status, planned[index].status);
            }
            halves[index].receive(&event, &input, &mut ours);
        }
        halves.iter_mut().for_each(|half| half.send(&mut ours));
        ours.send();
        if done == planned.len() && halves.iter().all(Half::is_over) {
            break;
        }
    }
    assert_eq!(done, planned.len());
    for (half, one) in halves.iter().zip(planned) {
        assert_eq!(half.received, one.response.normal());
        ours.connection.release(half.stream);
    }
    assert_eq!((ours.connection.streams(), ours.connection.held()), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn our_client_agrees(planned in exchanges()) {
        exchange_all(&planned);
    }
}
