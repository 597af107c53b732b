//! Socket activation, and notifications to the supervisor.

use super::dns::NameServer;
use super::dns::server::{NXDOMAIN, Says};
use super::unix::exchange;
use super::{config_to, held_back, named};
use crate::common::{Client, DEADLINE, Ended, Switch, Weir, is_gone, poll_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// A gateway as systemd starts it: with this socket as descriptor 3, under this name.
fn activated(socket: impl Into<OwnedFd>, name: &str, file: &Path) -> Command {
    // A shell passes the descriptor, since that needs `unsafe` in Rust. It executes the gateway, so the process ID
    // stays.
    let mut command = Command::new("/bin/sh");
    let script = "exec 3<&0 0</dev/null; export LISTEN_PID=$$; exec \"$@\"";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_weir"), "serve", "--config"]).arg(file);
    command.env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", name).stdin(Stdio::from(socket.into()));
    command
}

fn write(folder: &Path, config: &str) -> std::path::PathBuf {
    let file = folder.join("weir.toml");
    fs::write(&file, format!("{config}\n[[route]]\nrespond.status = 200\n")).unwrap();
    file
}

/// The output of a failed start.
fn failure(mut command: Command) -> Ended {
    let output = command.output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    Ended { code: output.status.code(), stdout, stderr }
}

fn free() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

#[test]
fn sockets_of_systemd_are_used_by_their_address_and_the_rest_is_bound() {
    let folder = tempfile::tempdir().unwrap();
    let socket = free();
    let address = socket.local_addr().unwrap();
    let keeper = socket.try_clone().unwrap();
    let config = format!("workers = 3\n[listener.web]\nbind = ['{address}', '127.0.0.1:0']\n");
    let weir = Weir::of_command(activated(socket, "weir.socket", &write(folder.path(), &config)), None, 2);
    assert_eq!(weir.address(), address);
    for _ in 0..20 {
        for index in [0, 1] {
            assert_eq!(Client::connect(weir.address_of(index), None).ask(GET).status, 200);
        }
    }
    let own = weir.address_of(1);
    assert_eq!(weir.stop().code, Some(0));
    assert!(std::net::TcpStream::connect(own).is_err());
    // systemd still holds the socket and waits for a client to start the next process.
    let client = std::net::TcpStream::connect(address).unwrap();
    let (_, peer) = keeper.accept().unwrap();
    assert_eq!(peer, client.local_addr().unwrap());
}

#[test]
fn sockets_of_systemd_are_used_by_their_name() {
    let folder = tempfile::tempdir().unwrap();
    let socket = free();
    let address = socket.local_addr().unwrap();
    let config = "[listener.web]\nbind = '127.0.0.1:1'\n[listener.other]\nbind = '127.0.0.1:0'\n";
    let weir = Weir::of_command(activated(socket, "web", &write(folder.path(), config)), None, 2);
    assert_eq!(weir.address_of(1), address);
    assert_eq!(Client::connect(address, None).ask(GET).status, 200);
}

#[test]
fn clients_by_ipv4_of_a_socket_for_both_families_have_ipv4_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let Ok(socket) = TcpListener::bind("[::]:0") else {
        println!("skipped: this machine has no IPv6");
        return;
    };
    let port = socket.local_addr().unwrap().port();
    let upstream = named("a");
    let file = folder.path().join("weir.toml");
    let service =
        format!("[service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n", upstream.address);
    fs::write(&file, format!("[listener.web]\nbind = '0.0.0.0:80'\n{service}")).unwrap();
    let _weir = Weir::of_command(activated(socket, "web", &file), None, 1);
    let answer = Client::connect(([127, 0, 0, 1], port).into(), None).ask(GET);
    assert!(answer.text().contains("X-Forwarded-For: 127.0.0.1\r\n"), "{}", answer.text());
}

