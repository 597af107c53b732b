//! The channel between the two processes of an upgrade: packets of JSON over a pair of Unix sockets, with descriptors.
//!
//! The new process gets its socket as standard input, the only way to inherit a descriptor without `unsafe`. It
//! receives all other descriptors through this socket (`SCM_RIGHTS`), as [`OwnedFd`].

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recv, recvmsg, send, sendmsg,
    shutdown, socketpair, sockopt,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use weir_tls::{TICKET_SECRET_LEN, Zeroizing};

#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    /// The deadline for every wait for the other side.
    until: Option<Instant>,
}

/// The maximum number of descriptors in a packet. The kernel accepts 253, but their descriptions must fit in the
/// packet, too.
pub(super) const MOST: usize = 64;

/// The size of a packet, enough for [`MOST`] sockets with paths of 107 bytes.
const PACKET: usize = 64 * 1024;

impl Channel {
    fn new(socket: OwnedFd) -> Self {
        Self { socket, until: None }
    }

    /// This side, and the socket for the new process. Errors: as socketpair(2).
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        // Packets keep each message together with its descriptors.
        let kind = SocketType::SEQPACKET;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        Ok((Self::new(ours), theirs))
    }

    /// Both sides, in one process.
    #[cfg(test)]
    pub(super) fn both() -> (Self, Self) {
        let (ours, theirs) = Self::pair().unwrap();
        (ours, Self::new(theirs))
    }

    /// Takes the side that is this process's standard input, and replaces standard input with `/dev/null`. Errors:
    /// standard input is another file.
    pub(super) fn of_stdin() -> io::Result<Self> {
        let stdin = io::stdin();
        if sockopt::socket_type(&stdin).ok() != Some(SocketType::SEQPACKET) {
            return Err(io::Error::other("standard input is none"));
        }
        let ours = stdin.as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        Ok(Self::new(ours))
    }

    pub(super) fn until(self, until: Instant) -> Self {
        Self { until: Some(until), ..self }
    }

    /// Waits until the other side sends or closes, at most until `until`. Errors: as poll(2), or a timeout.
    pub(super) fn wait(&self, until: Instant) -> io::Result<()> {
        loop {
            let left = Timespec::try_from(until.saturating_duration_since(Instant::now()));
            let left = left.map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&left)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes the message that the other side has sent, without waiting. From now on the other side gets an error if it
    /// sends, so both sides agree on the last message. Errors: as [`Channel::receive`].
    pub(super) fn last<T: DeserializeOwned>(&self) -> io::Result<(T, Vec<OwnedFd>)> {
        shutdown(&self.socket, Shutdown::Read)?;
        self.receive()
    }

    /// Closes the sending side. A process at [`Channel::wait`] on the other side continues.
    pub(super) fn close(&self) {
        let _ = shutdown(&self.socket, Shutdown::Write);
    }

    /// Limits the next operation to the time until the deadline.
    fn hurry(&self, direction: sockopt::Timeout) -> io::Result<()> {
        let Some(until) = self.until else { return Ok(()) };
        // A timeout of 0 would mean no timeout, so use at least the kernel's shortest one. Even so, a message that has
        // already arrived is received.
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_micros(1));
        Ok(sockopt::set_socket_timeout(&self.socket, direction, Some(left))?)
    }

    /// Sends a message with at most [`MOST`] descriptors. Errors: as sendmsg(2).
    pub(super) fn send(&self, message: &impl Serialize, with: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); SPACE];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !with.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(with)) {
            return Err(io::Error::other("too many descriptors for one packet"));
        }
        self.hurry(sockopt::Timeout::Send)?;
        sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits for a message and its descriptors. Errors: as recvmsg(2), the other side has closed, or the message is
    /// unknown to this version.
    pub(super) fn receive<T: DeserializeOwned>(&self) -> io::Result<(T, Vec<OwnedFd>)> {
        let mut bytes = vec![0; PACKET];
        let mut space = [MaybeUninit::uninit(); SPACE];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        self.hurry(sockopt::Timeout::Recv)?;
        let received = rustix::io::retry_on_intr(|| {
            recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC)
        })?;
        let mut descriptors = Vec::new();
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::Error::other("a message is too long, or there is no room for its descriptors"));
        }
        let message = serde_json::from_slice(&bytes[..received.bytes]);
        let message = message.map_err(|error| io::Error::other(format!("unknown message: {error}")))?;
        Ok((message, descriptors))
    }

    /// Sends a secret in a separate packet. Errors: as send(2).
    pub(super) fn send_secret(&self, secret: &[u8; TICKET_SECRET_LEN]) -> io::Result<()> {
        self.hurry(sockopt::Timeout::Send)?;
        send(&self.socket, secret, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Sends bytes that may contain a key, in separate packets. Errors: as send(2).
    pub(super) fn send_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(PACKET) {
            self.hurry(sockopt::Timeout::Send)?;
            send(&self.socket, part, SendFlags::NOSIGNAL)?;
        }
        Ok(())
    }

    /// Waits for `length` bytes from [`Channel::send_bytes`]. Dropping the bytes overwrites them with zeros. Errors: as
    /// recv(2), the other side has closed, or a packet has another length.
    pub(super) fn receive_bytes(&self, length: usize) -> io::Result<Zeroizing<Vec<u8>>> {
        let mut bytes = Zeroizing::new(vec![0; length]);
        for part in bytes.chunks_mut(PACKET) {
            self.hurry(sockopt::Timeout::Recv)?;
            let (_, received) =
                rustix::io::retry_on_intr(|| recv(&self.socket, &mut *part, RecvFlags::TRUNC))?;
            match received {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                received if received == part.len() => {}
                _ => return Err(io::Error::other("a packet has another length")),
            }
        }
        Ok(bytes)
    }

    /// Waits for a secret. Errors: as recv(2), or the packet has another length.
    pub(super) fn receive_secret(&self) -> io::Result<[u8; TICKET_SECRET_LEN]> {
        let mut secret = [0; TICKET_SECRET_LEN];
        let (_, length) = rustix::net::recv(&self.socket, &mut secret, RecvFlags::TRUNC)?;
        match length == secret.len() {
            true => Ok(secret),
            false => Err(io::Error::other("the secret of tickets has another length")),
        }
    }
}

