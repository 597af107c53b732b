//! Network namespaces: created and removed with `ip` (iproute2), entered by a thread.
//!
//! Their names identify their creator (`weir-PID-N-load`), so that leftovers of a killed lab can be removed.

use crate::error::NetError;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where iproute2 keeps named namespaces.
const DIRECTORY: &str = "/run/netns";
const PREFIX: &str = "weir-";

/// A new namespace has the kernel's defaults; copy the host's settings into it.
const INHERITED: [&str; 10] = [
    "net/core/somaxconn",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_max_tw_buckets",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_wmem",
];

/// A named network namespace. Dropping it removes the name; it disappears with its last process.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates `weir-PID-NUMBER-PART`, with loopback up and the host's TCP settings.
    pub(crate) fn make(number: u32, part: &str) -> Result<Self, NetError> {
        let name = format!("{PREFIX}{}-{number}-{part}", std::process::id());
        if Path::new(DIRECTORY).join(&name).exists() {
            // Left by a killed lab with our PID.
            ip(&["netns", "del", &name])?;
        }
        ip(&["netns", "add", &name])?;
        let made = Self { name };
        let inherited: Vec<_> =
            INHERITED.iter().filter_map(|key| Some((*key, fs::read(sysctl(key)).ok()?))).collect();
        made.inside(|| {
            for (key, value) in inherited {
                // Not every kernel has every key in every namespace.
                let _ = fs::write(sysctl(key), value);
            }
            // No IPv6 housekeeping packets; a kernel without IPv6 lacks this key.
            let _ = fs::write(sysctl("net/ipv6/conf/all/disable_ipv6"), "1");
            let _ = fs::write(sysctl("net/ipv6/conf/default/disable_ipv6"), "1");
        })?;
        made.ip(&["link", "set", "lo", "up"])?;
        Ok(made)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `ip` within it.
    pub(crate) fn ip(&self, words: &[&str]) -> Result<(), NetError> {
        ip(&[&["-n", self.name.as_str()], words].concat())
    }

    /// The command prefix to run a program in it.
    ///
    /// Not `ip netns exec`: it mounts a new `/sys`, without the cgroups.
    /// `nsenter` only changes the network and execs the program, which keeps PID, process group and cores.
    pub(crate) fn prefix(&self) -> Vec<String> {
        vec!["nsenter".into(), format!("--net={}", path(&self.name).display()), "--".into()]
    }

    /// Calls `work` on a thread in the namespace; sockets it opens stay there.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NetError> {
        inside(&self.name, work).map_err(|source| NetError::Namespace { name: self.name.clone(), source })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The next lab finds what cannot be removed now.
        let _ = ip(&["netns", "del", &self.name]);
    }
}

/// The next number for this process, which may have several networks at once.
pub(crate) fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Calls `work` on a thread in the namespace of this name.
pub(crate) fn inside<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let namespace = File::open(path(name))?;
    let called = std::thread::scope(|scope| {
        let enter_and_work = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        };
        scope.spawn(enter_and_work).join()
    });
    called.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Removes the namespaces of dead labs; returns their names.
///
/// # Errors
/// As `ip netns del`, for the first that could not be removed.
pub fn clean_dead() -> Result<Vec<String>, NetError> {
    clean(|lab| !Path::new("/proc").join(lab.to_string()).exists())
}

/// Removes the namespaces of one lab; returns their names.
///
/// # Errors
/// As [`clean_dead`].
pub fn clean_of(lab: u32) -> Result<Vec<String>, NetError> {
    clean(|other| other == lab)
}

fn clean(is_gone: impl Fn(u32) -> bool) -> Result<Vec<String>, NetError> {
    let Ok(entries) = fs::read_dir(DIRECTORY) else { return Ok(Vec::new()) };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut removed = Vec::new();
    for name in names {
        if !owner(&name).is_some_and(&is_gone) {
            continue;
        }
        match ip(&["netns", "del", &name]) {
            Ok(()) => removed.push(name),
            // Another lab, or the guard, removed it first.
            Err(_) if !path(&name).exists() => {}
            Err(error) => return Err(error),
        }
    }
    removed.sort();
    Ok(removed)
}

/// The PID of the lab that created this namespace, if any.
fn owner(name: &str) -> Option<u32> {
    let mut words = name.strip_prefix(PREFIX)?.split('-');
    let pid = words.next()?.parse().ok()?;
    let _number: u32 = words.next()?.parse().ok()?;
    (matches!(words.next(), Some("load" | "gateway" | "origin")) && words.next().is_none()).then_some(pid)
}

fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

fn sysctl(key: &str) -> PathBuf {
    Path::new("/proc/sys").join(key)
}

pub(crate) fn ip(words: &[&str]) -> Result<(), NetError> {
    run("ip", "iproute2", words)
}

/// Runs a program to completion; `package` is its distribution package.
pub(crate) fn run(program: &str, package: &str, words: &[&str]) -> Result<(), NetError> {
    let said = |message: String| NetError::Command(format!("{program} {}: {message}", words.join(" ")));
    match Command::new(program).args(words).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(said(String::from_utf8_lossy(&output.stderr).trim().replace('\n', ": "))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(NetError::Missing(format!(
            "net.kind = \"veth\" needs `{program}` (package {package}) in PATH"
        ))),
        Err(error) => Err(said(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_lab_gives_have_an_owner() {
        assert_eq!(owner("weir-12-0-load"), Some(12));
        assert_eq!(owner("weir-4194304-17-gateway"), Some(4_194_304));
        for other in [
            "weir",
            "weir-12",
            "weir-12-load",
            "weir-12-0-vpn",
            "weir-x-0-load",
            "weir-12-0-load-a",
            "a-weir-1-0-load",
        ] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn a_missing_program_and_its_package_are_named() {
        let error = run("weir-has-no-such-program", "some-package", &["x"]).expect_err("there is none");
        let expected = "network: net.kind = \"veth\" needs `weir-has-no-such-program` (package some-package) \
                        in PATH";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_failed_command_is_reported_with_its_output() {
        let error = run("sh", "dash", &["-c", "echo no such thing >&2; exit 1"]).expect_err("it fails");
        assert_eq!(error.to_string(), "network: sh -c echo no such thing >&2; exit 1: no such thing");
    }
}
