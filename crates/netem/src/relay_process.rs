//! The delay relay as the lab's child: started, asked for its report, never left behind.

use crate::error::NetError;
use crate::relay::Settings;
use crate::report::RelayReport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

/// It has a few devices to make, or a report to print.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// A running delay relay. Dropped, it is killed; it also ends when this process does, with the pipe between them.
#[derive(Debug)]
pub(crate) struct RelayProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: ChildStderr,
}

impl RelayProcess {
    /// Starts it, and waits until its devices are there.
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
            // Why it does not listen, it tells on its standard error.
            let _ = input.write_all(&line);
        }
        match process.line()?.trim_end() {
            "ready" => Ok(process),
            other => Err(NetError::Relay(format!("the delay relay said `{other}` instead of `ready`"))),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it, and takes its report.
    pub(crate) fn finish(mut self) -> Result<RelayReport, NetError> {
        self.input = None;
        let line = self.line()?;
        let report = serde_json::from_str(&line);
        report.map_err(|error| NetError::Relay(format!("the delay relay's report: {error}")))
    }

    /// The next line that it says, or why there is none.
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
                // Its output has ended, so it has ended or is about to.
                let mut words = String::new();
                let _ = self.errors.read_to_string(&mut words);
                Err(NetError::Relay(format!("the delay relay ended: {}", words.trim())))
            }
        }
    }
}

/// A relay that waits for its turn is late: by milliseconds on a busy core even with the highest ordinary priority, so it
/// gets one of the real-time ones where it may, like the interrupts of the network card that it stands for.
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
