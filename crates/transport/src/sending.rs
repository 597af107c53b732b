//! How bytes leave: staged, committed, sealed, written, and the end of the stream behind them.

use crate::{Fault, Phase, Transport, Wire};
use weir_reactor::Socket;

impl<S: Socket> Transport<S> {
    /// Where to append application bytes; they leave with the next [`Transport::commit`] or send.
    pub fn stage(&mut self, wire: &mut Wire) -> &mut Vec<u8> {
        if self.staged.capacity() == 0 {
            self.staged = wire.buffer();
        }
        &mut self.staged
    }

    /// Bytes that are staged.
    pub fn staged(&self) -> usize {
        self.staged.len()
    }

    /// Takes what is staged, for another connection.
    pub fn take_staged(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.staged)
    }

    /// Takes back what was staged after the first `keep` bytes.
    pub fn unstage(&mut self, keep: usize) {
        self.staged.truncate(keep);
    }

    /// Sends what is staged, once the connection is open. Errors: the connection failed.
    pub fn commit(&mut self, wire: &mut Wire) -> Result<(), Fault> {
        if self.staged.is_empty() || self.phase != Phase::Open {
            return Ok(());
        }
        let staged = std::mem::take(&mut self.staged);
        let sent = self.pass(&staged, wire);
        wire.give_back(staged);
        sent
    }

    /// As [`Transport::commit`], and appends the sent bytes to `kept`. Errors: as [`Transport::commit`].
    pub fn commit_keeping(&mut self, kept: &mut Vec<u8>, wire: &mut Wire) -> Result<(), Fault> {
        if self.staged.is_empty() || self.phase != Phase::Open {
            return Ok(());
        }
        let staged = std::mem::take(&mut self.staged);
        let sent = self.pass(&staged, wire);
        if kept.is_empty() {
            wire.give_back(std::mem::replace(kept, staged));
        } else {
            kept.extend_from_slice(&staged);
            wire.give_back(staged);
        }
        sent
    }

    /// Sends `bytes` after what is staged, and buffers what cannot be sent yet. Errors: the connection failed.
    pub fn send(&mut self, bytes: &[u8], wire: &mut Wire) -> Result<(), Fault> {
        if self.staged.is_empty() && self.phase == Phase::Open {
            return self.pass(bytes, wire);
        }
        self.stage(wire).extend_from_slice(bytes);
        self.commit(wire)
    }

    /// As [`Transport::send`] for `buf[at..]`, without copying it: what is staged, a head as a rule, is copied before it,
    /// over bytes of `buf` that the caller has done with. Errors: as [`Transport::send`].
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

    /// Sends `bytes` in the clear once connected, before all else: before a handshake, too. Call on a connection that was just
    /// dialled.
    pub fn announce(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Continues when the socket is writable: completes the connection, sends buffered bytes.
    /// Errors: [`Fault::Connect`] when the connection was refused, else as [`Transport::send`].
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

    /// Closes our side after all bytes (with close_notify in TLS); those staged before the connection was open are lost.
    /// The last bytes and the end of the stream leave together. The peer may keep sending.
    /// Errors: as [`Transport::send`].
    pub fn finish(&mut self, wire: &mut Wire) -> Result<(), Fault> {
        if self.finishing {
            return Ok(());
        }
        self.finishing = true;
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

    /// As [`Transport::finish`], and goes on to receive what the peer sends. Errors: as [`Transport::send`].
    pub fn finish_sending(&mut self) -> Result<(), Fault> {
        if self.finishing {
            return Ok(());
        }
        self.finishing = true;
        if let Some(session) = &mut self.session {
            session.close_sending(&mut self.out);
        }
        self.flush()
    }

    /// Closes our side after buffered bytes with FIN only: a TLS peer cannot tell whether the stream was truncated
    /// (RFC 8446 section 6.1). The peer may keep sending. Errors: as [`Transport::send`].
    pub fn finish_bare(&mut self) -> Result<(), Fault> {
        self.finishing = true;
        self.flush()
    }

    fn opened(&mut self, wire: &mut Wire) -> Result<(), Fault> {
        self.phase = Phase::Open;
        self.commit(wire)
    }

    /// Passes application bytes on, through TLS if there is one.
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

    /// Passes bytes to the socket after those buffered.
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
        let written = match self.finishing {
            true => self.socket.write_last(bytes),
            false => self.socket.write(bytes),
        };
        let written = written.map_err(Fault::Socket);
        match &written {
            Ok(bytes) => self.taken += *bytes as u64,
            Err(_) => self.failed = true,
        }
        written
    }

    /// As [`Transport::flush`]; a buffer that is empty then goes back.
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
            if self.finishing {
                self.socket.finish();
            }
        } else if self.sent > self.out.len() / 2 {
            // With a slow peer, sent bytes must not pile up at the front of the buffer.
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
        // Regression test: sent bytes stayed at the front of the buffer while anything waited, so a slow, steady
        // reader made the buffer as large as everything ever sent to it.
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
