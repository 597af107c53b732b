//! The lab's errors.

use std::path::PathBuf;

pub use weir_toml::ConfigError;
pub(crate) use weir_toml::{line_at, message_of};

/// Why the lab stopped.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// An invalid experiment, target description or option: for the user to correct.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file or directory could not be read or written.
    #[error("{}: {action}: {source}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The operation that failed.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// A path given as a result is not one.
    #[error("{}: {why}", path.display())]
    NoResult {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// A stored result does not have the expected schema.
    #[error("{}: not a result of this program: {message}", path.display())]
    Stored {
        /// The file.
        path: PathBuf,
        /// The fault.
        message: String,
    },
    /// The machine denies a resource that every run needs.
    #[error("{action}: {source}")]
    System {
        /// The operation that failed.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The requested network cannot be created, or failed.
    #[error(transparent)]
    Network(#[from] weir_netem::NetError),
    /// A target or an engine named on the command line cannot run on this machine.
    #[error("{target} cannot run: {why}; {option} names it, so nothing was run")]
    Absent {
        /// Its name.
        target: String,
        /// The reason.
        why: String,
        /// The option that names it.
        option: &'static str,
    },
    /// No cell is left to run.
    #[error("nothing to run: {0}")]
    Nothing(String),
    /// No run of a mode measured a rate that the equal rate could be derived from.
    #[error("calibration: {0}")]
    Calibration(String),
    /// A target failed in every run of the first blocks.
    #[error("{0}")]
    Broken(String),
    /// No certificate could be issued.
    #[error("certificate: {0}")]
    Certificate(String),
    /// An install script failed.
    #[error("{target}: {message}")]
    Install {
        /// The target.
        target: String,
        /// The failure.
        message: String,
    },
    /// SIGINT or SIGTERM. Stored runs are kept.
    #[error("interrupted; finished runs are kept; resume with --continue {}", directory.display())]
    Interrupted {
        /// The results directory.
        directory: PathBuf,
    },
}

impl LabError {
    /// The exit code of the program: 2 for usage and configuration, 1 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            _ => 1,
        }
    }

    pub(crate) fn file(
        path: impl Into<PathBuf>,
        action: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, action, source }
    }
}
