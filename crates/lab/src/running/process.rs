//! Processes under test: pinned, started, found ready, stopped by pid, never left behind.

use crate::running::interrupt::Interrupt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open, waitid,
};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Deserialize;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The interval at which a wait checks for an interrupt.
const INTERRUPT_CHECK: Duration = Duration::from_millis(100);

/// The interval of a ready check. Short: a run lasts about a second, and this delays each of them.
const READY_INTERVAL: Duration = Duration::from_millis(2);

/// The bytes of a process's output kept with its run.
const TAIL_BYTES: u64 = 2000;

/// The bytes of each log kept if the run failed.
const KEPT_BYTES: u64 = 1 << 20;

/// How to stop a process.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// The signal.
    pub signal: StopSignal,
    /// Milliseconds until SIGKILL.
    pub timeout_ms: u64,
}

impl Default for Stop {
    /// SIGTERM, and two seconds.
    fn default() -> Self {
        Self { signal: StopSignal::Term, timeout_ms: 2000 }
    }
}

/// Signals that ask a process to exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// SIGTERM
    Term,
    /// SIGQUIT
    Quit,
    /// SIGINT
    Int,
    /// SIGUSR1
    Usr1,
}

impl fmt::Display for StopSignal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Term => "SIGTERM",
            Self::Quit => "SIGQUIT",
            Self::Int => "SIGINT",
            Self::Usr1 => "SIGUSR1",
        })
    }
}

/// A child process that leads its own group. Dropping it kills the whole group.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
    output: PathBuf,
    errors: PathBuf,
    status: Option<ExitStatus>,
}

/// The outcome of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The process has exited.
    Ended,
    /// The deadline passed first.
    Deadline,
    /// The lab was interrupted.
    Interrupted,
}

impl Process {
    /// Starts `command` on `cores` in `directory`, which gets its output as `NAME.out` and `NAME.err` and any file that
    /// the command leaves in its working directory.
    ///
    /// A thread of ours sets its affinity and the child inherits it, so every program is pinned alike, whether it can
    /// pin itself or not.
    pub fn start(name: &str, command: &[String], cores: &[usize], directory: &Path) -> io::Result<Self> {
        Self::start_in(directory, name, command, cores, directory, Stdio::null())
    }

