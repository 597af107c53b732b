//! The shared build cache of all checkouts: a variable's directory, or else the user's cache.

use std::ffi::OsString;
use std::path::PathBuf;

/// The directory `KIND` in `$XDG_CACHE_HOME/weir` or `~/.cache/weir`.
pub(crate) fn shared(kind: &str) -> PathBuf {
    absolute(shared_by(kind, |name| std::env::var_os(name)))
}

/// The directory `NAME` in `$VARIABLE`, or else in `$XDG_CACHE_HOME/weir/KIND` or `~/.cache/weir/KIND`.
pub(crate) fn directory(kind: &str, variable: &str, name: &str) -> PathBuf {
    directory_by(kind, variable, name, |name| std::env::var_os(name))
}

fn directory_by(kind: &str, own: &str, name: &str, variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let given = variable(own).filter(|value| !value.is_empty()).map(PathBuf::from);
    absolute(given.unwrap_or_else(|| shared_by(kind, variable)).join(name))
}

fn shared_by(kind: &str, variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || given("HOME").unwrap_or_else(|| PathBuf::from("/")).join(".cache");
    given("XDG_CACHE_HOME").unwrap_or_else(home).join("weir").join(kind)
}

/// Made absolute: a run has another working directory than this process.
fn absolute(directory: PathBuf) -> PathBuf {
    std::path::absolute(&directory).unwrap_or(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_shared_by_checkouts() {
        let directory = |set: &[(&str, &str)]| {
            let find = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            directory_by("targets", "WEIR_TARGETS", "fast", find).display().to_string()
        };
        assert_eq!(directory(&[("HOME", "/h")]), "/h/.cache/weir/targets/fast");
        assert_eq!(directory(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]), "/c/weir/targets/fast");
        assert_eq!(directory(&[("WEIR_TARGETS", "/w"), ("XDG_CACHE_HOME", "/c")]), "/w/fast");
        assert_eq!(directory(&[("WEIR_TARGETS", ""), ("HOME", "/h")]), "/h/.cache/weir/targets/fast");
        assert!(directory(&[("WEIR_TARGETS", "w")]).starts_with('/'), "a run has another working directory");
    }
}
