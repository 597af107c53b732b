//! The syntax of servers to account: `[ROLE=]PID`, `[ROLE=]DIR`, `[ROLE=]COMMAND`, where ROLE is `gateway` (the
//! default) or `origin`.

use crate::options::{Meter, Server};
use crate::result::Role;

/// `--pid [ROLE=]PID`: a local process with its descendants.
///
/// # Errors
/// When it is not a PID.
pub fn process(text: &str) -> Result<Server, String> {
    let (role, pid) = role(text);
    match pid.parse() {
        Ok(pid) if i32::try_from(pid).is_ok_and(|pid| pid > 0) => {
            Ok(Server { role, meter: Meter::Process(pid) })
        }
        _ => Err(format!("invalid PID `{pid}`: expected {}", form("PID"))),
    }
}

/// `--cgroup [ROLE=]DIR`: a local cgroup.
///
/// # Errors
/// When the directory is missing.
pub fn cgroup(text: &str) -> Result<Server, String> {
    match role(text) {
        (_, "") => Err(format!("missing directory: expected {}", form("DIR"))),
        (role, directory) => Ok(Server { role, meter: Meter::Cgroup(directory.into()) }),
    }
}

/// `--cpu-command [ROLE=]COMMAND`: `sh -c COMMAND` prints the CPU used so far: seconds, a cgroup's `cpu.stat`,
/// or the lines of /proc/PID/task/*/schedstat.
///
/// # Errors
/// When the command is missing.
pub fn command(text: &str) -> Result<Server, String> {
    match role(text) {
        (_, command) if command.trim().is_empty() => {
            Err(format!("missing command: expected {}", form("COMMAND")))
        }
        (role, command) => Ok(Server { role, meter: Meter::Command(command.to_string()) }),
    }
}

/// Only known roles count as a prefix: `A=1 ssh host ..` is a command.
fn role(text: &str) -> (Role, &str) {
    match text.split_once('=') {
        Some(("gateway", rest)) => (Role::Gateway, rest),
        Some(("origin", rest)) => (Role::Origin, rest),
        _ => (Role::default(), text),
    }
}

fn form(what: &str) -> String {
    format!("{what}, gateway={what} or origin={what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_as_flags_write_them() {
        let server = |role, meter| Ok(Server { role, meter });
        for (text, role, pid) in [
            ("4711", Role::Gateway, 4711),
            ("gateway=1", Role::Gateway, 1),
            ("origin=2147483647", Role::Origin, i32::MAX as u32),
        ] {
            assert_eq!(process(text), server(role, Meter::Process(pid)));
        }
        for (text, role, directory) in [
            ("/sys/fs/cgroup/a", Role::Gateway, "/sys/fs/cgroup/a"),
            ("origin=/sys/fs/cgroup/a=b", Role::Origin, "/sys/fs/cgroup/a=b"),
            ("/sys/fs/cgroup/a=b", Role::Gateway, "/sys/fs/cgroup/a=b"),
        ] {
            assert_eq!(cgroup(text), server(role, Meter::Cgroup(directory.into())));
        }
        for (text, role, line) in [
            ("ssh h cat /x", Role::Gateway, "ssh h cat /x"),
            ("origin=ssh h cat /x", Role::Origin, "ssh h cat /x"),
            ("A=1 ssh h", Role::Gateway, "A=1 ssh h"),
        ] {
            assert_eq!(command(text), server(role, Meter::Command(line.to_string())));
        }
    }

    #[test]
    fn what_cannot_be_accounted_names_what_is_allowed() {
        for text in ["", "0", "-1", "4294967295", "nginx", "client=7", "origin=", "origin=x"] {
            let error = process(text).unwrap_err();
            assert!(error.contains("PID, gateway=PID or origin=PID"), "{text}: {error}");
        }
        assert!(cgroup("").unwrap_err().contains("gateway=DIR"));
        assert!(cgroup("origin=").unwrap_err().contains("origin=DIR"));
        assert!(command("gateway= ").unwrap_err().contains("gateway=COMMAND"));
    }
}
