//! Sockets from systemd, by sd_listen_fds(3).

use super::{Given, Label};
use listenfd::ListenFd;
use std::env;
use std::os::fd::OwnedFd;
use weir_reactor::Listener;
use weir_reactor::listener::Hold;

/// Takes the sockets that the environment names. Errors: the process cannot listen on one of them.
pub(crate) fn sockets() -> Result<Vec<Given>, String> {
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    // The list is empty without LISTEN_FDS, or if LISTEN_PID names another process.
    let mut all = ListenFd::from_env();
    let mut sockets = Vec::new();
    for index in 0..all.len() {
        let name = names.next().unwrap_or_default();
        let wrong = |why: String| format!("LISTEN_FDS: socket {index} `{name}`: {why}");
        let socket = match all.take_tcp_listener(index) {
            Ok(socket) => socket.map(OwnedFd::from),
            Err(_) => {
                all.take_unix_listener(index).map_err(|error| wrong(error.to_string()))?.map(OwnedFd::from)
            }
        };
        let Some(socket) = socket else { continue };
        let listener = Listener::inherit(socket, Hold::Lent).map_err(|error| wrong(error.to_string()))?;
        sockets.push(Given { listener, label: Label::Named(name.to_owned()) });
    }
    Ok(sockets)
}
