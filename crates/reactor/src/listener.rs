//! Listeners: one socket per core on the same port or path. Binding fails if another process listens on it.

mod owner;
mod unix;

pub use owner::Owner;

use crate::address::Address;
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use unix::SocketFile;

/// One core's listening socket.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
    /// The file of a Unix socket, shared by all cores; `None` for TCP and for files of other processes.
    file: Option<Arc<SocketFile>>,
    /// Whether several workers wait on the same socket.
    shared: bool,
    hold: Hold,
}

/// The owner of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// This process: when it ends, the kernel resets queued connections.
    Own,
    /// Another process, such as systemd: the next process accepts the queued connections.
    Lent,
}

/// A failure to bind a port or path.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another process listens on the address.
    #[error("{address} is in use by {}", owner.as_ref().map_or("another process".to_string(), ToString::to_string))]
    InUse {
        /// The requested address.
        address: Address,
        /// The owning process, if known.
        owner: Option<Owner>,
    },
    /// Binding failed for another reason.
    #[error("cannot listen on {address}: {source}{}", advice(address, source))]
    Refused {
        /// The requested address.
        address: Address,
        /// The system's error.
        source: io::Error,
    },
}

/// Advice for a port that needs a capability.
fn advice(address: &Address, source: &io::Error) -> &'static str {
    match address.tcp().map(|at| at.port()) {
        Some(1..1024) if source.kind() == io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need the capability CAP_NET_BIND_SERVICE (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE; \
             else: setcap cap_net_bind_service=+ep on the program), or root"
        }
        _ => "",
    }
}

impl Listener {
    /// Binds `count` sockets to one address with `SO_REUSEPORT`, so that the kernel spreads connections over them. With
    /// port 0, the system picks one free port for all sockets. Accepted connections have TCP_NODELAY.
    ///
    /// # Errors
    /// [`BindError::InUse`] when another process listens on the address. `SO_REUSEPORT` alone would share the
    /// port with any process of the same user, so this first binds without it.
    pub fn bind(address: SocketAddr, count: usize) -> Result<Vec<Self>, BindError> {
        let group = Self::reserve(address, count)?;
        for listener in &group {
            listener
                .begin()
                .map_err(|source| BindError::Refused { address: listener.address.clone(), source })?;
        }
        Ok(group)
    }

