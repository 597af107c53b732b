//! Other servers, with the tests' own settings.

use super::report::report;
use crate::common::{DEADLINE, peer, poll_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use weir_tls::issue::{KeyKind, issue};

/// A server that runs `serve` for each connection, one after the other, until the test ends.
pub(crate) fn answering(mut serve: impl FnMut(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            serve(&mut stream);
        }
    });
    address
}

/// `openssl s_server`, killed on drop.
pub(crate) struct OpenSsl {
    pub(crate) child: Child,
    pub(crate) address: String,
    pub(crate) folder: TempDir,
}

impl OpenSsl {
    pub(crate) fn start(kind: KeyKind, flags: &[&str]) -> Option<Self> {
        let openssl = peer("openssl")?;
        let folder = tempfile::tempdir().unwrap();
        issue(&["127.0.0.1", "localhost"], kind).unwrap().write_to(folder.path()).unwrap();
        let mut command = Command::new(openssl);
        command.args(["s_server", "-accept", "127.0.0.1:0", "-cert", "cert.pem", "-key", "key.pem"]);
        command.args(["-CAfile", "ca.pem"]).args(flags).current_dir(&folder);
        // Keeps stdin open, since s_server exits at the end of its input.
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines.find_map(|line| Some(line.strip_prefix("ACCEPT ")?.rsplit_once(':')?.1.to_owned()));
        let port = port.unwrap_or_else(|| panic!("s_server {flags:?} does not listen"));
        // Reads the output, since s_server blocks otherwise.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, address: format!("127.0.0.1:{port}"), folder })
    }

    pub(crate) fn report(&self, flags: &[&str]) -> Value {
        let ca = self.folder.path().join("ca.pem");
        let own = ["--cacert", ca.to_str().unwrap(), "--tries", "3"];
        report(&self.address, &[&own[..], flags].concat())
    }

    /// OpenSSL's expansion of a list of suites, by their names in the IANA registry.
    pub(crate) fn ciphers(&self, list: &str, flags: &[&str]) -> Vec<String> {
        let mut command = Command::new(peer("openssl").unwrap());
        let output = command.args(["ciphers", "-s", "-stdname"]).args(flags).arg(list).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        // An error means that it has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server with a configuration in files, including its port; dropping this stops it.
pub(crate) struct Files {
    pub(crate) child: Option<Child>,
    pub(crate) port: u16,
    pub(crate) folder: TempDir,
}

impl Files {
    /// Retries if another process takes the free port before the server does.
    pub(crate) fn on_a_free_port(configured: impl Fn(&Self, u16) -> Command) -> Self {
        for _ in 0..10 {
            let folder = tempfile::tempdir().unwrap();
            issue(&["127.0.0.1", "localhost"], KeyKind::EcdsaP256).unwrap().write_to(folder.path()).unwrap();
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut server = Self { child: None, port, folder };
            let mut child = configured(&server, port)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut ended = false;
            poll_until(DEADLINE, "the server listens or exits", || {
                ended = child.try_wait().unwrap().is_some();
                ended || TcpStream::connect(("127.0.0.1", port)).is_ok()
            });
            server.child = Some(child);
            if !ended {
                return server;
            }
        }
        panic!("the server does not start");
    }

    pub(crate) fn report(&self, flags: &[&str]) -> Value {
        let ca = self.folder.path().join("ca.pem");
        let server = format!("https://127.0.0.1:{}", self.port);
        report(&server, &[&["--cacert", ca.to_str().unwrap()], flags].concat())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Only SIGTERM also stops its workers. An error means that it has already exited.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            let _ = child.wait();
        }
    }
}

/// nginx with these settings, and the report of a probe.
pub(crate) fn nginx(workers: u32, settings: &str, flags: &[&str]) -> Option<(Files, Value)> {
    let program = peer("nginx")?;
    let configured = |server: &Files, port: u16| {
        let folder = server.folder.path();
        let path = Path::display(folder);
        // With a listener per worker the kernel spreads the connections.
        let text = format!(
            "daemon off; user root; worker_processes {workers}; pid {path}/nginx.pid;\n\
             error_log stderr warn;\n\
             events {{ worker_connections 256; }}\n\
             http {{ access_log off; client_body_temp_path {path}/body; proxy_temp_path {path}/proxy;\n\
             fastcgi_temp_path {path}/fastcgi; uwsgi_temp_path {path}/uwsgi; scgi_temp_path {path}/scgi;\n\
             server {{ listen 127.0.0.1:{port} ssl reuseport; {settings}\n\
             ssl_certificate {path}/cert.pem; ssl_certificate_key {path}/key.pem; return 204; }} }}\n"
        );
        fs::write(folder.join("nginx.conf"), text).unwrap();
        let mut command = Command::new(&program);
        command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
        command
    };
    let server = Files::on_a_free_port(configured);
    let report = server.report(flags);
    Some((server, report))
}
