//! Limits of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Raises the open-file limit of this process to its maximum (the soft limit to the
/// hard one), and returns it; `None` means unlimited. Many systems default to 1024, enough for 500
/// connections of a gateway. Errors: as setrlimit(2), leaving the old limit.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(limit.maximum)
}

/// How many descriptors this process has open; an estimate where /proc is not mounted.
pub fn open_files() -> usize {
    // Standard streams, libraries, and what a program opens at its start.
    const USUAL: usize = 32;
    // One of them is the directory.
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
        // Other tests open and close some meanwhile.
        let files: Vec<_> = (0..500).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        assert!(open_files() >= files.len());
    }
}
