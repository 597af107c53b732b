//! The other end of a link: bytes in and out for a client or an origin, in the clear or over TLS.

use crate::world::World;
use weir_tls::Session;

/// A client's or an origin's end.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Its link.
    pub(crate) link: usize,
    /// `true`: it sends upward, as clients of the gateway and origins both do, towards the gateway.
    session: Option<Session>,
    started: bool,
    /// Application bytes that wait for the handshake.
    waiting: Vec<u8>,
    /// Bytes for the link.
    out: Vec<u8>,
    /// What was received and is not used yet.
    pub(crate) input: Vec<u8>,
    /// How the gateway's stream ended.
    pub(crate) ended: Option<End>,
    finishing: bool,
    finished: bool,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By FIN in cleartext, by close_notify in TLS.
    Clean,
    /// TLS without close_notify.
    Truncated,
    /// By a reset.
    Reset,
}

impl Peer {
    /// An end of this link; with a session, a handshake comes first.
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

    /// Sends bytes before all others, and before a handshake.
    pub(crate) fn announce(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Sends application bytes, after those before.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// Whether there is more on the link than what is said.
    pub(crate) fn is_over_tls(&self) -> bool {
        self.session.is_some()
    }

    /// Whether everything was passed to the link.
    pub(crate) fn is_flushed(&self) -> bool {
        self.waiting.is_empty() && self.out.is_empty()
    }

    /// Ends its stream, behind all bytes.
    pub(crate) fn finish(&mut self) {
        self.finishing = true;
    }

    /// Moves bytes both ways, as far as they go; with `reads`, those from the gateway too.
    pub(crate) fn poll(&mut self, world: &mut World, reads: bool) {
        if let Some(session) = self.session.as_mut().filter(|_| !self.started) {
            self.started = true;
            // A client speaks first; a server has nothing to say yet.
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
            // Nobody takes it.
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
