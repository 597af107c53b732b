//! The `perf` program: its command lines and its failures.

use crate::error::ProfileError;
use crate::script::FIELDS;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// The first bytes of a `perf.data` file.
const MAGIC: &[u8] = b"PERFILE2";

/// Whether a file is a `perf.data` file.
pub(crate) fn is_perf_data(file: &Path) -> Result<bool, ProfileError> {
    let mut head = Vec::new();
    let read = File::open(file).and_then(|open| open.take(MAGIC.len() as u64).read_to_end(&mut head));
    read.map_err(|error| ProfileError::File { file: file.into(), detail: error.to_string() })?;
    Ok(head == MAGIC)
}

/// `perf`, independent of the user's configuration.
pub(crate) fn command(step: &'static str) -> Command {
    let mut command = Command::new("perf");
    command.arg(step).env("PERF_CONFIG", "/dev/null").stdin(Stdio::null());
    command
}

/// Starts `perf`, to know that it can be.
///
/// # Errors
/// It is missing, or does not run here.
pub fn check() -> Result<(), ProfileError> {
    let output = Command::new("perf").arg("--version").stdin(Stdio::null()).output();
    output.map(drop).map_err(|error| not_started("--version", &error))
}

/// The samples of a `perf.data` file as text. Inlined frames are left out: resolving them takes minutes.
pub(crate) fn script(file: &Path) -> Result<String, ProfileError> {
    let output = command("script")
        .args(["--force", "--no-inline", "-F", FIELDS, "-i"])
        .arg(file)
        .output()
        .map_err(|error| not_started("script", &error))?;
    let words = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(ProfileError::Perf { step: "script", detail: last_words(&words) }),
    }
}

/// Why `perf` did not start.
pub(crate) fn not_started(step: &'static str, error: &io::Error) -> ProfileError {
    match error.kind() {
        ErrorKind::NotFound => ProfileError::NoPerf { install: weir_doctor::how_to_get(package()) },
        _ => ProfileError::Perf { step, detail: error.to_string() },
    }
}

/// Debian's name differs from everybody else's.
fn package() -> &'static str {
    match fs::exists("/etc/debian_version") {
        Ok(true) => "linux-perf",
        _ => "perf",
    }
}

/// The last line that says something.
pub(crate) fn last_words(stderr: &str) -> String {
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next_back().unwrap_or("it printed nothing").to_owned()
}

/// `kernel.perf_event_paranoid`, if there is one.
pub(crate) fn paranoia() -> Option<i32> {
    weir_doctor::proc::text("sys/kernel/perf_event_paranoid")?.parse().ok()
}
