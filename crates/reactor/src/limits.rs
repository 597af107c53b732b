//! The process's limit on open files, and their number.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Raises the soft limit on open files to the hard limit and returns it; `None` means unlimited. Many systems default
/// to 1024, enough for 500 connections through a gateway. Errors: those of setrlimit(2); the old limit then remains.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(limit.maximum)
}

/// The number of open descriptors of this process; an estimate if /proc is not mounted.
pub fn open_files() -> usize {
    // The estimate: standard streams, libraries, and files opened at startup.
    const USUAL: usize = 32;
    // Minus the descriptor of the directory itself.
    std::fs::read_dir("/proc/self/fd").map_or(USUAL, |open| open.count().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let maximum = raise_open_files().unwrap();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!((limit.current, limit.maximum), (maximum, maximum));
    }

    #[test]
    fn open_files_are_counted() {
        // Other tests open and close descriptors in the meantime, so the exact number is unknown.
        let files: Vec<_> = (0..500).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        assert!(open_files() >= files.len());
    }
}