#[test]
fn a_unix_socket_and_the_admin_address_may_be_systemds() {
    let folder = tempfile::tempdir().unwrap();
    let [path, admin] = ["weir.sock", "admin.sock"].map(|name| folder.path().join(name));
    let config = format!(
        "[admin]\nbind = 'unix:{}'\n[listener.web]\nbind = 'unix:{}'\n",
        admin.display(),
        path.display()
    );
    let file = write(folder.path(), &config);
    for (socket, own) in [(&path, &admin), (&admin, &path)] {
        let listener = UnixListener::bind(socket).unwrap();
        let mut weir = Weir::of_command(activated(listener, "weir.socket", &file), None, 1);
        let ask = |path: &Path, target: &str| {
            exchange(path, &format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"))
        };
        assert!(ask(&path, "/").starts_with("HTTP/1.1 200 "));
        assert!(ask(&admin, "/ready").ends_with("\r\n\r\nready\n"));
        weir.terminate();
        assert_eq!(weir.exit_code(), Some(0));
        assert!(socket.exists() && !own.exists(), "systemd's file is systemd's");
        fs::remove_file(socket).unwrap();
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "[listener.web]\nbind = '127.0.0.1:1'\n");
    let socket = free();
    let address = socket.local_addr().unwrap();
    let ended = failure(activated(socket, "other", &file));
    let expected = format!(
        "nothing is configured for the socket `other` at {address} from systemd (LISTEN_FDS): expected the address, or as \
         FileDescriptorName= the name, of one of `web` at 127.0.0.1:1"
    );
    assert!(ended.code == Some(2) && ended.stderr.contains(&expected), "{}", ended.stderr);
    let ended = failure(activated(fs::File::open(&file).unwrap(), "web", &file));
    assert!(
        ended.code == Some(1) && ended.stderr.contains("LISTEN_FDS: socket 0 `web`: "),
        "{}",
        ended.stderr
    );
    // A connected socket, as with Accept=yes, is no listener.
    let (connection, _) = std::os::unix::net::UnixStream::pair().unwrap();
    let ended = failure(activated(connection, "web", &file));
    assert!(ended.stderr.contains("it is no stream socket that listens"), "{}", ended.stderr);
}

/// The supervisor's side, which receives messages.
pub(super) struct Supervisor(UnixDatagram);

impl Supervisor {
    pub(super) fn new(socket: UnixDatagram) -> Self {
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        Self(socket)
    }

    pub(super) fn next(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.0.recv(&mut bytes).expect("a message to the supervisor");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// Whether no further message has arrived.
    pub(super) fn is_silent(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        self.0.recv(&mut [0; 16]).is_err()
    }
}

#[test]
fn the_supervisor_is_told_how_the_process_fares() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let name = format!("weir-test-{}", std::process::id());
    let by_name = SocketAddr::from_abstract_name(&name).unwrap();
    for (socket, variable) in [
        (UnixDatagram::bind(&path).unwrap(), path.display().to_string()),
        (UnixDatagram::bind_addr(&by_name).unwrap(), format!("@{name}")),
    ] {
        let supervisor = Supervisor::new(socket);
        let file = write(folder.path(), "[listener.web]\nbind = '127.0.0.1:0'\n");
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["serve", "--config"]).arg(&file).env("NOTIFY_SOCKET", variable).stdin(Stdio::null());
        let mut weir = Weir::of_command(command, None, 1);
        assert_eq!(supervisor.next(), "READY=1\nSTATUS=serving");
        weir.signal(Signal::HUP);
        let reloading = supervisor.next();
        let since =
            reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").and_then(|rest| rest.split_once('\n'));
        let (since, status) = since.unwrap_or_else(|| panic!("{reloading}"));
        assert!(since.parse::<u64>().unwrap() > 0 && status == "STATUS=reloading", "{reloading}");
        assert!(supervisor.next().starts_with("READY=1\nSTATUS=serving; reloaded; changed: listeners 0"));
        fs::write(&file, "nonsense").unwrap();
        for (signal, first) in [(Signal::HUP, "RELOADING=1\n"), (Signal::USR2, "STATUS=upgrading")] {
            weir.signal(signal);
            assert!(supervisor.next().starts_with(first));
            let refused = supervisor.next();
            assert!(
                refused.contains("STATUS=serving; the last ") && refused.contains(" was refused: "),
                "{refused}"
            );
        }
        write(folder.path(), "[listener.web]\nbind = '127.0.0.1:0'\n");
        weir.signal(Signal::USR2);
        assert_eq!(supervisor.next(), "STATUS=upgrading");
        let main = supervisor.next();
        let pid = main.strip_prefix("MAINPID=").and_then(|pid| Pid::from_raw(pid.parse().ok()?)).unwrap();
        assert_eq!(supervisor.next(), "READY=1\nSTATUS=serving");
        assert_eq!(weir.exit_code(), Some(0));
        kill_process(pid, Signal::TERM).unwrap();
        assert_eq!(supervisor.next(), "STOPPING=1\nSTATUS=draining", "from the new one alone");
        poll_until(DEADLINE, "it ends", || is_gone(pid));
    }
}

