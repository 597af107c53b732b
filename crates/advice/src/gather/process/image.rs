//! The files that a process has mapped: libraries and their versions.

use memchr::memmem::Finder;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

/// The mapped files of a process.
pub(super) struct Image {
    pid: u32,
    /// The executable first.
    files: Vec<String>,
}

/// The maximum length of a text to search for.
const OVERLAP: usize = 64;

impl Image {
    pub(super) fn of(pid: u32) -> Self {
        let maps = weir_doctor::proc::text(&format!("{pid}/maps")).unwrap_or_default();
        let libraries: BTreeSet<&str> =
            maps.lines().filter_map(file).filter(|file| is_crypto(file)).collect();
        let mut files = vec![format!("/proc/{pid}/exe")];
        files.extend(libraries.into_iter().map(str::to_owned));
        Self { pid, files }
    }

    /// The version of its OpenSSL, such as `3.0.19`, from a shared library or the program itself.
    pub(super) fn openssl(&self) -> Option<String> {
        // Libraries first: a program that uses the shared library may contain the version it was built with.
        self.files.iter().rev().find_map(|file| find(&self.open(file)?, b"OpenSSL ", openssl_version))
    }

    /// nginx's version, such as `1.28.0`.
    pub(super) fn nginx(&self) -> Option<String> {
        find(&self.open(self.files.first()?)?, b"nginx/", |text| version(text).map(|(version, _)| version))
    }

    /// The flags that a Go program was compiled with, such as `all=-N -l`.
    pub(super) fn go_flags(&self) -> Option<String> {
        // A line of the build information; quoted if it contains spaces.
        let flags = |text: &str| (!text.is_empty()).then(|| text.trim_matches('"').to_owned());
        find(&self.open(self.files.first()?)?, b"build\t-gcflags=", flags)
    }

    /// Opens a file in the process's root directory, which may be that of a container.
    fn open(&self, file: &str) -> Option<File> {
        match file.starts_with("/proc/") {
            true => File::open(file).ok(),
            false => File::open(format!("/proc/{}/root{file}", self.pid)).or_else(|_| File::open(file)).ok(),
        }
    }
}

/// The file in a line of /proc/PID/maps.
fn file(line: &str) -> Option<&str> {
    Some(&line[line.find('/')?..])
}

fn is_crypto(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    name.starts_with("libcrypto.so") || name.starts_with("libcrypto-")
}

/// The first value after `start` that `read` can parse.
fn find(mut file: &File, start: &[u8], read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let finder = Finder::new(start);
    let mut buffer = vec![0; 1 << 20];
    let mut kept = 0;
    loop {
        let length = file.read(&mut buffer[kept..]).ok()?;
        let end = kept + length;
        for at in finder.find_iter(&buffer[..end]) {
            let text = &buffer[at + start.len()..end.min(at + start.len() + OVERLAP)];
            let text: Vec<u8> =
                text.iter().copied().take_while(|byte| (b' '..=b'~').contains(byte)).collect();
            if let Some(found) = read(&String::from_utf8_lossy(&text)) {
                return Some(found);
            }
        }
        if length == 0 {
            return None;
        }
        // Keep the end: it may be the beginning of a match.
        kept = end.min(2 * OVERLAP);
        buffer.copy_within(end - kept..end, 0);
    }
}

/// Parses a version followed by a date, as in a release's own version string: `3.0.19 27 Jan 2026`. Messages, and
/// compatible libraries such as BoringSSL, mention OpenSSL without a date.
fn openssl_version(text: &str) -> Option<String> {
    let (version, rest) = version(text)?;
    let mut words = rest.split_whitespace();
    let day = words.next()?.parse::<u8>().is_ok();
    (day && words.next()?.len() == 3 && words.next()?.parse::<u16>().is_ok()).then_some(version)
}

/// Splits off a version `X.Y.Z` with an optional suffix such as `a`.
fn version(text: &str) -> Option<(String, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(text.len());
    let (version, rest) = text.split_at(end);
    let starts_right = version.starts_with(|c: char| c.is_ascii_digit());
    (starts_right && version.matches('.').count() == 2).then(|| (version.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek as _, Write as _};

    #[test]
    fn a_release_has_a_date() {
        assert_eq!(openssl_version("3.0.19 27 Jan 2026").as_deref(), Some("3.0.19"));
        assert_eq!(openssl_version("1.1.1k  25 Mar 2021").as_deref(), Some("1.1.1k"));
        for text in ["1.1.1 (compatible; BoringSSL)", "library", "3.0", "", "3.0.0 onwards"] {
            assert_eq!(openssl_version(text), None, "{text}");
        }
    }

    #[test]
    fn a_version_is_found_across_the_pieces_of_a_file() {
        let at_border = (1 << 20) - 5;
        for before in [0, at_border, 3 << 20] {
            let mut file = tempfile::tempfile().expect("is created");
            let text = [vec![b'x'; before], b"OpenSSL %s\0OpenSSL 3.0.2 15 Mar 2022\0".to_vec()].concat();
            file.write_all(&text).and_then(|()| file.rewind()).expect("is written");
            assert_eq!(find(&file, b"OpenSSL ", openssl_version).as_deref(), Some("3.0.2"), "{before}");
        }
    }

    #[test]
    fn crypto_libraries_are_found_in_maps() {
        let line = "7f00-7f01 r--p 0 08:01 1     /usr/lib/x86_64-linux-gnu/libcrypto.so.3";
        assert!(file(line).is_some_and(is_crypto));
        assert!(!file("7f02-7f03 r--p 0 08:01 2 /usr/sbin/nginx").is_some_and(is_crypto));
    }
}
