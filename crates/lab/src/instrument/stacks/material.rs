//! The certificates of a results directory: for each kind a chain with an intermediate authority, as servers have it.

use crate::error::LabError;
use std::fs;
use std::path::{Path, PathBuf};
use weir_tls::issue::{Authority, IssueError, KeyKind};

/// Where the files of one kind of certificate are.
#[derive(Clone, Debug)]
pub(super) struct Files(PathBuf);

impl Files {
    /// Those of a kind below a directory, made where they are not there yet.
    ///
    /// # Errors
    /// When they cannot be issued or written.
    pub(super) fn of(kind: &str, directory: &Path) -> Result<Self, LabError> {
        let directory = directory.join(kind);
        let files = Self(directory.clone());
        if directory.join("ca.pem").is_file() {
            return Ok(files);
        }
        fs::create_dir_all(&directory).map_err(LabError::file(&directory, "cannot be made"))?;
        let wrong = |error: IssueError| LabError::Certificate(error.to_string());
        let kind = match kind {
            "rsa-2048" => KeyKind::Rsa2048,
            "ecdsa-p384" => KeyKind::EcdsaP384,
            _ => KeyKind::EcdsaP256,
        };
        let authority = Authority::with_keys(kind).and_then(|root| root.intermediate()).map_err(wrong)?;
        let issued = authority.issue(&["localhost"], kind).map_err(wrong)?;
        issued.write_to(&directory).map_err(wrong)?;
        Ok(files)
    }

    /// The lines of a scenario with sessions that name them.
    pub(super) fn lines(&self) -> String {
        let [ca, chain] = ["ca.pem", "cert.pem"].map(|name| self.0.join(name));
        format!("chain {}\nca {}\n{}", chain.display(), ca.display(), self.key_line())
    }

    /// The line for an operation, which has a key alone.
    pub(super) fn key_line(&self) -> String {
        format!("key {}\n", self.0.join("key.pem").display())
    }
}

/// The certificate whose key an operation signs with, if it does.
pub(super) fn key_of(operation: &str) -> Option<&str> {
    operation.strip_suffix("-sign").or_else(|| operation.strip_suffix("-verify"))
}
