//! Tells a supervisor how the process fares, as sd_notify(3) does.

use rustix::time::{ClockId, clock_gettime};
use std::env;
use std::fmt::Display;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;

/// Where the supervisor listens, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Supervisor(Option<Arc<SocketAddr>>);

impl Supervisor {
    /// The one that `NOTIFY_SOCKET` names.
    pub(crate) fn of_environment() -> Self {
        let socket = env::var_os("NOTIFY_SOCKET").map(OsStringExt::into_vec);
        let address = socket.and_then(|socket| match socket.strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name).ok(),
            None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(&socket)).ok(),
        });
        Self(address.map(Arc::new))
    }

    /// Serving, since the start or again.
    pub(crate) fn ready(&self, status: impl Display) {
        self.tell(&format!("READY=1\n{}", line(status)));
    }

    /// Reloading, until it is ready again.
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let since = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={since}\nSTATUS=reloading"));
    }

    /// Draining, and ending.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=draining");
    }

    /// A status alone.
    pub(crate) fn status(&self, status: impl Display) {
        self.tell(&line(status));
    }

    /// Another process is the service from now on.
    pub(crate) fn is_replaced_by(&self, pid: u32) {
        self.tell(&format!("MAINPID={pid}"));
    }

    fn tell(&self, state: &str) {
        let Some(address) = &self.0 else { return };
        // Who supervises may be gone; that is no reason to stop, or to wait.
        let _ = UnixDatagram::unbound().and_then(|socket| {
            socket.set_nonblocking(true)?;
            socket.send_to_addr(state.as_bytes(), address)
        });
    }
}

/// The status is a line.
fn line(status: impl Display) -> String {
    format!("STATUS={}", status.to_string().replace(['\n', '\r'], " "))
}
