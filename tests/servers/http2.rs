//! Servers that speak only HTTP/2, except nginx with TLS.

use super::hyper::Hyper;
use super::{Running, Server, adjacent};
use crate::common::{Certificates, Weir, go_module, go_program, installed_peer, peer};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

impl Server {
    /// Go's net/http, in cleartext or with a certificate.
    pub(crate) fn go_http2(tls: Option<&Certificates>) -> Option<Self> {
        static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
        let program =
            BUILT.get_or_init(|| go_program("http2-server", &adjacent("http2.go"), &[])).as_ref()?;
        Some(Self::script(&mut Command::new(program), tls))
    }

    /// Node's http2.
    pub(crate) fn node_http2(tls: Option<&Certificates>) -> Option<Self> {
        Some(Self::script(Command::new(peer("node")?).arg(adjacent("http2.js")), tls))
    }

    /// hyper, in this process.
    pub(crate) fn hyper(tls: Option<&Certificates>) -> Self {
        let server = Hyper::start(tls);
        let port = server.port;
        Self::of(Running::Thread { _server: server }, port)
    }

    /// `weir origin`.
    pub(crate) fn origin(tls: Option<&Certificates>) -> Self {
        let weir = match tls {
            None => Weir::start(&["origin", "--listen", "http://127.0.0.1:0"]),
            Some(files) => {
                let [cert, key] = [&files.cert, &files.key].map(|file| file.to_str().unwrap());
                Weir::start(&["origin", "--listen", "https://127.0.0.1:0", "--cert", cert, "--key", key])
            }
        };
        let port = weir.address().port();
        Self::of(Running::Origin(weir), port)
    }

    /// nginx with these files, on two ports.
    pub(crate) fn nginx_http2(tls: &Certificates, files: &[(String, Vec<u8>)]) -> Option<Self> {
        let program = peer("nginx")?;
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("upload")).unwrap();
        write(&folder.path().join("files"), files);
        let template = fs::read_to_string(adjacent("nginx-http2.conf")).unwrap();
        Some(Self::nginx_with(&program, folder, &template, tls))
    }

    /// nghttpd with these files and flags, in cleartext or with a certificate.
    pub(crate) fn nghttpd(
        tls: Option<&Certificates>,
        files: &[(String, Vec<u8>)],
        flags: &[&str],
    ) -> Option<Self> {
        let program = peer("nghttpd")?;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("files");
        write(&root, files);
        let start = |port: u16, _| {
            let mut command = Command::new(&program);
            command.args(["--address=127.0.0.1", "--htdocs"]).arg(&root).args(flags);
            match tls {
                Some(tls) => command.arg(port.to_string()).arg(&tls.key).arg(&tls.cert),
                None => command.arg("--no-tls").arg(port.to_string()),
            };
            command
        };
        let listens = |port| TcpStream::connect(("127.0.0.1", port)).is_ok();
        let mut server = Self::on_free_ports(folder, start, listens);
        server.tls_port = server.port;
        Some(server)
    }

    /// grpc-go with the service of gRPC's interoperability tests.
    pub(crate) fn grpc_go(tls: Option<&Certificates>) -> Option<Self> {
        Some(Self::script(Command::new(grpc_go()?).arg("server"), tls))
    }

    /// grpcio with plain bytes as messages.
    pub(crate) fn grpcio(tls: Option<&Certificates>) -> Option<Self> {
        let (python, script) = grpcio()?;
        Some(Self::script(Command::new(python).arg(script).arg("server"), tls))
    }
}

/// An interpreter with grpcio, and the program of tests/http2/grpcio.py.
pub(crate) fn grpcio() -> Option<(PathBuf, PathBuf)> {
    Some((installed_peer("python-http2/bin/python")?, adjacent("../http2/grpcio.py")))
}

/// The program of tests/http2/interop.
pub(crate) fn grpc_go() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || go_module("http2-interop", &adjacent("../http2/interop"), "google.golang.org/grpc");
    BUILT.get_or_init(build).as_deref()
}

fn write(folder: &Path, files: &[(String, Vec<u8>)]) {
    fs::create_dir(folder).unwrap();
    for (name, content) in files {
        fs::write(folder.join(name), content).unwrap();
    }
}
