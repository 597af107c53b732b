//! Exchanges between the oracle's client and our server.

use super::message::{Message, Planned, encode, exchanges, of_map, to_map};
use super::ours::{Half, stream_of};
use super::pipe::{Ours, Pipe, context};
use super::theirs::{Receiving, send};
use bytes::Bytes;
use proptest::prelude::*;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use weir_http2::{Config, Connection, Event, Part, Role};

/// The maximum number of rounds. Each round moves up to a window, so all messages complete well before that.
const ROUNDS: usize = 300;

fn exchange_all(planned: &[Planned]) {
    let pipe = Pipe::default();
    let mut ours = Ours::new(Connection::new(Role::Server, Config::default()), pipe.clone());
    let mut context = context();
    let mut handshake = pin!(h2::client::Builder::new().enable_push(false).handshake::<_, Bytes>(pipe));
    let Poll::Ready(Ok((mut client, connection))) = handshake.as_mut().poll(&mut context) else {
        panic!("the handshake waits for nothing")
    };
    let mut connection = pin!(connection);

    let mut waiting = Vec::new();
    for one in planned {
        let mut request = http::Request::builder()
            .method("POST")
            .uri(format!("https://example.com{}", one.path))
            .body(())
            .unwrap();
        *request.headers_mut() = to_map(&one.request.fields);
        let (response, mut stream) = client.send_request(request, false).unwrap();
        send(&mut stream, &one.request);
        waiting.push(Some(Box::pin(response)));
    }
    let mut receiving: Vec<_> = planned.iter().map(|_| None::<Receiving>).collect();
    let mut halves: Vec<Half> = Vec::new();
    let mut done = 0;
    for _ in 0..ROUNDS {
        assert!(connection.as_mut().poll(&mut context).is_pending());
        while let Some((event, input)) = ours.event() {
            let Some(stream) = stream_of(&event) else { continue };
            let index = stream.get() as usize / 2;
            if let (Event::Head { .. }, true) = (&event, index == halves.len()) {
                let one = &planned[index];
                let path = String::from_utf8_lossy(ours.head.path.of(&ours.head.bytes)).into_owned();
                assert_eq!(path, one.path);
                assert_eq!(ours.head.host.unwrap().of(&ours.head.bytes), b"example.com");
                let write = |to: &mut weir_http2::hpack::Encoder<'_>| {
                    to.status(one.status);
                    encode(&one.response.fields, to);
                };
                halves.push(Half::new(stream, one.response.clone()));
                halves[index].receive(&event, &input, &mut ours);
                ours.connection.head(stream, Part::Head { end: false }, write, &mut ours.out).unwrap();
            } else {
                halves[index].receive(&event, &input, &mut ours);
            }
        }
        halves.iter_mut().for_each(|half| half.send(&mut ours));
        ours.send();
        for (index, one) in planned.iter().enumerate() {
            if let Some(response) = &mut waiting[index]
                && let Poll::Ready(response) = response.as_mut().poll(&mut context)
            {
                let (head, stream) = response.unwrap().into_parts();
                assert_eq!(head.status.as_u16(), one.status);
                let received = Message { fields: of_map(&head.headers), ..Message::default() };
                receiving[index] = Some(Receiving { stream, received });
                waiting[index] = None;
            }
            if receiving[index].as_mut().is_some_and(|receiving| receiving.poll(&mut context)) {
                let Some(Receiving { received, .. }) = receiving[index].take() else { continue };
                assert_eq!(received, one.response.normal());
                done += 1;
            }
        }
        if done == planned.len() && halves.len() == planned.len() && halves.iter().all(Half::is_over) {
            break;
        }
    }
    assert_eq!((done, halves.len()), (planned.len(), planned.len()));
    for (half, one) in halves.iter().zip(planned) {
        assert_eq!(half.received, one.request.normal());
        ours.connection.release(half.stream);
    }
    assert_eq!((ours.connection.streams(), ours.connection.held()), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn our_server_agrees(planned in exchanges()) {
        exchange_all(&planned);
    }
}
