//! The transfer of an admin address from a draining process to a new one, which claims it. The two processes may be
//! unrelated, so the claim uses a Unix socket in the abstract namespace: the socket closes with its process, and
//! belongs to the same network namespace as the address.

use rustix::net::sockopt::socket_peercred;
use rustix::process::Uid;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;
use weir_reactor::Address;

/// The socket that receives claims to an address.
#[derive(Debug)]
pub(crate) struct Claims(UnixListener);

/// A claim: the connection of a process that waits for the address.
#[derive(Debug)]
pub(crate) struct Claim(UnixStream);

impl Claims {
    /// Listens for claims. Errors: another process already listens for them, or the path of the admin address's Unix
    /// socket is too long.
    pub(super) fn open(address: &Address) -> io::Result<Self> {
        let claims = UnixListener::bind_addr(&name(address)?)?;
        claims.set_nonblocking(true)?;
        Ok(Self(claims))
    }

    /// Takes a waiting claim. Only the user of this process and root may claim the address.
    pub(super) fn take(&self) -> Option<Claim> {
        let (stream, _) = self.0.accept().ok()?;
        let user = socket_peercred(&stream).ok()?.uid;
        // A listening socket has the credentials of the process that called listen(2).
        let own = socket_peercred(&self.0).ok()?.uid;
        (user == own || user == Uid::ROOT).then_some(Claim(stream))
    }
}

impl AsFd for Claims {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Claim {
    /// Reports to the waiting process that the address is free.
    pub(crate) fn grant(self) {
        // The write fails if the process no longer waits. Its own attempt to bind then shows it whether the address is
        // free.
        let _ = (&self.0).write_all(&GRANTED);
    }
}

/// Asks the process that serves an address to release the address; only a draining process agrees. Returns whether the
/// process has released the address.
pub(crate) fn ask(address: &Address) -> bool {
    let ask = || {
        let mut stream = UnixStream::connect_addr(&name(address)?)?;
        stream.set_read_timeout(Some(WITHIN))?;
        let mut word = [0; GRANTED.len()];
        stream.read_exact(&mut word)?;
        Ok::<_, io::Error>(word == GRANTED)
    };
    ask().unwrap_or(false)
}

fn name(address: &Address) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("weir/claim/{address}"))
}

const GRANTED: [u8; 1] = *b"+";

/// The timeout of a claim. The thread that grants it is rarely busy.
const WITHIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn address(text: &str) -> Address {
        Address::Unix(format!("/run/{}/{text}", std::process::id()).into())
    }

    #[test]
    fn an_address_is_granted_to_a_claim_and_no_other_is() {
        let (ours, other) = (address("ours"), address("other"));
        assert!(!ask(&ours), "nobody serves it");
        let claims = Claims::open(&ours).unwrap();
        assert!(claims.take().is_none());
        assert!(!ask(&other));
        assert!(Claims::open(&ours).is_err(), "one process has it");
        let asking = thread::spawn({
            let ours = ours.clone();
            move || ask(&ours)
        });
        let claim = loop {
            if let Some(claim) = claims.take() {
                break claim;
            }
            thread::yield_now();
        };
        claim.grant();
        assert!(asking.join().unwrap());
        drop(claims);
        assert!(!ask(&ours));
        assert!(Claims::open(&address(&"long/".repeat(30))).is_err(), "it has no room");
    }
}
