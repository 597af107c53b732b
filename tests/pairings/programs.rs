//! Clients that are programs in this directory: `PROGRAM BASE CA STEPS LENGTH` prints the transcript.

use super::{Client, Pair, adjacent, all_but};
use crate::common::{go_module, installed_peer, peer, peers_directory};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any pair takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// A client program.
pub(super) struct Program {
    words: Vec<OsString>,
    environment: Vec<(&'static str, PathBuf)>,
    services: Vec<&'static str>,
}

impl Program {
    /// Go's net/http, with coder/websocket.
    pub(super) fn go() -> Option<Self> {
        let dependency = "github.com/coder/websocket";
        let program = go_module("pairings-go", &adjacent("clients/go"), dependency)?;
        Some(Self { words: vec![program.into()], environment: Vec::new(), services: all_but(&[]) })
    }

    /// Java's HttpClient.
    pub(super) fn java() -> Option<Self> {
        let (java, javac) = (peer("java")?, peer("javac")?);
        let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pairings-java");
        let mut compile = Command::new(javac);
        let compiled = compile.arg("-d").arg(&classes).arg(adjacent("clients/Client.java")).output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let words = vec![java.into(), "-cp".into(), classes.into(), "Client".into()];
        // JDK 17 waits indefinitely for 100 (Continue) if the server refuses, even without a gateway.
        let services = all_but(&["refused"]);
        Some(Self { words, environment: Vec::new(), services })
    }

    /// Node: `core` is http and https with the package ws; `undici` is that package.
    pub(super) fn node(library: &str) -> Option<Self> {
        let node = peer("node")?;
        let package = if library == "core" { "ws" } else { library };
        let packages = peers_directory().join("node/node_modules");
        installed_peer(&format!("node/node_modules/{package}"))?;
        let words = vec![node.into(), adjacent("clients/client.js").into(), library.into()];
        // The package rejects requests with `Expect`.
        let services = all_but(if library == "core" { &[] } else { &["continued", "refused"] });
        Some(Self { words, environment: vec![("NODE_PATH", packages)], services })
    }

    /// Python: `urllib`, or one of the installed packages.
    pub(super) fn python(library: &str) -> Option<Self> {
        let python =
            if library == "urllib" { peer("python3")? } else { installed_peer("python/bin/python")? };
        let words = vec![python.into(), adjacent("clients/client.py").into(), library.into()];
        let services = match library {
            "websockets" => vec!["websocket"],
            _ => all_but(&["continued", "refused", "websocket"]),
        };
        Some(Self { words, environment: Vec::new(), services })
    }
}

impl Client for Program {
    fn services(&self) -> Vec<&'static str> {
        self.services.clone()
    }

    fn transcript(&self, pair: &Pair<'_>) -> Result<String, String> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.arg(&pair.base).arg(&pair.certificates.ca).arg(pair.steps).arg(pair.length.to_string());
        // The transcript contains non-ASCII characters.
        command.env("PYTHONUTF8", "1");
        output(&mut command)
    }
}

/// Runs a program to its end, or kills it at the deadline, and returns its output.
///
/// # Errors
/// The program's output if it fails.
pub(super) fn output(command: &mut Command) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let files = ["stdout", "stderr"].map(|name| folder.path().join(name));
    let [stdout, stderr] = files.each_ref().map(|file| fs::File::create(file).unwrap());
    let mut child = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn().unwrap();
    let end = Instant::now() + DEADLINE;
    let mut late = "";
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > end {
            late = ", killed at the deadline";
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let [stdout, stderr] = files.map(|file| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned());
    if status.success() { Ok(stdout) } else { Err(format!("{status}{late}\n{stdout}{stderr}")) }
}