    /// The same with `folder` as its working directory, `directory` for its output, and `input` as its standard input.
    pub fn start_in(
        folder: &Path,
        name: &str,
        command: &[String],
        cores: &[usize],
        directory: &Path,
        input: impl Into<Stdio>,
    ) -> io::Result<Self> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "empty command"))?;
        let (output, errors) = (directory.join(format!("{name}.out")), directory.join(format!("{name}.err")));
        let mut starting = Command::new(program);
        starting.args(arguments).current_dir(folder).stdin(input).process_group(0);
        starting.stdout(File::create(&output)?).stderr(File::create(&errors)?);
        let mut set = CpuSet::new();
        for core in cores {
            set.set(*core);
        }
        let placed = std::thread::scope(|scope| {
            let start =
                || sched_setaffinity(None, &set).map_err(io::Error::from).and_then(|()| starting.spawn());
            scope.spawn(start).join()
        });
        let mut child = placed.unwrap_or_else(|_| Err(io::Error::other("the starting thread failed")))?;
        let pid = Pid::from_child(&child);
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self { child, pid, pidfd, output, errors, status: None }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error.into())
            }
        }
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `address` accepts a connection; an error gives the reason why it does not.
    pub fn wait_ready(&self, address: &str, timeout: Duration, interrupt: &Interrupt) -> Result<(), String> {
        let deadline = Instant::now() + timeout;
        loop {
            let Err(error) = connect(address) else { return Ok(()) };
            if let Some(status) = self.ended() {
                return Err(format!("it exited before it was ready ({status})"));
            }
            if interrupt.is_set() {
                return Err("interrupted".into());
            }
            if Instant::now() >= deadline {
                return Err(format!("not ready after {} ms: {address}: {error}", timeout.as_millis()));
            }
            std::thread::sleep(READY_INTERVAL);
        }
    }

    /// Waits for this line on its standard error; an error gives the reason why it does not come.
    pub fn wait_for_line(&self, line: &str, timeout: Duration, interrupt: &Interrupt) -> Result<(), String> {
        let deadline = Instant::now() + timeout;
        loop {
            let printed = std::fs::read_to_string(&self.errors).unwrap_or_default();
            if printed.lines().any(|one| one == line) {
                return Ok(());
            }
            if let Some(status) = self.ended() {
                return Err(format!("it exited before it printed `{line}` ({status})"));
            }
            if interrupt.is_set() {
                return Err("interrupted".into());
            }
            if Instant::now() >= deadline {
                return Err(format!("it did not print `{line}` within {} ms", timeout.as_millis()));
            }
            std::thread::sleep(READY_INTERVAL);
        }
    }

    /// Writes a line to its standard input, which must be a pipe, and closes it.
    pub fn write_line(&mut self, line: &str) -> io::Result<()> {
        let input = self.child.stdin.take();
        let mut input = input.ok_or_else(|| io::Error::other("its standard input is not a pipe"))?;
        writeln!(input, "{line}")
    }

    /// Waits for its exit without using the processor meanwhile.
    pub fn wait(&self, timeout: Duration, interrupt: &Interrupt) -> Waited {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.ends_within(left.min(INTERRUPT_CHECK)) {
                return Waited::Ended;
            }
            if interrupt.is_set() {
                return Waited::Interrupted;
            }
            if left.is_zero() {
                return Waited::Deadline;
            }
        }
    }

    fn ends_within(&self, time: Duration) -> bool {
        let timeout = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        // An interrupted poll finds nothing: the caller polls again.
        poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
    }

    /// Its exit status, if it has exited, in the system's words.
    pub fn ended(&self) -> Option<String> {
        // The status is not reaped: until then the pid cannot be reused.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::PidFd(self.pidfd.as_fd()), look).ok().flatten()?;
        let code = status.exit_status().map(|code| format!("exit status: {code}"));
        code.or_else(|| status.terminating_signal().map(|signal| format!("signal: {signal}")))
    }

    /// Asks it to exit; [`Process::finish`] collects the outcome.
    pub fn signal(&self, signal: StopSignal) {
        let signal = match signal {
            StopSignal::Term => Signal::TERM,
            StopSignal::Quit => Signal::QUIT,
            StopSignal::Int => Signal::INT,
            StopSignal::Usr1 => Signal::USR1,
        };
        // It may have exited by itself, which its status will show.
        let _ = kill_process(self.pid, signal);
    }

    /// Waits for the exit after [`Process::signal`], kills what is left of the group, and returns the exit status.
    pub fn finish(&mut self, stop: Stop) -> io::Result<Exit> {
        let killed = !self.ends_by(Instant::now() + Duration::from_millis(stop.timeout_ms));
        let status = self.reap()?;
        Ok(Exit { status: status.to_string(), code: status.code(), killed })
    }

    fn ends_by(&self, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.ends_within(left) {
                return true;
            }
            if left.is_zero() {
                return false;
            }
        }
    }

    /// Kills the group and reaps the status. The pid is still ours, exited or not, so no other process is hit.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let _ = kill_process_group(self.pid, Signal::KILL);
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }

    /// Copies the tail of its output into a directory, under the same file names.
    pub fn keep_output(&self, directory: &Path) -> io::Result<()> {
        for file in [&self.output, &self.errors] {
            let bytes = tail(file, KEPT_BYTES)?;
            if let Some(name) = file.file_name().filter(|_| !bytes.is_empty()) {
                std::fs::create_dir_all(directory)?;
                std::fs::write(directory.join(name), bytes)?;
            }
        }
        Ok(())
    }

    /// Its standard output.
    pub fn output(&self) -> io::Result<String> {
        std::fs::read_to_string(&self.output)
    }

    /// The tail of its standard error, or else of its standard output.
    pub fn last_words(&self) -> String {
        let words = |file| {
            let bytes = tail(file, TAIL_BYTES).unwrap_or_default();
            String::from_utf8_lossy(&bytes).trim().to_owned()
        };
        let errors = words(&self.errors);
        if errors.is_empty() { words(&self.output) } else { errors }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.reap();
    }
}

