//! The line between two processes of an upgrade: packets of JSON over a pair of Unix sockets, with descriptors beside them.
//!
//! One of the pair is the new process's standard input: the one way to inherit a descriptor that needs no `unsafe`. All others
//! travel through it (`SCM_RIGHTS`), and arrive as descriptors of a type that closes them.

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, send, sendmsg, socketpair, sockopt,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;
use weir_tls::TICKET_SECRET_LEN;

/// One end.
#[derive(Debug)]
pub(crate) struct Channel(OwnedFd);

/// Descriptors in a packet. The kernel takes 253; their description fits a packet in any case.
pub(super) const MOST: usize = 64;

/// More than 64 sockets need, with paths of 107 bytes.
const PACKET: usize = 64 * 1024;

impl Channel {
    /// One end, and the other one for the new process. Errors: as socketpair(2).
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        // Packets, so that each message has its descriptors, and none is read in part.
        let kind = SocketType::SEQPACKET;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        Ok((Self(ours), theirs))
    }

    /// The end that this process has as its standard input, which becomes `/dev/null`. Errors: it has none.
    pub(super) fn of_stdin() -> io::Result<Self> {
        let stdin = io::stdin();
        if sockopt::socket_type(&stdin).ok() != Some(SocketType::SEQPACKET) {
            return Err(io::Error::other("standard input is none"));
        }
        let ours = stdin.as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        Ok(Self(ours))
    }

    /// From now on, nothing waits longer for the other end. Errors: as setsockopt(2).
    pub(super) fn limit(&self, time: Duration) -> io::Result<()> {
        for timeout in [sockopt::Timeout::Recv, sockopt::Timeout::Send] {
            sockopt::set_socket_timeout(&self.0, timeout, Some(time))?;
        }
        Ok(())
    }

    /// Sends a message with at most [`MOST`] descriptors. Errors: as sendmsg(2).
    pub(super) fn send(&self, message: &impl Serialize, with: &[BorrowedFd<'_>]) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); SPACE];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !with.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(with)) {
            return Err(io::Error::other("too many descriptors for one packet"));
        }
        sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits for a message and its descriptors. Errors: as recvmsg(2), the other end is closed, or it is no message that this
    /// version knows.
    pub(super) fn receive<T: DeserializeOwned>(&self) -> io::Result<(T, Vec<OwnedFd>)> {
        let mut bytes = vec![0; PACKET];
        let mut space = [MaybeUninit::uninit(); SPACE];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::io::retry_on_intr(|| {
            recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC)
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

    /// Sends a secret, which is in no message. Errors: as send(2).
    pub(super) fn send_secret(&self, secret: &[u8; TICKET_SECRET_LEN]) -> io::Result<()> {
        send(&self.0, secret, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits for one. Errors: as recv(2), or it is none.
    pub(super) fn receive_secret(&self) -> io::Result<[u8; TICKET_SECRET_LEN]> {
        let mut secret = [0; TICKET_SECRET_LEN];
        let (_, length) = rustix::net::recv(&self.0, &mut secret, RecvFlags::TRUNC)?;
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
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = Channel(theirs);
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
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = Channel(theirs);
        ours.send(&1, &[]).unwrap();
        assert!(theirs.receive::<String>().unwrap_err().to_string().starts_with("unknown message: "));
        ours.send(&"not as long", &[]).unwrap();
        assert!(theirs.receive_secret().is_err());
        theirs.limit(Duration::from_millis(10)).unwrap();
        assert_eq!(theirs.receive::<String>().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