/// systemd would take a message after `STOPPING=1` for a running service.
#[test]
fn the_supervisor_hears_nothing_from_a_process_that_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let supervisor = Supervisor::new(UnixDatagram::bind(&path).unwrap());
    let (answer, names) = (Switch::default(), NameServer::start());
    let upstream = held_back(&answer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let config = config_to(&upstream, "");
    let file = folder.path().join("weir.toml");
    fs::write(&file, &config).unwrap();
    let weir = Weir::of_file_with(&file, 1, &[("NOTIFY_SOCKET", path.to_str().unwrap())]);
    assert_eq!(supervisor.next(), "READY=1\nSTATUS=serving");
    let mut client = Client::connect(weir.address(), None);
    client.send(GET);
    upstream.wait_for_requests(1);
    // A reload waits for a name, and an upgrade waits for the reload.
    names.say("app.test", Says::Nothing);
    let more = format!(
        "\n[dns]\nservers = '{}'\ntimeout = '3s'\n[service.new]\nservers = 'http://app.test'\n",
        names.address
    );
    fs::write(&file, config.clone() + &more).unwrap();
    weir.signal(Signal::HUP);
    assert!(supervisor.next().starts_with("RELOADING=1\n"));
    poll_until(DEADLINE, "the upgrade", || {
        weir.signal(Signal::USR2);
        weir.stderr().contains("weir: upgrade refused: an upgrade is going on")
    });
    weir.terminate();
    assert_eq!(supervisor.next(), "STOPPING=1\nSTATUS=draining");
    names.say("app.test", Says::Code(NXDOMAIN));
    weir.wait_for_stderr(&["weir: reload refused: ", "app.test"]);
    weir.wait_for_stderr(&["weir: upgrade refused: this process is stopping"]);
    fs::write(&file, &config).unwrap();
    weir.signal(Signal::HUP);
    weir.wait_for_stderr(&["weir: reloaded"]);
    answer.throw();
    assert_eq!(client.answer(Method::Get).text(), "ok");
    assert_eq!(weir.wait().code, Some(0));
    assert!(supervisor.is_silent());
}

/// An upgrade passes the sockets to the new process, and systemd keeps them.
#[test]
fn sockets_of_systemd_survive_an_upgrade() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let file =
        write(folder.path(), &format!("workers = 2\n[listener.web]\nbind = 'unix:{}'\n", path.display()));
    let mut weir = Weir::of_command(activated(listener, "weir.socket", &file), None, 1);
    let ask = || exchange(&path, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    weir.signal(Signal::USR2);
    weir.wait_for_stderr(&["weir: upgraded; process "]);
    assert_eq!(weir.exit_code(), Some(0));
    assert!(ask().starts_with("HTTP/1.1 200 "));
    let stderr = weir.stderr();
    let pid = stderr.split(' ').nth(3).unwrap().parse().ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    poll_until(DEADLINE, "it ends", || is_gone(pid));
    assert!(path.exists());
}
