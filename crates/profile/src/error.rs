//! Why there is no profile.

use std::path::PathBuf;

/// Why CPU time could not be sampled, or samples not be read.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// `perf` is not on the PATH.
    #[error("`perf` is not on the PATH; {install}")]
    NoPerf {
        /// How to install it.
        install: String,
    },
    /// No such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Its process ID.
        pid: u32,
    },
    /// The process belongs to another user.
    #[error("process {pid} belongs to another user; run `weir profile` as that user or as root")]
    OtherUser {
        /// Its process ID.
        pid: u32,
    },
    /// The kernel does not let this user sample.
    #[error(
        "the kernel forbids sampling (perf_event_paranoid is {level}); run it as root, or allow it with \
         `sudo sysctl kernel.perf_event_paranoid=1`"
    )]
    Forbidden {
        /// The value of `kernel.perf_event_paranoid`.
        level: i32,
    },
    /// It ended before a sample was taken, or used no CPU.
    #[error("no samples: {why}")]
    NoSamples {
        /// What happened instead, and the next step.
        why: String,
    },
    /// `perf` failed for another reason.
    #[error("`perf {step}` failed: {detail}")]
    Perf {
        /// Its subcommand.
        step: &'static str,
        /// Its last words.
        detail: String,
    },
    /// A file cannot be read.
    #[error("{}: {detail}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, and what was expected.
        detail: String,
    },
    /// A line of a file is invalid.
    #[error("{}:{line}: {detail}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it, and what was expected.
        detail: String,
    },
    /// A file has no samples.
    #[error("{}: it has no samples", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// A flame graph cannot be drawn.
    #[error("cannot draw the flame graph: {0}")]
    Flame(String),
}

impl ProfileError {
    /// Whether a flag or one of its files is at fault.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NoProcess { .. } | Self::File { .. } | Self::Line { .. } | Self::Empty { .. })
    }
}
