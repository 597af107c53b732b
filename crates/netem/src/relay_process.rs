//! The delay relay as a child process of the lab.

use crate::error::NetError;
use crate::relay::Settings;
use crate::report::RelayReport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

/// Timeout for creating its devices, and for printing its report.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// A running delay relay. Killed on drop; it also exits when this process does, as its standard input closes.
#[derive(Debug)]
pub(crate) struct RelayProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: ChildStderr,
}

impl RelayProcess {
    /// Starts it and waits for its devices.
    pub(crate) fn start(weir: &Path, settings: &Settings) -> Result<Self, NetError> {
        let failed = |error: std::io::Error| NetError::Relay(format!("the delay relay: {error}"));
        let mut command = command(weir);
        command.arg("delay-relay").process_group(0);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let missing = || NetError::Relay("the delay relay has no pipe".into());
        let (input, output) = (child.stdin.take(), child.stdout.take().ok_or_else(missing)?);
        let errors = child.stderr.take().ok_or_else(missing)?;
        let mut process = Self { child, input, output: BufReader::new(output), errors };
        let mut line = serde_json::to_vec(settings).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        if let Some(input) = &mut process.input {
            // It reports errors on standard error.
            let _ = input.write_all(&line);
        }
        match process.line()?.trim_end() {
            "ready" => Ok(process),
            other => Err(NetError::Relay(format!(
                "unexpected output `{other}` from the delay relay: expected `ready`"
            ))),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops it and returns its report.
    pub(crate) fn finish(mut self) -> Result<RelayReport, NetError> {
        self.input = None;
        let line = self.line()?;
        let report = serde_json::from_str(&line);
        report.map_err(|error| NetError::Relay(format!("the delay relay's report: {error}")))
    }

    /// Its next line of output, or why there is none.
    fn line(&mut self) -> Result<String, NetError> {
        let mut fds = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        let said = self.output.buffer().is_empty().then(|| poll(&mut fds, Some(&PATIENCE)));
        if matches!(said, Some(Ok(0))) {
            return Err(NetError::Relay("the delay relay did not answer".into()));
        }
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(length) if length > 0 => Ok(line),
            _ => {
                // Its output is closed, so it has exited or is about to.
                let mut words = String::new();
                let _ = self.errors.read_to_string(&mut words);
                Err(NetError::Relay(format!("the delay relay exited: {}", words.trim())))
            }
        }
    }
}

/// A relay that waits to be scheduled is late: by milliseconds on a busy core even with the highest nice value. So it
/// gets a real-time priority if permitted, like the interrupts of the network card it stands for.
fn command(weir: &Path) -> Command {
    let real_time = ["-f", "1"];
    let tried = Command::new("chrt").args(real_time).arg("true").stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        return Command::new(weir);
    }
    let mut command = Command::new("chrt");
    command.args(real_time).arg(weir);
    command
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
