//! A directory for pasted commands: it contains the files that they name, and a shell that finds only a few tools, some
//! of them stand-ins.

use super::shown::Shown;
use crate::common::engine::{RUNNER, description};
use crate::common::{Certificates, DEADLINE, Ended, Weir, poll_until, script};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A directory that cannot be created.
pub(super) const NO_PLACE: &str = "/dev/null/none";

/// The message about results of a tenth of a second, which have no percentile and, on a busy machine, perhaps no valid
/// run.
pub(super) const NO_VALUE: &str = "none has a value of this metric";

/// The servers for the commands, and results for them to read; created once.
pub(super) struct Servers {
    certificates: Certificates,
    http: Weir,
    https: Weir,
    results: tempfile::TempDir,
    core: String,
}

/// The directory for the commands of one page or `--help`.
pub(super) struct Sandbox<'a> {
    servers: &'a Servers,
    folder: tempfile::TempDir,
    is_of_stacks: bool,
}

/// A relay's description, used under the names of other gateways so that these exist on every machine.
const RIVAL: &str = r#"title = "A stand-in"
about = "Passes bytes on."
modes = ["h1c-h1c", "h1-h1c", "h1c-h1", "h1-h1"]
start = ["{{weir}}", "relay", "--workers", "1"]
ready = { connect = "{{listen_address}}:{{listen_port}}", timeout_ms = 5000 }
[client_side]
h1c = ["--listen", "http://{{listen_address}}:{{listen_port}}"]
h1 = ["--listen", "https://{{listen_address}}:{{listen_port}}", "--cert", "{{cert}}", "--key", "{{key}}"]
[upstream_side]
h1c = ["--to", "http://{{upstream_address}}:{{upstream_port}}"]
h1 = ["--to", "https://{{upstream_address}}:{{upstream_port}}", "--upstream-ca", "{{ca}}"]
"#;

const GATEWAY: &str = "[listener.web]
bind = '127.0.0.1:0'
[[route]]
respond.status = 200
";

const GATEWAYS: &str = "name = 'quickstart'
question = 'Which?'
targets_directory = 'targets'
baseline = ['nginx']
blocks = 2
seed = 1
[factors]
target = ['weir', 'nginx']
[constants]
mode = 'h1-h1c'
connections = 2
bytes = 10
warmup_ms = 50
window_ms = 100
load_model = 'saturated'
";

const STACKS: &str = "name = 'stacks-handshakes'
instrument = 'stacks'
question = 'Which?'
engines_directory = 'engines'
engines = ['openssl-system']
blocks = 2
seed = 1
[constants]
window_ms = 1
[[scenarios]]
do = 'handshake'
version = '1.3'
";

/// The tools that the shell finds; without `bash`, compilers and `cargo`, so that nothing is built.
const TOOLS: [&str; 5] = ["cat", "mkdir", "sed", "sh", "true"];

/// A configuration of another program, to be imported.
const PROXY: &str = "listen web\n    mode http\n    bind :80\n    server app 127.0.0.1:3000\n";

/// Stand-ins for other programs, which accept any arguments.
const STAND_INS: [&str; 5] = ["gateway-1.4", "gateway-1.5", "jq", "man", "my-gateway"];

/// Replacements in the commands: only values such as ports, times and rates; no word is added or removed.
fn edits(servers: &Servers) -> Vec<(&'static str, String)> {
    let [http, https] = [&servers.http, &servers.https].map(Weir::address);
    vec![
        ("http://127.0.0.1:8080", format!("http://{http}")),
        ("http://localhost:8080", format!("http://{http}")),
        ("https://127.0.0.1:8443", format!("https://{https}")),
        ("localhost:8443", format!("localhost:{}", https.port())),
        ("10.0.0.7:443", https.to_string()),
        ("example.org", format!("localhost:{}", https.port())),
        ("--pid PID", format!("--pid {}", servers.http.pid())),
        ("-d 30s", "-d 200ms".into()),
        ("-d 5s", "-d 200ms".into()),
        ("-d 2s", "-d 300ms".into()),
        ("https://api.internal", format!("https://{https}")),
        ("-c 256", "-c 4".into()),
        ("-c 64", "-c 4".into()),
        ("--rate 5000", "--rate 100".into()),
        ("--tries 50", "--tries 2".into()),
        ("--cores 3 --server-cores 0-1", format!("--cores {0} --server-cores {0}", servers.core)),
        ("/etc/", "etc/".into()),
        ("/usr/local/", "usr/".into()),
        ("/opt/weir", "opt/weir".into()),
        ("${fpath[1]}", "fpath".into()),
        // A busy machine must not fail the command.
        ("--strict &&", "--strict;".into()),
    ]
}

