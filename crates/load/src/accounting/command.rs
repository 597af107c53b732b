//! A shell command that reports the CPU time of a remote server, usually over ssh.

use super::cgroup::cpu_stat;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout. A new ssh connection across the world takes one or two seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum output read.
const MOST: u64 = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) cpu: Duration,
    /// When it was taken: half way between start and end of the command.
    pub(crate) at: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Silence {
    #[error("cannot run: {0}")]
    NotRun(String),
    #[error("{status}{words}")]
    Failed { status: ExitStatus, words: String },
    #[error("unexpected output `{0}`")]
    NotUnderstood(String),
    #[error("timed out after {} s", PATIENCE.as_secs())]
    TooLong,
}

/// Runs `sh -c text` and reads what it prints. It gets no input and no terminal.
/// Errors: when it fails, prints something else or takes longer than [`PATIENCE`]; its process group is then
/// killed.
pub(crate) fn sample(text: &str) -> Result<Sample, Silence> {
    sample_within(text, PATIENCE)
}

/// CPU between two samples, scaled to the length of the window. `None` when the counter went
/// backwards.
pub(crate) fn scaled(from: &Sample, to: &Sample, window: Duration) -> Option<(Duration, Duration)> {
    let (cpu, apart) = (to.cpu.checked_sub(from.cpu)?, to.at.checked_duration_since(from.at)?);
    let scaled = cpu.as_secs_f64() * window.as_secs_f64() / apart.as_secs_f64();
    Some((Duration::try_from_secs_f64(scaled).ok()?, apart))
}

/// What a command may print:
///
/// - one decimal number: CPU seconds so far;
/// - a cgroup's `cpu.stat`: its line `usage_usec N`;
/// - lines of three whole numbers, as in /proc/PID/task/TID/schedstat: the first numbers, nanoseconds, are
///   summed. (/proc/PID/schedstat covers only the first thread; `cat` fails if a thread exits meanwhile.)
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Some(cpu) = cpu_stat(text) {
        return Some(cpu);
    }
    if text.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && let Ok(seconds) = text.parse()
    {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let mut sum = None;
    for line in text.lines() {
        let numbers: Vec<u64> =
            line.split_ascii_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [nanoseconds, _, _] = numbers[..] else { return None };
        sum = Some(sum.unwrap_or(Duration::ZERO) + Duration::from_nanos(nanoseconds));
    }
    sum
}

fn sample_within(text: &str, patience: Duration) -> Result<Sample, Silence> {
    let not_run = |error: io::Error| Silence::NotRun(error.to_string());
    let started = Instant::now();
    let until = started + patience;
    let mut child = Command::new("sh")
        .args(["-c", text])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its own process group, so that its children can be killed with it.
        .process_group(0)
        .spawn()
        .map_err(not_run)?;
    let (printed, words) = (all_of(child.stdout.take()), all_of(child.stderr.take()));
    let spoken = received(&printed, until).zip(received(&words, until));
    let took = started.elapsed();
    let ended = spoken.and_then(|spoken| Some((spoken, ended(&mut child, until)?)));
    let Some(((printed, words), status)) = ended else {
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let _ = child.wait();
        return Err(Silence::TooLong);
    };
    if !status.success() {
        let words = words.trim().lines().last().map_or(String::new(), |line| format!(": {line}"));
        return Err(Silence::Failed { status, words });
    }
    let cpu = parse(&printed).ok_or_else(|| {
        let line = printed.lines().next().unwrap_or_default();
        Silence::NotUnderstood(line.chars().take(80).collect())
    })?;
    Ok(Sample { cpu, at: started + took / 2 })
}

/// Reads a pipe on a separate thread, as an orphaned grandchild may hold it open.
fn all_of(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // On an error, keep what was read.
            let _ = pipe.take(MOST).read_to_end(&mut bytes);
        }
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

fn received(text: &Receiver<String>, until: Instant) -> Option<String> {
    text.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
}

/// Waits for the exit status: the output is closed, so the end is near.
fn ended(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(1)),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms() {
        for (text, expected) in [
            ("12.5\n", Some(12_500_000_000)),
            ("0", Some(0)),
            ("  7 \n", Some(7_000_000_000)),
            (".25", Some(250_000_000)),
            ("usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n", Some(1_500_000)),
            ("123456789 5 6\n", Some(123_456_789)),
            ("1 0 0\n20 0 1\n300 7 2\n", Some(321)),
            ("", None),
            ("-1", None),
            ("inf", None),
            ("1e999", None),
            ("12.5 s", None),
            ("1 2", None),
            ("1 2 3 4", None),
            ("1 2 3\nx", None),
            ("nr_periods 0", None),
            ("12,5", None),
        ] {
            assert_eq!(parse(text), expected.map(Duration::from_nanos), "{text:?}");
        }
    }

    #[test]
    fn a_command_that_tells() {
        let before = Instant::now();
        let sampled = sample("echo 1.5; echo ignored >&2").unwrap();
        assert_eq!(sampled.cpu, Duration::from_millis(1500));
        assert!(before <= sampled.at && sampled.at <= Instant::now());
        // Threads of other tests exit meanwhile, which makes `cat` fail.
        let own = format!("cat /proc/{}/task/*/schedstat", std::process::id());
        let own = (0..100).find_map(|_| sample(&own).ok()).unwrap();
        assert!(own.cpu > Duration::ZERO);
    }

    #[test]
    fn a_command_that_does_not_tell_says_why() {
        for (text, why) in [
            ("exit 3", "exit status: 3"),
            ("echo no route >&2; exit 255", "exit status: 255: no route"),
            ("echo hello; echo 7", "unexpected output `hello`"),
            ("true", "unexpected output ``"),
        ] {
            let silence = sample(text).unwrap_err().to_string();
            assert!(silence.contains(why), "{text}: {silence}");
        }
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended_with_what_it_started() {
        let file = std::env::temp_dir().join(format!("weir-command-{}", std::process::id()));
        let script = format!("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
        assert_eq!(sample_within(&script, Duration::from_millis(300)), Err(Silence::TooLong));
        if let Ok(pid) = std::fs::read_to_string(&file) {
            let stat = format!("/proc/{}/stat", pid.trim());
            let deadline = Instant::now() + Duration::from_secs(20);
            // Its new parent may leave it as a zombie.
            let runs = || std::fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z "));
            while runs() {
                assert!(Instant::now() < deadline, "{stat} still runs");
            }
            std::fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn cpu_is_scaled_to_the_window() {
        let start = Instant::now();
        let at = |cpu_ms, at_ms| Sample {
            cpu: Duration::from_millis(cpu_ms),
            at: start + Duration::from_millis(at_ms),
        };
        let window = Duration::from_secs(10);
        let (cpu, apart) = scaled(&at(500, 0), &at(5500, 12_500), window).unwrap();
        assert_eq!((cpu, apart), (Duration::from_secs(4), Duration::from_millis(12_500)));
        assert_eq!(scaled(&at(500, 0), &at(400, 10_000), window), None, "counted backwards");
        assert_eq!(scaled(&at(500, 0), &at(600, 0), window), None, "no time between them");
    }
}
