//! Other servers, as upstreams or in front of one; their programs and configurations are in this directory.

pub(crate) mod http2;
pub(crate) mod hyper;

use self::hyper::Hyper;
use crate::common::{Certificates, DEADLINE, Weir, go_program, peer, poll_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// A running server; dropping it stops it.
pub(crate) struct Server {
    running: Running,
    port: u16,
    tls_port: u16,
    /// The directory of its files.
    folder: Option<TempDir>,
}

enum Running {
    Program(Child),
    /// `weir origin`.
    Origin(Weir),
    /// A thread of this process.
    Thread {
        _server: Hyper,
    },
}

impl Server {
    /// The server in Go, in cleartext or with a certificate. `None` if this machine has no Go.
    pub(crate) fn go(tls: Option<&Certificates>) -> Option<Self> {
        static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
        let program = BUILT.get_or_init(|| go_program("go-server", &adjacent("go/main.go"), &[])).as_ref()?;
        Some(Self::script(&mut Command::new(program), tls))
    }

    /// The server in Node.
    pub(crate) fn node(tls: Option<&Certificates>) -> Option<Self> {
        Some(Self::script(Command::new(peer("node")?).arg(adjacent("node.js")), tls))
    }

    /// The server in Python.
    pub(crate) fn python(tls: Option<&Certificates>) -> Option<Self> {
        Some(Self::script(Command::new(peer("python3")?).arg(adjacent("python.py")), tls))
    }

    /// nginx with files of these sizes, on two ports.
    pub(crate) fn nginx(tls: &Certificates, sizes: &[usize], content: fn(usize) -> Vec<u8>) -> Option<Self> {
        let program = peer("nginx")?;
        let folder = tempfile::tempdir().unwrap();
        for name in ["files", "upload"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        for size in sizes {
            fs::write(folder.path().join("files").join(size.to_string()), content(*size)).unwrap();
        }
        let template = fs::read_to_string(adjacent("nginx.conf")).unwrap();
        Some(Self::nginx_with(&program, folder, &template, tls))
    }

    /// nginx with these lines of configuration, which logs to the file `sessions` whether each request's session was
    /// resumed; its port without TLS reports its number of connections.
    pub(crate) fn nginx_of_sessions(tls: &Certificates, settings: &str) -> Option<Self> {
        let program = peer("nginx")?;
        let template = fs::read_to_string(adjacent("nginx-sessions.conf")).unwrap();
        let template = template.replace("@SETTINGS@", settings);
        Some(Self::nginx_with(&program, tempfile::tempdir().unwrap(), &template, tls))
    }

    /// nginx in cleartext, in front of a cleartext upstream.
    pub(crate) fn nginx_before(upstream: SocketAddr, tls: &Certificates) -> Option<Self> {
        let program = peer("nginx")?;
        let template = fs::read_to_string(adjacent("nginx-proxy.conf")).unwrap();
        let template = template.replace("@TO@", &upstream.to_string());
        Some(Self::nginx_with(&program, tempfile::tempdir().unwrap(), &template, tls))
    }

    /// The same, with a connection for each request: nginx's default.
    pub(crate) fn nginx_closing_before(upstream: SocketAddr, tls: &Certificates) -> Option<Self> {
        let program = peer("nginx")?;
        let template = fs::read_to_string(adjacent("nginx-proxy.conf")).unwrap();
        let template = template.replace("@TO@", &upstream.to_string());
        let template = ["keepalive 16;", "proxy_http_version 1.1;", "proxy_set_header Connection \"\";"]
            .into_iter()
            .fold(template, |template, kept| template.replace(kept, ""));
        Some(Self::nginx_with(&program, tempfile::tempdir().unwrap(), &template, tls))
    }

    /// HAProxy in cleartext, in front of a cleartext upstream.
    pub(crate) fn haproxy_before(upstream: SocketAddr) -> Option<Self> {
        let program = peer("haproxy")?;
        let template = fs::read_to_string(adjacent("haproxy-proxy.cfg")).unwrap();
        Some(Self::haproxy_with(&program, &template.replace("@TO@", &upstream.to_string())))
    }

    /// HAProxy with a configuration whose placeholder @PORT@ is filled in.
    pub(crate) fn haproxy_with(program: &Path, template: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let start = |port: u16, _| {
            let file = path.join("haproxy.cfg");
            // Otherwise HAProxy would share its port with another test's program that allows it (SO_REUSEPORT), and
            // that program would get some of the requests.
            let ready = format!("global\n    noreuseport\n    stats socket {}/ready\n", path.display());
            fs::write(&file, ready + &template.replace("@PORT@", &port.to_string())).unwrap();
            let mut command = Command::new(program);
            // In the foreground, as one process.
            command.arg("-db").arg("-f").arg(file);
            command
        };
        // Another program may have taken the port, but it does not have this socket.
        Self::on_free_ports(folder, start, |port| {
            UnixStream::connect(path.join("ready")).is_ok() && TcpStream::connect(("127.0.0.1", port)).is_ok()
        })
    }

    /// nginx with a configuration whose placeholders @..@ are filled in.
    pub(crate) fn nginx_with(program: &Path, folder: TempDir, template: &str, tls: &Certificates) -> Self {
        let path = folder.path().to_owned();
        let start = |port: u16, tls_port: u16| {
            let configuration = template
                .replace("@FOLDER@", path.to_str().unwrap())
                .replace("@PORT@", &port.to_string())
                .replace("@TLS_PORT@", &tls_port.to_string())
                .replace("@CERT@", tls.cert.to_str().unwrap())
                .replace("@KEY@", tls.key.to_str().unwrap());
            fs::write(path.join("nginx.conf"), configuration).unwrap();
            let mut command = Command::new(program);
            command.arg("-p").arg(&path).arg("-c").arg(path.join("nginx.conf"));
            command
        };
        Self::on_free_ports(folder, start, |_| {
            fs::metadata(path.join("nginx.pid")).is_ok_and(|file| file.len() > 0)
        })
    }

    /// A program that does not accept port 0. Retries if another process takes the free port first.
    fn on_free_ports(
        folder: TempDir,
        start: impl Fn(u16, u16) -> Command,
        listens: impl Fn(u16) -> bool,
    ) -> Self {
        let stderr = folder.path().join("stderr");
        for _ in 0..10 {
            let (port, tls_port) = (free_port(), free_port());
            let mut command = start(port, tls_port);
            command.stdin(Stdio::null()).stderr(fs::File::create(&stderr).unwrap());
            let mut child = command.spawn().unwrap();
            let mut ended = false;
            poll_until(DEADLINE, "the server listens or exits", || {
                ended = child.try_wait().unwrap().is_some();
                ended || listens(port)
            });
            if !ended {
                return Self { running: Running::Program(child), port, tls_port, folder: Some(folder) };
            }
        }
        panic!("the server does not start: {}", fs::read_to_string(stderr).unwrap());
    }

    /// A program with the arguments CERT KEY that prints its port.
    pub(crate) fn script(command: &mut Command, tls: Option<&Certificates>) -> Self {
        if let Some(files) = tls {
            command.arg(&files.cert).arg(&files.key);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap_or_else(|_| panic!("expected a port, got {line:?}"));
        Self::of(Running::Program(child), port)
    }

    /// A server with one port.
    fn of(running: Running, port: u16) -> Self {
        Self { running, port, tls_port: port, folder: None }
    }

    /// Its address; a server with both protocols has a separate port for TLS.
    pub(crate) fn address(&self, tls: bool) -> SocketAddr {
        ([127, 0, 0, 1], if tls { self.tls_port } else { self.port }).into()
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        match &self.running {
            Running::Program(child) => child.id(),
            Running::Origin(weir) => weir.pid(),
            Running::Thread { .. } => std::process::id(),
        }
    }

    /// A file in its directory.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.as_ref().unwrap().path().join(name)).unwrap()
    }

    /// A file uploaded into its directory.
    pub(crate) fn uploaded(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.as_ref().unwrap().path().join("upload").join(name)).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Running::Program(child) = &mut self.running else { return };
        // An error means that it has already exited. nginx stops its worker only on SIGTERM.
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
        let _ = child.wait();
    }
}

/// A file in this directory.
fn adjacent(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/servers").join(name)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
