//! The sending side: stages, commits, seals and writes bytes, then ends the stream.

use crate::{Fault, Finish, Phase, Transport, Wire};
use weir_reactor::Socket;

impl<S: Socket> Transport<S> {
    /// The buffer to append application bytes to. The next [`Transport::commit`] or send sends them.
    pub fn stage(&mut self, wire: &mut Wire) -> &mut Vec<u8> {
        if self.staged.capacity() == 0 {
            self.staged = wire.buffer();
        }
        &mut self.staged
    }

    /// The number of staged bytes.
    pub fn staged(&self) -> usize {
        self.staged.len()
    }

    /// Sends the staged bytes if the connection is open. Errors: the connection failed.
    pub fn commit(&mut self, wire: &mut Wire) -> Result<(), Fault> {
        if self.staged.is_empty() || self.phase != Phase::Open {
            return Ok(());
        }
        let staged = std::mem::take(&mut self.staged);
        let sent = self.pass(&staged, wire);
        wire.give_back(staged);
        sent
    }

    /// Sends `bytes` after the staged bytes, buffering them if necessary. Errors: the connection failed.
    pub fn send(&mut self, bytes: &[u8], wire: &mut Wire) -> Result<(), Fault> {
        if self.staged.is_empty() && self.phase == Phase::Open {
            return self.pass(bytes, wire);
        }
        self.stage(wire).extend_from_slice(bytes);
        self.commit(wire)
    }

    /// As [`Transport::send`] for `buf[at..]`, without copying these bytes: copies the staged bytes, usually a head, to
    /// the space before `at`, over bytes that the caller no longer needs. Errors: those of [`Transport::send`].
    pub fn send_in_place(&mut self, buf: &mut [u8], at: usize, wire: &mut Wire) -> Result<(), Fault> {
        if self.phase != Phase::Open {
            return self.send(&buf[at..], wire);
        }
        let Some(from) = at.checked_sub(self.staged.len()) else {
            self.commit(wire)?;
            return self.pass(&buf[at..], wire);
        };
        buf[from..at].copy_from_slice(&self.staged);
        wire.give_back(std::mem::take(&mut self.staged));
        self.pass(&buf[from..], wire)
    }

