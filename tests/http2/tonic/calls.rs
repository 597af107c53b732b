//! Calls that end with the server's status, and the metadata and details of that status.

use super::client::Calls;
use super::{Behind, Server, each, run};
use crate::common::pattern;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status, Streaming};

/// Empty, one byte, more than a window, and far more than all buffers in between.
const SIZES: [usize; 4] = [0, 1, 70_000, 8_000_000];

fn message(size: usize) -> Bytes {
    pattern(size).into()
}

async fn all(mut messages: Streaming<Bytes>) -> Result<Vec<Bytes>, Status> {
    let mut all = Vec::new();
    while let Some(message) = messages.message().await? {
        all.push(message);
    }
    Ok(all)
}

#[test]
fn each_kind_of_call() {
    each(async |calls, _| {
        for size in SIZES {
            let response = calls.unary("/weir.Echo/Unary", message(size)).await.unwrap();
            assert!(response.get_ref() == &message(size), "{size}: {} bytes", response.get_ref().len());
        }

        let messages = tokio_stream::iter(SIZES.map(message));
        let total = calls.upload("/weir.Echo/Client", messages).await.unwrap();
        assert_eq!(total, "{\"messages\":4,\"bytes\":8070001}");
        let total = calls.upload("/weir.Echo/Client", tokio_stream::empty()).await.unwrap();
        assert_eq!(total, "{\"messages\":0,\"bytes\":0}");

        let messages = calls.download("/weir.Echo/Server?messages=100", message(70_000)).await.unwrap();
        let messages = all(messages).await.unwrap();
        assert!(messages.len() == 100 && messages.iter().all(|got| got == &message(70_000)));
        let none = calls.download("/weir.Echo/Server?messages=0", message(1)).await.unwrap();
        assert_eq!(all(none).await.unwrap(), [""; 0]);

        // Each message is sent after the response to the previous one.
        let (sender, messages) = mpsc::channel(1);
        sender.send(message(SIZES[0])).await.unwrap();
        let mut echo = calls.both_ways("/weir.Echo/Bidi", ReceiverStream::new(messages)).await.unwrap();
        let mut next = SIZES.into_iter().skip(1);
        for size in SIZES {
            let echoed = echo.message().await.unwrap().unwrap();
            assert!(echoed == message(size), "{size}: {} bytes", echoed.len());
            if let Some(size) = next.next() {
                sender.send(message(size)).await.unwrap();
            }
        }
        drop(sender);
        assert_eq!(echo.message().await.unwrap(), None);
    });
}

/// More calls than the gateway allows on a connection: some wait in the client.
#[test]
fn many_calls_at_once() {
    each(async |calls, _| {
        let mut tasks = JoinSet::new();
        for size in (0..200_000).step_by(1000) {
            let mut calls = calls.clone();
            tasks.spawn(async move {
                let response = calls.unary("/weir.Echo/Unary", message(size)).await.unwrap();
                assert!(response.get_ref() == &message(size), "{size}: {} bytes", response.get_ref().len());
            });
        }
        assert_eq!(tasks.join_all().await.len(), 200);
    });
}

#[test]
fn statuses_of_the_server() {
    each(async |calls, _| {
        // In trailers after the messages.
        let two = tokio_stream::iter([1, 2].map(message));
        let mut messages = calls.both_ways("/weir.Echo/Unary", two).await.unwrap();
        assert_eq!(messages.next().await.unwrap().unwrap(), message(1));
        assert_eq!(messages.next().await.unwrap().unwrap(), message(2));
        let status = messages.message().await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Internal, "2 messages: expected one"));

        // In the head of a response without a body.
        let status = calls.unary("/weir.Echo/Other", message(1)).await.unwrap_err();
        let text = "expected /weir.Echo/Unary, Server, Client or Bidi";
        assert_eq!((status.code(), status.message()), (Code::Unimplemented, text));
    });
}

/// tonic on both sides.
#[test]
fn metadata_and_details() {
    for tls in [false, true] {
        let behind = Behind::start(tls, |_, tls| Some(Server::hyper(tls))).unwrap();
        run(async {
            let ca = tls.then_some(&behind.certificates);
            let mut calls = Calls::connect(behind.weir.address(), ca).await;
            let binary = [&b""[..], b"\0", b"\0\x01\xff,\r\n", &[0xff; 3000]];
            let request = || {
                let mut request = Request::new(message(10));
                for value in binary {
                    request.metadata_mut().append_bin("x-sent-bin", MetadataValue::from_bytes(value));
                }
                request.metadata_mut().append("x-sent", "a, b".parse().unwrap());
                request.metadata_mut().append("x-sent", "c".parse().unwrap());
                request
            };
            let response = calls.unary("/weir.Test/Metadata", request()).await.unwrap();
            assert_eq!(response.get_ref(), &message(10));
            let values = response.metadata().get_all_bin("x-returned-bin").iter();
            assert_eq!(values.map(|value| value.to_bytes().unwrap()).collect::<Vec<_>>(), binary);
            let values = response.metadata().get_all("x-returned").iter();
            assert_eq!(values.collect::<Vec<_>>(), ["a, b", "c"]);

            let text = "\t\n 100 % Zoë €\r\n";
            let failing = request().map(|_| Bytes::from_static(text.as_bytes()));
            let status = calls.unary("/weir.Test/Status", failing).await.unwrap_err();
            assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, text));
            assert_eq!(status.details(), text.as_bytes());
            let values = status.metadata().get_all_bin("x-sent-bin").iter();
            assert_eq!(values.map(|value| value.to_bytes().unwrap()).collect::<Vec<_>>(), binary);
        });
        behind.stop();
    }
}