/// Replacements for commands that start servers: a free port, and one core.
fn listening_edits(servers: &Servers) -> Vec<(&'static str, String)> {
    let mut edits = vec![("--workers 2 --cores 0-1", format!("--workers 1 --cores {}", servers.core))];
    edits.push(("--cores 0", format!("--cores {}", servers.core)));
    edits.push(("--listen http://127.0.0.1:3000", "--listen http://127.0.0.1:0".into()));
    for address in ["0.0.0.0:8080", "0.0.0.0:8443", "127.0.0.1:8080", "127.0.0.1:8443"] {
        edits.push((address, "127.0.0.1:0".into()));
    }
    edits.push(("api.internal", "localhost".into()));
    edits.push(("/etc/", "etc/".into()));
    edits
}

impl Servers {
    pub(super) fn start() -> Self {
        let certificates = Certificates::new();
        let [cert, key] = [&certificates.cert, &certificates.key].map(|path| path.to_str().unwrap());
        let http = Weir::start(&["origin", "--listen", "http://127.0.0.1:0", "--workers", "1"]);
        let https = Weir::start(&[
            "origin",
            "--listen",
            "https://127.0.0.1:0",
            "--cert",
            cert,
            "--key",
            key,
            "--workers",
            "1",
        ]);
        let allowed = fs::read_to_string("/proc/self/status").unwrap();
        let list = allowed.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        let core = list.trim().split([',', '-']).next().unwrap().to_owned();
        let servers = Self { certificates, http, https, results: tempfile::tempdir().unwrap(), core };
        servers.make_results();
        servers
    }

    /// Creates small results of gateways and of stacks.
    fn make_results(&self) {
        let folder = self.results.path();
        write(&folder.join("gateways.toml"), GATEWAYS);
        write(&folder.join("targets/nginx/target.toml"), RIVAL);
        write(&folder.join("stacks.toml"), STACKS);
        write(&folder.join("engines/openssl-system/engine.toml"), &description("['true']"));
        write(&folder.join("engines/openssl-system/run.sh"), RUNNER);
        for name in ["gateways", "stacks"] {
            let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
            weir.args(["run", &format!("{name}.toml"), "--out", name]).current_dir(folder);
            let Output { status, stdout, stderr } =
                weir.env("WEIR_ENGINES", folder.join("built")).output().unwrap();
            // A run of a tenth of a second need not be valid.
            let words = || String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
            assert!(matches!(status.code(), Some(0 | 3)), "{name}: {}", words());
        }
    }
}

