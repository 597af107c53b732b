//! The bytes between a connection under test and the oracle. The tests poll the oracle's futures by hand.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use weir_http2::{Connection, Event, Head};

/// The oracle's side of the pipe.
#[derive(Clone, Default)]
pub(super) struct Pipe(Rc<RefCell<Bytes>>);

#[derive(Default)]
struct Bytes {
    to_oracle: Vec<u8>,
    to_us: Vec<u8>,
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let bytes = &mut self.0.borrow_mut().to_oracle;
        let length = bytes.len().min(into.remaining());
        if length == 0 {
            return Poll::Pending;
        }
        into.put_slice(&bytes[..length]);
        bytes.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().to_us.extend_from_slice(from);
        Poll::Ready(Ok(from.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Our side of the pipe.
pub(super) struct Ours {
    pub(super) connection: Connection,
    pub(super) head: Head,
    pub(super) out: Vec<u8>,
    input: Vec<u8>,
    pipe: Pipe,
}

impl Ours {
    pub(super) fn new(connection: Connection, pipe: Pipe) -> Self {
        Self { connection, head: Head::new(), out: Vec::new(), input: Vec::new(), pipe }
    }

    /// The next event in the oracle's output, with the input that its ranges refer to.
    pub(super) fn event(&mut self) -> Option<(Event, Vec<u8>)> {
        self.input.append(&mut self.pipe.0.borrow_mut().to_us);
        let step = self.connection.feed(&mut self.input, &mut self.head).unwrap();
        let consumed = self.input.drain(..step.consumed).collect();
        step.event.map(|event| (event, consumed))
    }

    /// Passes our output to the oracle.
    pub(super) fn send(&mut self) {
        self.connection.settle(&mut self.out);
        self.pipe.0.borrow_mut().to_oracle.append(&mut self.out);
    }
}

/// A context without a waker: the tests poll all futures in every round.
pub(super) fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