    /// As [`Listener::bind`], but clients cannot connect before [`Listener::begin`]. Errors: those of
    /// [`Listener::bind`].
    pub fn reserve(address: SocketAddr, count: usize) -> Result<Vec<Self>, BindError> {
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => {
                BindError::InUse { address: Address::Tcp(address), owner: owner::of(address) }
            }
            _ => BindError::Refused { address: Address::Tcp(address), source },
        };
        let trial = open(address, false).map_err(refused)?;
        let mut bound = address;
        if address.port() == 0 {
            let local = trial.local_addr().map_err(refused)?;
            bound.set_port(local.as_socket().map_or(0, |local| local.port()));
        }
        drop(trial);
        (0..count).map(|_| Self::join(bound)).collect::<io::Result<_>>().map_err(refused)
    }

    /// As [`Listener::reserve`], for an address that overlaps with another one on which this process listens, as
    /// 127.0.0.1 does with 0.0.0.0 on the same port. The kernel would report the process's own socket as a conflict.
    ///
    /// # Errors
    /// Those of [`Listener::bind`].
    pub fn reserve_beside(address: SocketAddr, count: usize) -> Result<Vec<Self>, BindError> {
        let in_use = |owner| BindError::InUse { address: Address::Tcp(address), owner };
        if let Some(owner) = owner::of_exactly(address) {
            return Err(in_use(owner));
        }
        (0..count).map(|_| Self::join(address)).collect::<io::Result<_>>().map_err(|source| {
            match source.kind() {
                io::ErrorKind::AddrInUse => in_use(owner::of(address)),
                _ => BindError::Refused { address: Address::Tcp(address), source },
            }
        })
    }

    /// Adds a socket to an existing group of this process. Clients cannot connect to it before [`Listener::begin`].
    /// Errors: those of bind(2).
    pub fn join(address: SocketAddr) -> io::Result<Self> {
        let socket = open(address, true)?;
        socket.set_tcp_nodelay(true)?;
        Ok(Self { socket, address: Address::Tcp(address), file: None, shared: false, hold: Hold::Own })
    }

    /// Starts listening, unless the socket already does. Fails as listen(2) does, or if another process has taken the
    /// path of a Unix socket since it was reserved.
    pub fn begin(&self) -> io::Result<()> {
        match self.hold {
            Hold::Own => {
                self.socket.listen(BACKLOG)?;
                self.file.as_ref().map_or(Ok(()), |file| file.check())
            }
            // The owner has called listen(2), with its own backlog.
            Hold::Lent => Ok(()),
        }
    }

    /// Reserves a path for `count` workers. All workers share one socket, so each can accept any connection. Clients
    /// cannot connect before [`Listener::begin`]. `mode` sets the permissions of the file, which the last listener
    /// removes when dropped.
    ///
    /// # Errors
    /// [`BindError::InUse`] when another process listens on the path. A stale socket file is replaced.
    pub fn reserve_unix(path: &Path, mode: u32, count: usize) -> Result<Vec<Self>, BindError> {
        let address = Address::Unix(path.to_owned());
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse { address: address.clone(), owner: None },
            _ => BindError::Refused { address: address.clone(), source },
        };
        let (socket, file) = unix::reserve(path, mode).map_err(refused)?;
        let file = Some(Arc::new(file));
        let first = Self { socket, address: address.clone(), file, shared: true, hold: Hold::Own };
        (0..count).map(|_| first.share()).collect::<io::Result<_>>().map_err(refused)
    }

    /// Takes over a listening socket that another process opened and that `hold` owns. Changes nothing but TCP_NODELAY,
    /// which accepted connections inherit. The file of a Unix socket is not included: see [`Listener::with_file`].
    ///
    /// # Errors
    /// The descriptor is not a listening stream socket with a port or a path.
    pub fn inherit(socket: OwnedFd, hold: Hold) -> io::Result<Self> {
        let socket = Socket::from(socket);
        if socket.r#type()? != Type::STREAM || !socket.is_listener()? {
            return Err(io::Error::other("it is no stream socket that listens"));
        }
        let local = socket.local_addr()?;
        let path = || local.as_pathname().map(|path| Address::Unix(path.to_owned()));
        let address = local.as_socket().map(Address::Tcp).or_else(path);
        let address =
            address.ok_or_else(|| io::Error::other("it listens neither on a port nor on a path"))?;
        socket.set_cloexec(true)?;
        socket.set_nonblocking(true)?;
        if address.tcp().is_some() {
            socket.set_tcp_nodelay(true)?;
        }
        Ok(Self { socket, address, file: None, shared: false, hold })
    }

    /// The same socket for another worker: the kernel wakes one of the waiting workers per connection. Errors: those of
    /// dup(2).
    pub fn share(&self) -> io::Result<Self> {
        let Self { address, file, hold, .. } = self;
        let socket = self.socket.try_clone()?;
        Ok(Self { socket, address: address.clone(), file: file.clone(), shared: true, hold: *hold })
    }

    /// Marks the socket as shared by several workers.
    pub fn shared(self) -> Self {
        Self { shared: true, ..self }
    }

    /// Duplicates the socket, to pass it to another process. Errors: those of dup(2).
    pub fn handle(&self) -> io::Result<Self> {
        Ok(Self { shared: self.shared, ..self.share()? })
    }

    /// Whether [`Listener::join`] can add sockets to this socket's group.
    pub fn is_in_group(&self) -> bool {
        self.hold == Hold::Own && self.address.tcp().is_some() && self.socket.reuse_port().unwrap_or(false)
    }

    /// The owner of the socket.
    pub fn hold(&self) -> Hold {
        self.hold
    }

    /// The device and inode of the Unix socket's file, if this process created it or took it over.
    pub fn file(&self) -> Option<(u64, u64)> {
        self.file.as_ref().map(|file| file.identity())
    }

    /// Attaches the socket file of a previous process, identified by device and inode. This process owns the
    /// file once it [claims](Listener::claim_file) it.
    pub fn with_file(self, identity: (u64, u64)) -> Self {
        let file = match &self.address {
            Address::Unix(path) => Some(Arc::new(SocketFile::of_another(path, identity))),
            Address::Tcp(_) => None,
        };
        Self { file, ..self }
    }

    /// Claims the file: sets its permissions, and makes the last listener on the socket remove the file when dropped.
    /// Fails if the file was removed, another file has taken its path, or chmod(2) failed.
    pub fn claim_file(&self, mode: u32) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.claim(mode))
    }

    /// Leaves the file to another process: dropping the listener no longer removes it.
    pub fn leave_file(&self) {
        if let Some(file) = &self.file {
            file.leave();
        }
    }

    /// The address, with the port that was bound.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether several workers wait on this socket.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Accepts one connection, non-blocking, with the address of its peer (`None` on a Unix socket); `None` if the
    /// queue is empty. Skips connections that were aborted in the queue. Errors: those of accept(2).
    pub fn accept(&self) -> io::Result<Option<(OwnedFd, Option<SocketAddr>)>> {
        loop {
            match acceptfrom_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((socket, peer)) => {
                    return Ok(Some((
                        socket,
                        peer.and_then(|peer| SocketAddr::try_from(peer).ok()).map(plain),
                    )));
                }
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes the kernel drop every segment that would open a new connection (SYN without ACK). Handshakes in progress
    /// reach the queue within a round trip. Once the worker has waited that long and emptied the queue, closing the
    /// socket resets no client: a client that connects in the meantime is refused on its retry, before it has sent a
    /// request. For a Unix socket, this removes the path. Returns false and changes nothing if the queue belongs to the
    /// next process.
    pub fn refuse_new(&self) -> bool {
        if self.hold == Hold::Lent {
            return false;
        }
        if let Some(file) = &self.file {
            file.remove();
            return true;
        }
        const LOAD_BYTE: u16 = 0x30;
        const JUMP_IF_SET: u16 = 0x45;
        const RETURN: u16 = 0x06;
        // A listener's filter receives each segment from its TCP header on. Returning 0 drops the segment.
        let filter = [
            SockFilter::new(LOAD_BYTE, 0, 0, TCP_FLAGS_AT),
            SockFilter::new(JUMP_IF_SET, 0, 1, TCP_SYN),
            SockFilter::new(RETURN, 0, 0, 0),
            SockFilter::new(RETURN, 0, 0, u32::MAX),
        ];
        // Without permission to attach the filter, the close may reset a client.
        let _ = self.socket.attach_filter(&filter);
        true
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Converts a mapped address to IPv4: a dual-stack socket, such as one from systemd, reports IPv4 clients as IPv6
/// addresses.
fn plain(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip().to_canonical(), peer.port())
}

fn open(address: SocketAddr, share: bool) -> io::Result<Socket> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // A restart must be able to bind while connections of the previous process are in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(share)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// The offset of the flags in a TCP header (RFC 9293 section 3.1). No valid segment with both SYN and ACK reaches a
/// listener.
const TCP_FLAGS_AT: u32 = 13;
const TCP_SYN: u32 = 0x02;

/// The maximum length of the accept queue. The kernel lowers it to `somaxconn`, 4096 by default.
const BACKLOG: i32 = 65_535;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    #[test]
    fn a_port_that_needs_a_right_says_which() {
        for (address, kind, is_explained) in [
            ("0.0.0.0:80", io::ErrorKind::PermissionDenied, true),
            ("[::]:443", io::ErrorKind::PermissionDenied, true),
            ("127.0.0.1:1023", io::ErrorKind::PermissionDenied, true),
            ("127.0.0.1:1024", io::ErrorKind::PermissionDenied, false),
            ("127.0.0.1:8443", io::ErrorKind::PermissionDenied, false),
            ("127.0.0.1:80", io::ErrorKind::AddrNotAvailable, false),
        ] {
            let address = Address::Tcp(address.parse().unwrap());
            let said = BindError::Refused { address, source: kind.into() }.to_string();
            assert_eq!(said.contains("CAP_NET_BIND_SERVICE"), is_explained, "{said}");
        }
    }

    #[test]
    fn all_sockets_of_a_group_share_one_port_and_take_all_connections() {
        let group = Listener::bind(ANY, 3).unwrap();
        let address = tcp(&group[0]);
        assert!(group.iter().all(|listener| tcp(listener) == address && address.port() != 0));
        let clients: Vec<TcpStream> = (0..32).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut accepted = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(10);
        while accepted.len() < clients.len() && Instant::now() < deadline {
            accepted.extend(group.iter().filter_map(|listener| listener.accept().unwrap()));
        }
        assert_eq!(accepted.len(), 32);
        let (socket, _) = &accepted[0];
        assert!(rustix::net::sockopt::tcp_nodelay(socket).unwrap(), "inherited from the listener");
    }

    fn tcp(listener: &Listener) -> SocketAddr {
        listener.address().tcp().unwrap()
    }

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("weir-{}-{name}", std::process::id()))
    }

    fn bind_unix(path: &Path, count: usize) -> Result<Vec<Listener>, BindError> {
        let group = Listener::reserve_unix(path, 0o600, count)?;
        group[0].begin().unwrap();
        Ok(group)
    }

    #[test]
    fn a_path_is_shared_by_all_and_goes_with_the_last() {
        let path = path("shared");
        let mut group = bind_unix(&path, 2).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
        let _clients = [0; 2].map(|_| UnixStream::connect(&path).unwrap());
        for listener in &group {
            assert!(matches!(listener.accept().unwrap(), Some((_, None))), "any takes any");
        }
        group.pop();
        assert!(path.exists());
        group.pop();
        assert!(!path.exists());
    }

    #[test]
    fn a_path_in_use_is_refused_and_a_leftover_is_replaced() {
        let path = path("in-use");
        let group = bind_unix(&path, 1).unwrap();
        let error = bind_unix(&path, 1).unwrap_err();
        assert!(matches!(error, BindError::InUse { .. }), "{error}");
        group[0].refuse_new();
        assert!(!path.exists(), "no new connection finds it");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let second = bind_unix(&path, 1).unwrap();
        drop(group);
        assert!(path.exists(), "the first one's file was another");
        drop(second);
        std::fs::write(&path, "a file").unwrap();
        let error = bind_unix(&path, 1).unwrap_err();
        assert!(error.to_string().ends_with("the file exists and is not a socket"), "{error}");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_reserved_port_takes_connections_once_it_has_begun() {
        let group = Listener::reserve(ANY, 2).unwrap();
        let address = tcp(&group[0]);
        assert!(TcpStream::connect(address).is_err());
        group[1].begin().unwrap();
        let more = Listener::join(address).unwrap();
        let client = TcpStream::connect(address).unwrap();
        assert_eq!(
            group[1].accept().unwrap().unwrap().1,
            client.local_addr().ok(),
            "the only one that listens"
        );
        more.begin().unwrap();
    }

    #[test]
    fn an_inherited_socket_is_the_same_one() {
        let first = Listener::bind(ANY, 1).unwrap().remove(0);
        assert!(first.is_in_group());
        let second = Listener::inherit(first.as_fd().try_clone_to_owned().unwrap(), Hold::Own).unwrap();
        assert_eq!(
            (second.address(), second.is_in_group(), second.is_shared()),
            (first.address(), true, false)
        );
        let shared = second.share().unwrap();
        assert!(shared.is_shared());
        for listener in [&first, &second, &shared] {
            let client = TcpStream::connect(tcp(&first)).unwrap();
            assert_eq!(listener.accept().unwrap().unwrap().1, client.local_addr().ok());
        }
    }

    #[test]
    fn what_does_not_listen_is_not_inherited() {
        let listener = TcpListener::bind(ANY).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        for socket in [OwnedFd::from(client), std::net::UdpSocket::bind(ANY).unwrap().into()] {
            let error = Listener::inherit(socket, Hold::Own).unwrap_err();
            assert_eq!(error.to_string(), "it is no stream socket that listens");
        }
    }

    #[test]
    fn a_socket_of_another_process_is_left_as_it_is() {
        let path = path("lent");
        let theirs = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let ours = Listener::inherit(theirs.try_clone().unwrap().into(), Hold::Lent).unwrap();
        ours.begin().unwrap();
        ours.claim_file(0o600).unwrap();
        assert!(!ours.refuse_new() && !ours.is_in_group());
        drop(ours);
        UnixStream::connect(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_file_of_a_socket_goes_with_the_process_that_claimed_it() {
        let path = path("claimed");
        let old = bind_unix(&path, 1).unwrap().remove(0);
        let inherit = || Listener::inherit(old.as_fd().try_clone_to_owned().unwrap(), Hold::Own).unwrap();
        let file = old.file().unwrap();
        drop(inherit().with_file(file));
        assert!(path.exists(), "it was never claimed");
        let new = inherit().with_file(file);
        new.claim_file(0o660).unwrap();
        old.leave_file();
        drop(old);
        let mode = std::fs::metadata(&path).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o660);
        drop(new);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_is_gone_or_anothers_is_not_claimed() {
        let path = path("gone");
        let old = bind_unix(&path, 1).unwrap().remove(0);
        let new = Listener::inherit(old.as_fd().try_clone_to_owned().unwrap(), Hold::Own).unwrap();
        let new = new.with_file(old.file().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(new.claim_file(0o660).unwrap_err().to_string(), "the socket's file is gone");
        let target = path.with_extension("target");
        std::fs::write(&target, "a file").unwrap();
        std::fs::set_permissions(&target, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert_eq!(new.claim_file(0o660).unwrap_err().to_string(), "another file has the socket's path");
        let mode = std::fs::metadata(&target).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600, "it is none of ours");
        new.begin().unwrap();
        drop((old, new));
        assert!(path.is_symlink());
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&target).unwrap();
    }

    #[test]
    fn a_reserved_path_takes_connections_once_it_has_begun() {
        let path = path("reserved");
        let first = Listener::reserve_unix(&path, 0o600, 2).unwrap();
        assert!(UnixStream::connect(&path).is_err());
        first[1].begin().unwrap();
        let _client = UnixStream::connect(&path).unwrap();
        assert!(first[0].accept().unwrap().is_some());
        drop(first);
        // Two processes start at the same time: the first must not listen on a socket whose path it has lost.
        let first = Listener::reserve_unix(&path, 0o600, 1).unwrap().remove(0);
        let second = bind_unix(&path, 1).unwrap();
        assert_eq!(first.begin().unwrap_err().to_string(), "another file has the socket's path");
        drop(first);
        UnixStream::connect(&path).unwrap();
        drop(second);
    }

    #[test]
    fn a_port_in_use_in_this_process_is_refused_with_our_own_pid() {
        let other = TcpListener::bind(ANY).unwrap();
        let error = Listener::bind(other.local_addr().unwrap(), 2).unwrap_err();
        let BindError::InUse { owner, .. } = &error else { panic!("{error}") };
        assert_eq!(owner.as_ref().unwrap().pid, std::process::id());
    }

    /// With `SO_REUSEPORT` on both sides, a second process would silently share the port and take half of its
    /// connections. So binding must fail even if the other process's listener has `SO_REUSEPORT` set.
    #[test]
    fn a_port_shared_by_another_process_is_refused_with_its_pid() {
        if std::env::var_os("WEIR_TEST_HOLD_A_PORT").is_some() {
            let group = Listener::bind(ANY, 1).unwrap();
            println!("holding {}", group[0].address());
            // Hold the port until the parent closes our standard input.
            let _ = std::io::stdin().lines().next();
            return;
        }
        let name = "listener::tests::a_port_shared_by_another_process_is_refused_with_its_pid";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env("WEIR_TEST_HOLD_A_PORT", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.into_iter().find_map(|line| Some(line.split_once("holding ")?.1.to_string()));
        let error = Listener::bind(address.unwrap().parse().unwrap(), 2).unwrap_err();
        let pid = child.id();
        drop(child.stdin.take());
        child.wait().unwrap();
        let BindError::InUse { owner: Some(owner), .. } = &error else { panic!("{error}") };
        assert_eq!(owner.pid, pid);
        assert!(error.to_string().contains(&format!("is in use by process {pid} (")), "{error}");
    }

    #[test]
    fn a_listener_that_refuses_new_connections_keeps_those_in_its_queue() {
        let listener = Listener::bind(ANY, 1).unwrap().remove(0);
        let first = TcpStream::connect(tcp(&listener)).unwrap();
        listener.refuse_new();
        let late = TcpStream::connect_timeout(&tcp(&listener), Duration::from_millis(50));
        assert!(late.is_err(), "its SYN was dropped");
        let (_, peer) = listener.accept().unwrap().expect("the queue is kept");
        assert_eq!(peer, first.local_addr().ok());
    }
}
