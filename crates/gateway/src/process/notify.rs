//! Reports the state of the process to a supervisor, as sd_notify(3).

use rustix::time::{ClockId, clock_gettime};
use std::env;
use std::fmt::Display;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, PoisonError};

/// The socket of the supervisor, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Supervisor(Option<Arc<Line>>);

#[derive(Debug)]
struct Line {
    address: SocketAddr,
    state: Mutex<NotifyState>,
}

/// Whether this process reports the state of the service to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotifyState {
    /// Not yet, since an old process may still report.
    Waiting,
    Active,
    /// No longer: this process is draining, or another one has replaced it.
    Finished,
}

impl Supervisor {
    /// The supervisor that `NOTIFY_SOCKET` names.
    pub(crate) fn of_environment() -> Self {
        let socket = env::var_os("NOTIFY_SOCKET").map(OsStringExt::into_vec);
        let address = socket.and_then(|socket| match socket.strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name).ok(),
            None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(&socket)).ok(),
        });
        Self(address.map(|address| Arc::new(Line { address, state: Mutex::new(NotifyState::Waiting) })))
    }

    /// Reports the first READY. From now on, this process reports the state of the service.
    pub(crate) fn serving(&self) {
        self.send(&[NotifyState::Waiting], NotifyState::Active, &format!("READY=1\n{}", line("serving")));
    }

    /// Reports that the process serves again, after a reload.
    pub(crate) fn ready(&self, status: impl Display) {
        self.report(&format!("READY=1\n{}", line(status)));
    }

    /// Reports a reload, which lasts until [`Supervisor::ready`].
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let since = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000;
        self.report(&format!("RELOADING=1\nMONOTONIC_USEC={since}\nSTATUS=reloading"));
    }

    /// Reports a drain, in this process's last message.
    pub(crate) fn stopping(&self) {
        self.send(
            &[NotifyState::Waiting, NotifyState::Active],
            NotifyState::Finished,
            "STOPPING=1\nSTATUS=draining",
        );
    }

    /// Reports a status without a change of state.
    pub(crate) fn status(&self, status: impl Display) {
        self.report(&line(status));
    }

    /// Reports, in this process's last message, the ID of the process that provides the service from now on.
    pub(crate) fn is_replaced_by(&self, pid: u32) {
        self.send(
            &[NotifyState::Waiting, NotifyState::Active],
            NotifyState::Finished,
            &format!("MAINPID={pid}"),
        );
    }

    fn report(&self, message: &str) {
        self.send(&[NotifyState::Active], NotifyState::Active, message);
    }

    /// Sends the message if the state is one of `from`, and changes the state to `to`.
    fn send(&self, from: &[NotifyState], to: NotifyState, message: &str) {
        let Some(line) = &self.0 else { return };
        let mut state = line.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !from.contains(&state) {
            return;
        }
        *state = to;
        // Errors are ignored and sending never blocks, since a missing or busy supervisor must not affect the gateway.
        let _ = UnixDatagram::unbound().and_then(|socket| {
            socket.set_nonblocking(true)?;
            socket.send_to_addr(message.as_bytes(), &line.address)
        });
    }
}

/// A STATUS message, on one line.
fn line(status: impl Display) -> String {
    format!("STATUS={}", status.to_string().replace(['\n', '\r'], " "))
}
