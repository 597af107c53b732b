//! The assignment of old sockets to new listeners.

use super::*;
use crate::config::compile;
use crate::config::document::Config;
use crate::process::sockets::{Given, Sockets};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

const WORKERS: usize = 2;

/// The listeners with these names and addresses, and the permissions of Unix sockets.
fn sites(listeners: &[(&str, &str)], mode: &str) -> Vec<Site> {
    let listener = |(name, bind): &(&str, &str)| {
        let mode = if bind.starts_with("unix:") { format!("mode = '{mode}'\n") } else { String::new() };
        format!("[listener.{name}]\nbind = '{bind}'\n{mode}")
    };
    let listeners: String = listeners.iter().map(listener).collect();
    let config: Config = toml::from_str(&format!("{listeners}[[route]]\nrespond.status = 200\n")).unwrap();
    compile(&config, &mut Findings::default()).unwrap().listeners
}

struct Process {
    rebinder: Rebinder,
    kept: Vec<OpenSocket>,
    shares: Shares,
}

impl Process {
    fn new(sites: &[Site], given: Vec<Given>) -> Self {
        let Sockets { shares, kept, .. } = Sockets::new(sites, &[], WORKERS, given).unwrap();
        kept.iter().for_each(|kept| kept.begin().unwrap());
        Self { rebinder: Rebinder::new(sites, &kept, WORKERS), kept, shares }
    }

    /// Changes to these listeners, as in a reload. Returns the numbers of their addresses.
    fn change(&mut self, mut sites: Vec<Site>) -> Result<(Vec<u32>, Rebound), String> {
        let rebinding = self.rebinder.prepare(&mut sites).map_err(|findings| findings.to_string())?;
        let rebound = rebinding.commit(&mut self.kept, &mut self.rebinder);
        Ok((sites.iter().map(|site| site.id.0).collect(), rebound.map_err(|fault| fault.to_string())?))
    }

    fn address_of(&self, name: &str) -> SocketAddr {
        let mut kept = self.kept.iter().filter(|kept| kept.name == name);
        kept.next().unwrap().listener.address().tcp().unwrap()
    }

    /// The names and places of the handles that an upgrade would pass on.
    fn handed(&self) -> Vec<(&str, &str)> {
        self.kept.iter().map(|kept| (&*kept.name, &*kept.place)).collect()
    }
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn an_address_that_stays_keeps_its_sockets_and_its_number() {
    let [a, b] = ["127.0.0.1:0", "127.0.0.2:0"];
    let mut process = Process::new(&sites(&[("x", a), ("y", b)], ""), Vec::new());
    let at = ["x", "y"].map(|name| process.address_of(name));
    // The cases: the same listeners, swapped names, another name, another notation of an address.
    let exact = at[0].to_string();
    for (listeners, expected, names) in [
        ([("x", a), ("y", b)], [0, 1], ["x", "y"]),
        ([("x", b), ("y", a)], [1, 0], ["y", "x"]),
        ([("x", b), ("z", a)], [1, 0], ["z", "x"]),
        ([("x", b), ("z", &exact)], [1, 0], ["z", "x"]),
    ] {
        let (numbers, rebound) = process.change(sites(&listeners, "")).unwrap();
        assert_eq!(numbers, expected, "{listeners:?}");
        assert!(rebound.opened.is_empty() && rebound.closed.is_empty(), "{listeners:?}");
        assert!(rebound.shares.iter().all(Vec::is_empty));
        assert_eq!((rebound.more, rebound.fewer), (0, 0));
        assert_eq!(names.map(|name| process.address_of(name)), at, "{listeners:?}");
    }
    let handed = [("z", &*exact), ("z", &*exact), ("x", b), ("x", b)];
    assert_eq!(process.handed(), handed);
    process.shares.clear();
}

#[test]
fn numbers_are_used_once() {
    let mut process = Process::new(&sites(&[("x", "127.0.0.1:0")], ""), Vec::new());
    for number in 1..4 {
        let listeners = [("x", "127.0.0.1:0"), ("y", "127.0.0.2:0")];
        let (numbers, rebound) = process.change(sites(&listeners, "")).unwrap();
        assert_eq!(numbers, [0, number]);
        let place = format!("http://{}", process.address_of("y"));
        assert_eq!(rebound.opened.iter().map(ToString::to_string).collect::<Vec<_>>(), [&*place]);
        assert!(rebound.shares.iter().all(|own| own.len() == 1), "one for each worker");
        // Each of the two sockets takes a handle and a worker's socket.
        assert_eq!((rebound.more, rebound.fewer), (4, 0));
        TcpStream::connect(process.address_of("y")).unwrap();
        let (numbers, rebound) = process.change(sites(&listeners[..1], "")).unwrap();
        assert_eq!(numbers, [0]);
        assert_eq!(rebound.closed.iter().map(ToString::to_string).collect::<Vec<_>>(), [&*place]);
        assert_eq!((rebound.more, rebound.fewer), (0, 4));
        assert_eq!(process.kept.len(), WORKERS);
    }
}

#[test]
fn an_address_that_cannot_be_bound_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let unix = format!("unix:{}", path.display());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (taken, fresh) = (listener.local_addr().unwrap(), free().to_string());
    let old = [("x", "127.0.0.1:0")];
    let mut process = Process::new(&sites(&old, ""), Vec::new());
    let at = taken.to_string();
    let new = [("a", &*unix), ("b", &*at), ("c", &*fresh), ("y", "127.0.0.2:0")];
    let error = process.change(sites(&new, "600")).unwrap_err();
    let owner = std::process::id();
    assert!(error.starts_with(&format!("listener.b.bind.0: {at} is in use by process {owner} (")), "{error}");
    assert!(!path.exists() && TcpStream::connect(&fresh).is_err());
    assert_eq!(process.handed(), [old[0]; WORKERS]);
    TcpStream::connect(process.address_of("x")).unwrap();
    drop(listener);
    let (numbers, rebound) = process.change(sites(&new, "600")).unwrap();
    // The failed attempt used up IDs.
    assert_eq!((numbers, rebound.closed.len()), (vec![5, 6, 7, 8], 1));
    assert_eq!(mode(&path), 0o600);
    TcpStream::connect(&fresh).unwrap();
}

