//! Services with one switchable fault; their programs are in `tests/advise/services`.

use crate::common::{go_program, peer};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;
use weir_tls::issue::{Authority, Issued, KeyKind};

/// The duration of each load, unless a test needs more.
pub(super) const WINDOW: &str = "500ms";

/// The language of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Go,
    /// Go without optimisation, as for a debugger.
    GoUnoptimised,
    Java,
    Node,
    Python,
}

/// A running service, killed when dropped.
pub(super) struct Service {
    child: Child,
    pub(super) url: String,
    ca: PathBuf,
    _folder: TempDir,
}

/// The certificate that a service presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presents {
    /// One with an ECDSA P-256 key.
    Leaf,
    /// One with an RSA-4096 key.
    Rsa4096,
    /// The leaf and the root.
    Root,
    /// The leaf three times.
    Copies,
    /// None, since the service uses cleartext. Only for Node.js.
    Nothing,
}

impl Service {
    /// Starts a service with this fault, or `none`; with an upstream, a proxy. `None` if the language is missing on
    /// this machine.
    pub(super) fn start(
        language: Language,
        fault: &str,
        presents: Presents,
        upstream: Option<&str>,
    ) -> Option<Self> {
        let mut command = match language {
            Language::Go => Command::new(go()?),
            Language::GoUnoptimised => Command::new(go_unoptimised()?),
            Language::Java => script("java", "Service.java")?,
            Language::Node => script("node", "node.js")?,
            Language::Python => script("python3", "python.py")?,
        };
        let folder = tempfile::tempdir().unwrap();
        let files = presents.issue().write_to(folder.path()).unwrap();
        let is_clear = presents == Presents::Nothing;
        let certificate = if is_clear { "-".into() } else { files.certificates.clone() };
        command.arg(fault).arg(certificate).arg(&files.key).args(upstream);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port: u16 = line.trim().parse().unwrap_or_else(|_| panic!("expected a port, got {line:?}"));
        let scheme = if is_clear { "http" } else { "https" };
        let url = format!("{scheme}://127.0.0.1:{port}");
        Some(Self { child, url, ca: files.ca, _folder: folder })
    }

    /// The service's address.
    pub(super) fn address(&self) -> SocketAddr {
        let (_, address) = self.url.split_once("://").unwrap();
        address.parse().unwrap()
    }

    /// The service's process ID.
    pub(super) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// The advice on the service, as JSON.
    pub(super) fn advice(&self, path: &str, flags: &[&str]) -> Value {
        self.advice_within(WINDOW, path, flags)
    }

    /// The same, with loads of this duration.
    pub(super) fn advice_within(&self, window: &str, path: &str, flags: &[&str]) -> Value {
        advice(&format!("{}{path}", self.url), &self.ca, window, flags)
    }
}

/// The advice on a URL with loads of this duration, as JSON.
pub(super) fn advice(url: &str, ca: &Path, window: &str, flags: &[&str]) -> Value {
    let own = [url, "--cacert", ca.to_str().unwrap(), "-d", window, "--json", "-"];
    serde_json::from_str(&output(&[&own[..], flags].concat())).unwrap()
}

/// The output of `weir advise` with these arguments.
pub(super) fn output(args: &[&str]) -> String {
    // The command waits for an idle connection and for `perf`, so it gets no deadline here: both take long on a busy
    // machine.
    let weir = Command::new(env!("CARGO_BIN_EXE_weir")).arg("advise").args(args).output().unwrap();
    assert_eq!(weir.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&weir.stderr));
    String::from_utf8(weir.stdout).unwrap()
}

impl Drop for Service {
    fn drop(&mut self) {
        // An error means that it has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Presents {
    fn issue(self) -> Issued {
        let names = ["127.0.0.1", "localhost"];
        let kind = if self == Self::Rsa4096 { KeyKind::Rsa4096 } else { KeyKind::EcdsaP256 };
        let mut issued = Authority::new().unwrap().issue(&names, kind).unwrap();
        match self {
            Self::Leaf | Self::Rsa4096 | Self::Nothing => {}
            Self::Root => issued.certificates += &issued.ca,
            Self::Copies => issued.certificates = issued.certificates.repeat(3),
        }
        issued
    }
}

/// The IDs of the findings, in order.
pub(super) fn ids(advice: &Value) -> Vec<&str> {
    advice["findings"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect()
}

fn script(program: &str, file: &str) -> Option<Command> {
    let mut command = Command::new(peer(program)?);
    command.arg(adjacent(file));
    Some(command)
}

fn go() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(|| go_program("advise-service", &adjacent("go/main.go"), &[])).as_deref()
}

/// Only this program is unoptimised; its standard library is the same.
fn go_unoptimised() -> Option<PathBuf> {
    go_program("advise-service-unoptimised", &adjacent("go/main.go"), &["-gcflags=-N -l"])
}

fn adjacent(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/advise/services");
    fs::canonicalize(folder).unwrap().join(name)
}
