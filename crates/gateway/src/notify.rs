//! Tells a supervisor how the process fares, as sd_notify(3) does.

use rustix::time::{ClockId, clock_gettime};
use std::env;
use std::fmt::Display;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, PoisonError};

/// The line to the supervisor, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Supervisor(Option<Arc<Line>>);

#[derive(Debug)]
struct Line {
    address: SocketAddr,
    voice: Mutex<Voice>,
}

/// Whether this process speaks for the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voice {
    /// Not yet: another process may still do.
    Waits,
    Speaks,
    /// It drains, or another process has taken its place: nothing it says is about the service any more.
    IsDone,
}

impl Supervisor {
    /// The one that `NOTIFY_SOCKET` names.
    pub(crate) fn of_environment() -> Self {
        let socket = env::var_os("NOTIFY_SOCKET").map(OsStringExt::into_vec);
        let address = socket.and_then(|socket| match socket.strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name).ok(),
            None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(&socket)).ok(),
        });
        Self(address.map(|address| Arc::new(Line { address, voice: Mutex::new(Voice::Waits) })))
    }

    /// Serving, since the start: from now on this process is heard.
    pub(crate) fn serving(&self) {
        self.tell(&[Voice::Waits], Voice::Speaks, &format!("READY=1\n{}", line("serving")));
    }

    /// Serving again.
    pub(crate) fn ready(&self, status: impl Display) {
        self.speak(&format!("READY=1\n{}", line(status)));
    }

    /// Reloading, until it is ready again.
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let since = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000;
        self.speak(&format!("RELOADING=1\nMONOTONIC_USEC={since}\nSTATUS=reloading"));
    }

    /// Draining, and ending: the last word.
    pub(crate) fn stopping(&self) {
        self.tell(&[Voice::Waits, Voice::Speaks], Voice::IsDone, "STOPPING=1\nSTATUS=draining");
    }

    /// A status alone.
    pub(crate) fn status(&self, status: impl Display) {
        self.speak(&line(status));
    }

    /// Another process is the service from now on: the last word of this one.
    pub(crate) fn is_replaced_by(&self, pid: u32) {
        self.tell(&[Voice::Waits, Voice::Speaks], Voice::IsDone, &format!("MAINPID={pid}"));
    }

    fn speak(&self, state: &str) {
        self.tell(&[Voice::Speaks], Voice::Speaks, state);
    }

    /// Only with one of these voices, and with the other one from then on.
    fn tell(&self, with: &[Voice], then: Voice, state: &str) {
        let Some(line) = &self.0 else { return };
        let mut voice = line.voice.lock().unwrap_or_else(PoisonError::into_inner);
        if !with.contains(&voice) {
            return;
        }
        *voice = then;
        // Who supervises may be gone; that is no reason to stop, or to wait.
        let _ = UnixDatagram::unbound().and_then(|socket| {
            socket.set_nonblocking(true)?;
            socket.send_to_addr(state.as_bytes(), &line.address)
        });
    }
}

/// The status is a line.
fn line(status: impl Display) -> String {
    format!("STATUS={}", status.to_string().replace(['\n', '\r'], " "))
}
