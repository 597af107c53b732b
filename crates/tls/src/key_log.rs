//! The secrets of each session in the NSS key log format, to decrypt captured traffic.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustls::KeyLog;

use crate::{FileError, SettingsError};

/// Appends to a file shared by all cores.
#[derive(Debug)]
pub(crate) struct KeyLogFile(File);

impl KeyLogFile {
    /// Opens the file, or creates it with mode 0600.
    pub(crate) fn open(path: &Path) -> Result<Self, SettingsError> {
        match OpenOptions::new().append(true).create(true).mode(0o600).open(path) {
            Ok(file) => Ok(Self(file)),
            Err(source) => Err(FileError::System { what: "write", path: path.to_owned(), source }.into()),
        }
    }
}

impl KeyLog for KeyLogFile {
    /// Writes each line at once in append mode, so the lines of several cores and processes do not mix. A failed write
    /// loses the line but does not fail the handshake.
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        let _ = (&self.0).write_all(line.as_bytes());
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
