//! A running `weir` process.

use super::described::assert_described;
use super::{Answer, Client, DEADLINE, poll_until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// A `weir` process; dropping it kills it.
pub struct Weir {
    child: Child,
    /// Its URLs with the bound ports, in the order of its `--listen` flags.
    pub urls: Vec<String>,
    stdout: Collected,
    stderr: Collected,
    /// The directory of its configuration.
    _folder: Option<TempDir>,
}

/// An exited process's status and output.
pub struct Ended {
    /// The exit code; `None` if a signal killed it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Weir {
    /// Starts `weir ARGS` and waits until it listens on all `--listen` addresses.
    pub fn start(args: &[&str]) -> Self {
        Self::start_with_stderr(args, Stdio::piped())
    }

    /// Like [`Weir::start`], with this stderr; unless it is piped, [`Weir::stderr`] is empty.
    pub fn start_with_stderr(args: &[&str], stderr: impl Into<Stdio>) -> Self {
        let listeners = args.iter().filter(|arg| **arg == "--listen").count();
        let mut weir = Self::spawn_with_stderr(args, stderr);
        weir.wait_for_listeners(args, listeners);
        weir
    }

    /// Starts the gateway with this configuration, which has `listeners` addresses, and waits until it listens.
    pub fn configured(config: &str, listeners: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("weir.toml");
        std::fs::write(&file, config).unwrap();
        let mut weir = Self::of_file(&file, listeners);
        weir._folder = Some(folder);
        assert_described(config);
        weir
    }

    /// Like [`Weir::configured`], with this open-file limit.
    pub fn limited(files: u32, config: &str, listeners: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("weir.toml");
        std::fs::write(&file, config).unwrap();
        let script = format!("ulimit -n {files} && exec \"$0\" serve --config \"$1\"");
        let mut command = Command::new("sh");
        command
            .args(["-c", &script, env!("CARGO_BIN_EXE_weir"), file.to_str().unwrap()])
            .stdin(Stdio::null());
        let mut weir = Self::of_command(command, None, listeners);
        weir._folder = Some(folder);
        weir
    }

    /// Starts the gateway with the configuration in a file, which has `listeners` addresses, and waits until it
    /// listens.
    pub fn of_file(file: &Path, listeners: usize) -> Self {
        Self::of_file_with(file, listeners, &[])
    }

    /// Like [`Weir::of_file`], with additional environment variables.
    pub fn of_file_with(file: &Path, listeners: usize, environment: &[(&str, &str)]) -> Self {
        let args = ["serve", "--config", file.to_str().unwrap()];
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(args).envs(environment.iter().copied()).stdin(Stdio::null());
        let mut weir = Self::spawn_command(&mut command, Stdio::piped());
        weir.wait_for_listeners(&args, listeners);
        weir
    }

    fn wait_for_listeners(&mut self, args: &[&str], listeners: usize) {
        poll_until(DEADLINE, "weir listens", || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("weir {args:?} exited with {status}: {}", self.stderr());
            }
            self.urls = self
                .stdout()
                .lines()
                .filter_map(|line| line.strip_prefix("listening on ").map(str::to_owned))
                .collect();
            self.urls.len() == listeners
        });
    }

    /// Starts `weir ARGS` without waiting.
    pub fn spawn(args: &[&str]) -> Self {
        Self::spawn_with_stderr(args, Stdio::piped())
    }

    /// Starts a program that becomes `weir serve`, and waits until it listens on this many addresses. Without `stderr`,
    /// collects its stderr.
    pub fn of_command(mut command: Command, stderr: Option<Stdio>, listeners: usize) -> Self {
        let mut weir = Self::spawn_command(&mut command, stderr.unwrap_or_else(Stdio::piped));
        weir.wait_for_listeners(&[], listeners);
        weir
    }

    fn spawn_with_stderr(args: &[&str], stderr: impl Into<Stdio>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        Self::spawn_command(command.args(args).stdin(Stdio::null()), stderr)
    }

    fn spawn_command(command: &mut Command, stderr: impl Into<Stdio>) -> Self {
        super::enough_files();
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let stdout = Collected::from(child.stdout.take().unwrap());
        let stderr = child.stderr.take().map_or_else(|| Collected::from(io::empty()), Collected::from);
        Self { child, urls: Vec::new(), stdout, stderr, _folder: None }
    }

    /// Runs `weir ARGS` until it exits.
    pub fn run(args: &[&str]) -> Ended {
        Self::spawn(args).wait()
    }

    /// Like [`Weir::run`], with a longer timeout for long runs.
    pub fn run_within(deadline: Duration, args: &[&str]) -> Ended {
        Self::spawn(args).wait_within(deadline)
    }

    /// The address of its first listener.
    pub fn address(&self) -> SocketAddr {
        self.address_of(0)
    }

    /// The address of its listener number `index`.
    pub fn address_of(&self, index: usize) -> SocketAddr {
        let (_, authority) = self.urls[index].split_once("://").unwrap();
        authority.parse().unwrap()
    }

    /// The admin address.
    pub fn admin(&self) -> SocketAddr {
        let stdout = self.stdout();
        let admin = stdout.lines().find_map(|line| line.strip_prefix("admin on http://"));
        admin.expect("an admin address that is a port").parse().unwrap()
    }

    /// Sends a request such as `GET /ready` to the admin address.
    pub fn ask_admin(&self, request: &str) -> Answer {
        Client::connect(self.admin(), None).ask(format!("{request} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    /// The processes of successful upgrades, from the stderr that they share.
    pub fn successors(&self) -> Vec<Pid> {
        let stderr = self.stderr();
        let words = stderr.lines().filter_map(|line| line.strip_prefix("weir: upgraded; process "));
        words.filter_map(|words| Pid::from_raw(words.split(' ').next()?.parse().ok()?)).collect()
    }

    /// The process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Complete lines of stdout so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Complete lines of stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits for a line on stderr that contains all of `parts`.
    pub fn wait_for_stderr(&self, parts: &[&str]) {
        poll_until(DEADLINE, &format!("a line on stderr with {parts:?}"), || {
            self.stderr().lines().any(|line| parts.iter().all(|part| line.contains(part)))
        });
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// A line of /proc/PID/status in KiB, such as `VmRSS`.
    pub fn memory_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Waits for the exit.
    pub fn wait(self) -> Ended {
        self.wait_within(DEADLINE)
    }

    fn wait_within(mut self, deadline: Duration) -> Ended {
        let mut status = None;
        poll_until(deadline, "weir exits", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let code = status.and_then(|status| status.code());
        Ended { code, stdout: self.stdout.all(), stderr: self.stderr.all() }
    }

    /// Waits for its exit while its child processes may still hold its streams; returns its exit code.
    pub fn exit_code(&mut self) -> Option<i32> {
        let mut status = None;
        poll_until(DEADLINE, "weir exits", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.and_then(|status| status.code())
    }

    /// Sends SIGTERM and waits for its exit.
    pub fn stop(self) -> Ended {
        self.terminate();
        self.wait()
    }
}

impl Drop for Weir {
    fn drop(&mut self) {
        // An error means that the process has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text that a thread reads from a pipe.
struct Collected {
    text: Arc<Mutex<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Collected {
    fn from(pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let into = Arc::clone(&text);
        let thread = std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                into.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        Self { text, thread: Some(thread) }
    }

    fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    /// The whole text, once the process has exited.
    fn all(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        self.text()
    }
}