const SPACE: usize = rustix::cmsg_space!(ScmRights(MOST));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_whole_with_their_descriptors() {
        let (ours, theirs) = Channel::both();
        let files: Vec<_> = (0..MOST).map(|_| tempfile::tempfile().unwrap()).collect();
        let with: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        ours.send(&"first", &with).unwrap();
        ours.send(&"second", &[]).unwrap();
        ours.send_secret(&[7; TICKET_SECRET_LEN]).unwrap();
        let (first, descriptors) = theirs.receive::<String>().unwrap();
        assert_eq!((first.as_str(), descriptors.len()), ("first", MOST));
        for (descriptor, file) in descriptors.iter().zip(&files) {
            let inode = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).unwrap().st_ino;
            assert_eq!(inode(descriptor.as_fd()), inode(file.as_fd()), "in their order");
            let flags = rustix::io::fcntl_getfd(descriptor).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        }
        let (second, descriptors) = theirs.receive::<String>().unwrap();
        assert_eq!((second.as_str(), descriptors.len()), ("second", 0));
        assert_eq!(theirs.receive_secret().unwrap(), [7; TICKET_SECRET_LEN]);
        drop(ours);
        assert_eq!(theirs.receive::<String>().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_no_message_or_does_not_come_is_an_error() {
        let (ours, theirs) = Channel::both();
        ours.send(&1, &[]).unwrap();
        assert!(theirs.receive::<String>().unwrap_err().to_string().starts_with("unknown message: "));
        ours.send(&"not as long", &[]).unwrap();
        assert!(theirs.receive_secret().is_err());
        let soon = Instant::now() + Duration::from_millis(10);
        assert_eq!(theirs.wait(soon).unwrap_err().kind(), io::ErrorKind::TimedOut);
        let theirs = theirs.until(soon);
        ours.send(&"in time", &[]).unwrap();
        assert_eq!(theirs.receive::<String>().unwrap().0, "in time", "though the time is over");
        assert_eq!(theirs.receive::<String>().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    /// Either the receiver gets a message, or its sender gets an error.
    #[test]
    fn after_the_last_word_there_is_none() {
        let (ours, theirs) = Channel::both();
        theirs.send(&"heard", &[]).unwrap();
        assert_eq!(ours.last::<String>().unwrap().0, "heard");
        assert_eq!(theirs.send(&"late", &[]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(ours.last::<String>().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        ours.send(&"still", &[]).unwrap();
        assert_eq!(theirs.receive::<String>().unwrap().0, "still");
        ours.close();
        assert_eq!(theirs.receive::<String>().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
