//! Limits of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Raises the number of files that this process may have open to the most that it is allowed (the soft limit to the
/// hard one), and returns that number; `None` is no limit. Many systems start programs with 1024, which is 500
/// connections of a gateway. Errors: as setrlimit(2). The old limit then stands.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(limit.maximum)
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
}