#[test]
fn permissions_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let unix = format!("unix:{}", path.display());
    let listeners = [("x", &*unix)];
    let mut process = Process::new(&sites(&listeners, "600"), Vec::new());
    assert_eq!(mode(&path), 0o600);
    let (numbers, rebound) = process.change(sites(&listeners, "660")).unwrap();
    assert_eq!((numbers, mode(&path)), (vec![0], 0o660));
    assert!(rebound.opened.is_empty() && rebound.closed.is_empty());
    UnixStream::connect(&path).unwrap();
    // Without its file, the permissions cannot be set, and no other address is opened.
    std::fs::remove_file(&path).unwrap();
    let fresh = free();
    let error = process.change(sites(&[("x", &*unix), ("y", &fresh.to_string())], "666")).unwrap_err();
    assert_eq!(error, "listener.x.mode: cannot set the permissions `666`: the socket's file is gone");
    assert!(TcpStream::connect(fresh).is_err());
    assert_eq!(process.kept.len(), 1);
}

#[test]
fn a_socket_of_systemd_stays_and_cannot_be_left() {
    let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = theirs.local_addr().unwrap().to_string();
    let listener = Listener::inherit(theirs.try_clone().unwrap().into(), Hold::Lent).unwrap();
    let given = Given { listener, label: Label::Named("web".to_owned()) };
    let mut process = Process::new(&sites(&[("web", "127.0.0.9:80")], ""), vec![given]);
    // The socket is found by its name, as at startup, and by its address.
    for listeners in [[("web", "127.0.0.8:80")], [("other", &*at)]] {
        let (numbers, rebound) = process.change(sites(&listeners, "")).unwrap();
        assert_eq!(numbers, [0]);
        assert!(rebound.opened.is_empty());
    }
    let error = process.change(sites(&[("other", "127.0.0.1:0")], "")).unwrap_err();
    let expected =
        format!("listener: nothing is configured for the socket `web` at {at} from systemd (LISTEN_FDS): ");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn an_address_beside_one_that_stands_for_all_is_bound() {
    let port = free().port();
    let [all, one] = ["0.0.0.0", "127.0.0.1"].map(|host| format!("{host}:{port}"));
    let mut process = Process::new(&sites(&[("all", &all)], ""), Vec::new());
    let (numbers, _) = process.change(sites(&[("all", &all), ("one", &one)], "")).unwrap();
    assert_eq!(numbers, [0, 1]);
    process.shares.clear();
    let (numbers, rebound) = process.change(sites(&[("one", &one)], "")).unwrap();
    assert_eq!((numbers, rebound.closed.len()), (vec![1], 1));
    TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert!(TcpStream::connect(("127.0.0.2", port)).is_err());
}
