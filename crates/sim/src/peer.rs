//! The remote side of a link: a client's or an origin's bytes, in cleartext or over TLS.

use crate::world::World;
use weir_tls::Session;

/// A client's or an origin's side of a link.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The peer's link.
    pub(crate) link: usize,
    /// The TLS session; `None`: cleartext.
    session: Option<Session>,
    started: bool,
    /// Application bytes that wait for the end of the handshake.
    waiting: Vec<u8>,
    /// Bytes to send on the link.
    out: Vec<u8>,
    /// Received bytes that have not been consumed yet.
    pub(crate) input: Vec<u8>,
    /// The end of the gateway's stream; `None` before it is received.
    pub(crate) ended: Option<End>,
    finishing: bool,
    finished: bool,
}

/// The end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// FIN in cleartext, close_notify over TLS.
    Clean,
    /// TLS without close_notify.
    Truncated,
    /// A reset of the connection.
    Reset,
}

impl Peer {
    /// A peer on this link; with a session, it starts with a handshake.
    pub(crate) fn new(link: usize, session: Option<Session>) -> Self {
        Self {
            link,
            session,
            started: false,
            waiting: Vec::new(),
            out: Vec::new(),
            input: Vec::new(),
            ended: None,
            finishing: false,
            finished: false,
        }
    }

    /// Queues raw bytes, ahead of application bytes and of the handshake.
    pub(crate) fn announce(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Queues application bytes.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// Whether the link carries TLS records rather than the application bytes themselves.
    pub(crate) fn is_over_tls(&self) -> bool {
        self.session.is_some()
    }

    /// Whether the link has taken all queued bytes.
    pub(crate) fn is_flushed(&self) -> bool {
        self.waiting.is_empty() && self.out.is_empty()
    }

    /// Ends the stream after all queued bytes.
    pub(crate) fn finish(&mut self) {
        self.finishing = true;
    }

    /// Sends queued bytes and, with `reads`, receives bytes from the gateway.
    pub(crate) fn poll(&mut self, world: &mut World, reads: bool) {
        if let Some(session) = self.session.as_mut().filter(|_| !self.started) {
            self.started = true;
            // A client sends a ClientHello; a server sends nothing yet.
            let _ = session.receive(&mut [], &mut Vec::new(), &mut self.out);
        }
        if reads {
            self.read(world);
        }
        self.write(world);
    }

    fn read(&mut self, world: &mut World) {
        let now = world.now;
        let most = world.piece(64 * 1024);
        let pipe = world.pipe(self.link, false);
        if pipe.is_reset(now) {
            self.ended.get_or_insert(End::Reset);
            return;
        }
        let mut raw = Vec::new();
        pipe.take(most, false, &mut raw);
        let is_over = pipe.is_read_out(now);
        if !raw.is_empty() {
            world.moves += 1;
        }
        let mut is_closed = self.session.is_none();
        match &mut self.session {
            None => self.input.append(&mut raw),
            Some(session) => {
                let received = session.receive(&mut raw, &mut self.input, &mut self.out);
                is_closed = received.is_ok_and(|received| received.peer_closed);
                if is_closed {
                    self.ended.get_or_insert(End::Clean);
                }
            }
        }
        if is_over {
            self.ended.get_or_insert(if is_closed { End::Clean } else { End::Truncated });
        }
    }

    fn write(&mut self, world: &mut World) {
        match &mut self.session {
            None => self.out.append(&mut self.waiting),
            Some(session) if session.is_handshaking() => {}
            Some(session) => {
                if !self.waiting.is_empty() {
                    let _ = session.send(&self.waiting, &mut self.out);
                    self.waiting.clear();
                }
            }
        }
        if self.finishing && !self.finished && self.waiting.is_empty() {
            self.finished = true;
            if let Some(session) = &mut self.session {
                session.close_sending(&mut self.out);
            }
        }
        if world.links[self.link].gateway_gone {
            // The gateway has closed the connection, so drop pending output.
            self.out.clear();
        } else if !self.out.is_empty() {
            let sent = world.send(self.link, true, &self.out);
            self.out.drain(..sent);
        }
        if self.finished && self.out.is_empty() && !world.pipe(self.link, true).is_ended() {
            world.end(self.link, true);
        }
    }
}