impl<'a> Sandbox<'a> {
    pub(super) fn new(source: &str, servers: &'a Servers) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let Certificates { ca, cert, key, .. } = &servers.certificates;
        for (from, name) in [(ca, "ca.pem"), (cert, "chain.pem"), (key, "key.pem")] {
            fs::copy(from, path(name)).unwrap();
        }
        write(&path("nginx.conf"), "http { access_log off; }\n");
        write(&path("etc/nginx/nginx.conf"), "http { server { return 204; } }\n");
        write(&path("etc/nginx/sites-enabled/app"), "server { return 204; }\n");
        write(&path("etc/haproxy/haproxy.cfg"), PROXY);
        for name in ["weir.toml", "etc/weir/weir.toml"] {
            write(&path(name), GATEWAY);
        }
        for name in ["nginx", "haproxy"] {
            write(&path("targets").join(name).join("target.toml"), RIVAL);
            write(&path("my/targets").join(name).join("target.toml"), RIVAL);
        }
        for name in
            ["bin", "fpath", "etc/bash_completion.d", ".config/fish/completions", "usr/share/man/man1"]
        {
            fs::create_dir_all(path(name)).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_weir"), path("bin/weir")).unwrap();
        for tool in TOOLS {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            let found = found.iter().find(|file| file.is_file()).unwrap();
            std::os::unix::fs::symlink(found, path("bin").join(tool)).unwrap();
        }
        for name in STAND_INS {
            script(&path("bin").join(name), "cat >/dev/null");
        }
        script(&path("bin/pidof"), &format!("echo {}", servers.http.pid()));
        Self { servers, folder, is_of_stacks: source == "EXPERIMENTS.md" }
    }

    /// Pastes a command and waits for its exit.
    pub(super) fn run(&self, command: &Shown) -> Ended {
        let mut text = edited(&command.0, &edits(self.servers));
        for client in ["weir advise", "weir load", "weir cost"] {
            if text.starts_with(client) && !text.contains(" -d ") {
                text = text.replacen(client, &format!("{client} -d 300ms"), 1);
            }
        }
        if text.starts_with("weir calibrate") && !text.contains("--quick") {
            text = text.replacen("weir calibrate", "weir calibrate --quick", 1);
        }
        if text.starts_with("weir calibrate") && !text.contains(" -d ") {
            text = text.replacen("weir calibrate", "weir calibrate -d 50ms", 1);
        }
        for (flag, start) in [("--out ", "out/"), ("--continue ", "out/")] {
            text = text.replace(&format!("{flag}{start}"), &format!("{flag}{NO_PLACE}/"));
        }
        if !text.contains(NO_PLACE) {
            text = text.replace("weir run ", &format!("weir run --out {NO_PLACE} "));
            text = text.replace("weir stacks run", &format!("weir stacks run --out {NO_PLACE}"));
        }
        self.place_results(&text);
        let output = self.shell(&text).output().unwrap();
        let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended { code: output.status.code(), stdout: words(&output.stdout), stderr: words(&output.stderr) }
    }

    /// Pastes a server's command, waits until it listens, and terminates it.
    pub(super) fn listen(&self, command: &Shown) -> Ended {
        let text = edited(&command.0, &listening_edits(self.servers));
        let [out, err] = ["stdout", "stderr"].map(|name| self.folder.path().join(name));
        let file = |path: &PathBuf| Stdio::from(fs::File::create(path).unwrap());
        let mut shell = self.shell(&format!("exec {text}"));
        let mut server = KillOnDrop(shell.stdout(file(&out)).stderr(file(&err)).spawn().unwrap());
        let read = |path: &PathBuf| fs::read_to_string(path).unwrap();
        let mut status = None;
        poll_until(DEADLINE, &format!("it listens or exits: {text}"), || {
            status = server.0.try_wait().unwrap();
            status.is_some() || read(&out).contains("listening on ")
        });
        if status.is_none() {
            kill_process(Pid::from_child(&server.0), Signal::TERM).unwrap();
            poll_until(DEADLINE, &format!("it exits: {text}"), || {
                status = server.0.try_wait().unwrap();
                status.is_some()
            });
        }
        Ended { code: status.unwrap().code(), stdout: read(&out), stderr: read(&err) }
    }

    fn shell(&self, text: &str) -> Command {
        let path = |name: &str| self.folder.path().join(name);
        let mut shell = Command::new("/bin/bash");
        shell.args(["-c", &format!("set -o pipefail; {text}")]).current_dir(self.folder.path());
        shell.env_clear().env("PATH", path("bin")).env("HOME", self.folder.path());
        shell.env("SSL_CERT_FILE", path("ca.pem")).env("WEIR_ENGINES", path("built")).stdin(Stdio::null());
        shell
    }

    /// Copies the results that a command names, since a report writes into their directory.
    fn place_results(&self, text: &str) {
        let out = self.folder.path().join("out");
        let _ = fs::remove_dir_all(&out);
        for word in text.split_whitespace().filter_map(|word| word.strip_prefix("out/")) {
            let is_of_stacks = self.is_of_stacks || word.starts_with("stacks-") || word.starts_with("tls-");
            let kind = if is_of_stacks { "stacks" } else { "gateways" };
            let names = match word.split_once('*') {
                Some((start, _)) => vec![format!("{start}1"), format!("{start}2")],
                None => vec![word.to_owned()],
            };
            for name in names {
                copy(&self.servers.results.path().join(kind), &out.join(name));
            }
        }
    }
}

/// A process that is killed if the test ends first.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn edited(text: &str, edits: &[(&str, String)]) -> String {
    edits.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}
