//! A blocking connection, in cleartext or over TLS, that distinguishes the ways in which the peer can close it.

use super::DEADLINE;
use socket2::SockRef;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use weir_tls::Session;

/// One connection. Reads and writes panic after [`DEADLINE`], which fails the test.
pub struct Stream {
    tcp: TcpStream,
    session: Option<Session>,
    /// Bytes received and not yet consumed.
    ready: Vec<u8>,
    ended: Option<Ending>,
}

/// The kinds of close by the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// FIN in cleartext, close_notify in TLS.
    Clean,
    /// FIN in TLS without close_notify.
    Truncated,
    /// RST.
    Reset,
}

impl Stream {
    /// Opens a connection; with a session, completes the handshake.
    ///
    /// # Errors
    /// Those of connect(2), or the handshake's error.
    pub fn connect(address: SocketAddr, session: Option<Session>) -> io::Result<Self> {
        Self::over(TcpStream::connect_timeout(&address, DEADLINE)?, session)
    }

    /// Wraps either side of an established TCP connection; with a session, completes the handshake.
    ///
    /// # Errors
    /// The handshake's error.
    pub fn over(tcp: TcpStream, session: Option<Session>) -> io::Result<Self> {
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(DEADLINE))?;
        tcp.set_write_timeout(Some(DEADLINE))?;
        let mut stream = Self { tcp, session, ready: Vec::new(), ended: None };
        if let Some(session) = &mut stream.session {
            // The client sends first.
            let mut first = Vec::new();
            session.receive(&mut [], &mut Vec::new(), &mut first).map_err(io::Error::other)?;
            stream.tcp.write_all(&first)?;
        }
        while stream.session.as_ref().is_some_and(Session::is_handshaking) {
            stream.fill()?;
            if let Some(ending) = stream.ended {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, format!("{ending:?} in the handshake")));
            }
        }
        Ok(stream)
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// The other side has closed, or does not read.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.session {
            None => self.tcp.write_all(bytes),
            Some(session) => {
                let mut sealed = Vec::new();
                session.send(bytes, &mut sealed).map_err(io::Error::other)?;
                self.tcp.write_all(&sealed)
            }
        }
    }

    /// Appends at least one byte to `into`, or returns the kind of close.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> Option<Ending> {
        while self.ready.is_empty() {
            if let Some(ending) = self.ended {
                return Some(ending);
            }
            if let Err(error) = self.fill() {
                panic!("reading: {error}");
            }
        }
        into.append(&mut self.ready);
        None
    }

    /// Puts back received bytes that are not needed yet.
    pub fn unread(&mut self, bytes: &[u8]) {
        self.ready.splice(0..0, bytes.iter().copied());
    }

    /// Whether bytes or a close arrive within `wait`, not counting TLS's own messages. Tests use it only to check that
    /// nothing arrives.
    pub fn has_news_within(&mut self, wait: Duration) -> bool {
        let end = Instant::now() + wait;
        while self.ready.is_empty() && self.ended.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.tcp.set_read_timeout(Some(left)).unwrap();
            let filled = self.fill();
            self.tcp.set_read_timeout(Some(DEADLINE)).unwrap();
            match filled {
                Err(error) if error.kind() == ErrorKind::TimedOut => return false,
                filled => filled.unwrap(),
            }
        }
        true
    }

    /// Closes this side's stream (with close_notify in TLS); the other side may continue.
    pub fn finish(&mut self) {
        self.finish_tls();
        let _ = self.tcp.shutdown(Shutdown::Write);
    }

    /// Closes this side's stream with a close_notify and no FIN.
    pub fn finish_tls(&mut self) {
        if let Some(session) = &mut self.session {
            let mut last = Vec::new();
            session.close_sending(&mut last);
            let _ = self.tcp.write_all(&last);
        }
    }

    /// Closes this side's stream with a FIN and no close_notify.
    pub fn finish_tcp(&self) {
        let _ = self.tcp.shutdown(Shutdown::Write);
    }

    /// Resets the connection.
    pub fn reset(self) {
        SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// The underlying socket, to inspect or break it.
    pub fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// The TLS session; `None` in cleartext.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Reads once from the socket.
    fn fill(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; 64 * 1024];
        let read = match self.tcp.read(&mut bytes) {
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                self.ended = Some(Ending::Reset);
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(io::Error::new(ErrorKind::TimedOut, format!("nothing arrived for {DEADLINE:?}")));
            }
            Err(error) => return Err(error),
        };
        bytes.truncate(read);
        let Some(session) = &mut self.session else {
            match read {
                0 => self.ended = Some(Ending::Clean),
                _ => self.ready.append(&mut bytes),
            }
            return Ok(());
        };
        if read == 0 {
            self.ended = Some(if session.peer_closed() { Ending::Clean } else { Ending::Truncated });
            return Ok(());
        }
        let mut reply = Vec::new();
        let received = session.receive(&mut bytes, &mut self.ready, &mut reply);
        if !reply.is_empty() {
            self.tcp.write_all(&reply)?;
        }
        if received.map_err(io::Error::other)?.peer_closed {
            self.ended = Some(Ending::Clean);
        }
        Ok(())
    }
}