/// A process's exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// In the system's words.
    pub status: String,
    /// Its exit code; `None` after a signal.
    pub code: Option<i32>,
    /// It did not exit in time, and was killed.
    pub killed: bool,
}

/// A port without a listener can accept all the same: if the system picks that very port for our own side, TCP
/// connects the socket to itself.
fn connect(address: &str) -> io::Result<()> {
    let stream = TcpStream::connect(address)?;
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(())
}

/// The last bytes of a file, at most this many.
fn tail(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::running::host::allowed_cores;

    const STOP: Stop = Stop { signal: StopSignal::Term, timeout_ms: 5000 };
    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> (tempfile::TempDir, Process) {
        let directory = tempfile::tempdir().expect("a directory");
        let core = allowed_cores().expect("cores")[0];
        let command = ["sh", "-c", script].map(str::to_owned);
        let process = Process::start("p", &command, &[core], directory.path()).expect("starts");
        (directory, process)
    }

    #[test]
    fn its_words_and_status_are_kept() {
        let (_directory, mut process) = shell("echo out; echo err >&2; exit 3");
        assert_eq!(process.wait(LONG, &Interrupt::default()), Waited::Ended);
        let exit = process.finish(STOP).expect("ends");
        assert_eq!((exit.code, exit.killed, exit.status.as_str()), (Some(3), false, "exit status: 3"));
        assert_eq!((process.output().expect("output").trim(), process.last_words().as_str()), ("out", "err"));
    }

    #[test]
    fn it_runs_on_the_cores_given() {
        let core = allowed_cores().expect("cores")[0];
        let (_directory, mut process) = shell("grep Cpus_allowed_list /proc/self/status");
        process.wait(LONG, &Interrupt::default());
        process.finish(STOP).expect("ends");
        assert_eq!(
            process.output().expect("output").split_whitespace().last(),
            Some(core.to_string().as_str())
        );
        assert!(allowed_cores().expect("cores").contains(&core), "our own cores are unchanged");
    }

    #[test]
    fn a_process_that_ignores_the_signal_is_killed_with_its_children() {
        let (_directory, mut process) = shell("trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000");
        let deadline = Instant::now() + LONG;
        let child = loop {
            if let Ok(pid) = process.output().expect("output").trim().parse::<u32>() {
                break pid;
            }
            assert!(Instant::now() < deadline, "the shell printed nothing");
            std::thread::yield_now();
        };
        process.signal(StopSignal::Term);
        let exit = process.finish(Stop { timeout_ms: 1, ..STOP }).expect("ends");
        assert!(exit.killed, "{exit:?}");
        let state = || std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        while state().rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z")) {
            assert!(Instant::now() < deadline, "the child outlived its group");
            std::thread::yield_now();
        }
    }

    #[test]
    fn readiness_is_a_connection_and_an_early_exit_is_reported() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = listener.local_addr().expect("an address").to_string();
        let (_directory, process) = shell("sleep 1000");
        assert_eq!(process.wait_ready(&address, LONG, &Interrupt::default()), Ok(()));
        // Not the port of a dropped listener: a child that another test just starts may hold it for a moment.
        let unused = "127.0.0.1:1";
        let late = process.wait_ready(unused, Duration::from_millis(1), &Interrupt::default());
        assert!(late.expect_err("no listener").starts_with("not ready after 1 ms"));
        let (_directory, process) = shell("exit 1");
        let ended = process.wait_ready(unused, LONG, &Interrupt::default());
        assert_eq!(ended, Err("it exited before it was ready (exit status: 1)".into()));
    }

    #[test]
    fn an_interrupt_ends_a_wait() {
        let (_directory, process) = shell("sleep 1000");
        let interrupt = Interrupt::default();
        interrupt.set();
        assert_eq!(process.wait(LONG, &interrupt), Waited::Interrupted);
    }
}