    /// Queues `bytes` in cleartext before all other bytes, even before a TLS handshake. Call only on a
    /// connection that was just dialled.
    pub fn announce(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Continues when the socket is writable: completes the connection and writes buffered bytes. Errors:
    /// [`Fault::Connect`] if the connection was refused, else those of [`Transport::send`].
    pub fn advance(&mut self, wire: &mut Wire) -> Result<(), Fault> {
        if self.phase == Phase::Connecting {
            self.socket.error().map_err(Fault::Connect)?;
            match &mut self.session {
                None => self.opened(wire)?,
                Some(session) => {
                    self.phase = Phase::Handshaking;
                    wire.sealed.clear();
                    session.receive(&mut [], &mut Vec::new(), &mut wire.sealed)?;
                    self.put_sealed(wire)?;
                }
            }
        }
        self.flush_into(wire)
    }

    /// Closes our side after all bytes (with close_notify in TLS); bytes staged on a connection that is not open are
    /// lost. The last bytes and the end of the stream are sent together. The peer may continue to send, but with TLS
    /// its bytes are discarded. Errors: those of [`Transport::send`].
    pub fn finish(&mut self, wire: &mut Wire) -> Result<(), Fault> {
        if self.finish != Finish::No {
            return Ok(());
        }
        self.finish = Finish::Due;
        let mut staged = std::mem::take(&mut self.staged);
        if self.phase != Phase::Open {
            staged.clear();
        }
        match &mut self.session {
            Some(session) => {
                if self.out.capacity() == 0 {
                    self.out = wire.buffer();
                }
                if !staged.is_empty() {
                    session.send(&staged, &mut self.out)?;
                }
                session.close(&mut self.out);
            }
            None if self.out.is_empty() => std::mem::swap(&mut self.out, &mut staged),
            None => self.out.extend_from_slice(&staged),
        }
        wire.give_back(staged);
        self.flush_into(wire)
    }

    /// Closes our side after the buffered bytes (with close_notify in TLS), and continues to receive from the peer.
    /// Errors: those of [`Transport::send`].
    pub fn finish_sending(&mut self) -> Result<(), Fault> {
        if self.finish != Finish::No {
            return Ok(());
        }
        self.finish = Finish::Due;
        if let Some(session) = &mut self.session {
            session.close_sending(&mut self.out);
        }
        self.flush()
    }

    /// Closes our side after the buffered bytes with a FIN only: a TLS peer cannot tell whether the stream was
    /// truncated (RFC 8446 section 6.1). The peer may continue to send. Errors: those of [`Transport::send`].
    pub fn finish_bare(&mut self) -> Result<(), Fault> {
        if self.finish == Finish::No {
            self.finish = Finish::Due;
        }
        self.flush()
    }

    fn opened(&mut self, wire: &mut Wire) -> Result<(), Fault> {
        self.phase = Phase::Open;
        self.commit(wire)
    }

    /// Seals application bytes if there is TLS, and writes them.
    fn pass(&mut self, bytes: &[u8], wire: &mut Wire) -> Result<(), Fault> {
        let Some(session) = &mut self.session else { return self.put(bytes, wire) };
        if self.out.is_empty() || self.waits_for_answer {
            wire.sealed.clear();
            if self.waits_for_answer {
                self.waits_for_answer = false;
                wire.sealed.append(&mut self.out);
                wire.give_back(std::mem::take(&mut self.out));
            }
            session.send(bytes, &mut wire.sealed)?;
            self.put_sealed(wire)
        } else {
            Ok(session.send(bytes, &mut self.out)?)
        }
    }

    pub(crate) fn put_sealed(&mut self, wire: &mut Wire) -> Result<(), Fault> {
        let sealed = std::mem::take(&mut wire.sealed);
        let put = self.put(&sealed, wire);
        wire.sealed = sealed;
        put
    }

    /// Writes bytes to the socket after the buffered bytes.
    fn put(&mut self, bytes: &[u8], wire: &mut Wire) -> Result<(), Fault> {
        if self.waits_for_answer {
            self.out.extend_from_slice(bytes);
            return self.flush_into(wire);
        }
        let written = match self.out.is_empty() {
            true => self.write(bytes)?,
            false => 0,
        };
        if written < bytes.len() {
            if self.out.capacity() == 0 {
                self.out = wire.buffer();
            }
            self.out.extend_from_slice(&bytes[written..]);
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let written = match self.finish {
            Finish::No => self.socket.write(bytes),
            Finish::Due | Finish::Done => self.socket.write_last(bytes),
        };
        let written = written.map_err(Fault::Socket);
        match &written {
            Ok(bytes) => self.taken += *bytes as u64,
            Err(_) => self.failed = true,
        }
        written
    }

    /// As [`Transport::flush`], and returns an empty buffer to the pool.
    fn flush_into(&mut self, wire: &mut Wire) -> Result<(), Fault> {
        self.flush()?;
        if self.out.is_empty() {
            wire.give_back(std::mem::take(&mut self.out));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.waits_for_answer = false;
        if self.sent < self.out.len() {
            let out = std::mem::take(&mut self.out);
            let written = self.write(&out[self.sent..]);
            self.out = out;
            self.sent += written?;
        }
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
            if self.finish == Finish::Due {
                self.finish = Finish::Done;
                self.socket.finish();
            }
        } else if self.sent > self.out.len() / 2 {
            // Sent bytes must not accumulate at the front of the buffer of a slow peer.
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::OwnedFd;
    use rustix::net::sockopt;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_peer_that_always_leaves_something_waiting_costs_no_memory() {
        // Regression test: sent bytes stayed at the front of the buffer while others were unsent, so a slow, steady
        // reader made the buffer as large as all data ever sent to it.
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        sockopt::set_socket_send_buffer_size(&ours, 4096).unwrap();
        let mut transport = Transport::accepted(OwnedFd::from(ours), None);
        let (mut wire, mut taken) = (Wire::default(), 0);
        let mut some = vec![0; 1000];
        while taken < 10 << 20 {
            if transport.pending() < 64 * 1024 {
                transport.send(&[b'x'; 64 * 1024], &mut wire).unwrap();
            }
            taken += theirs.read(&mut some).unwrap();
            transport.advance(&mut wire).unwrap();
            assert!(transport.pending() > 0, "this test is about a buffer that never becomes empty");
            assert!(transport.out.capacity() <= 1 << 20, "{} bytes", transport.out.capacity());
        }
    }
}
