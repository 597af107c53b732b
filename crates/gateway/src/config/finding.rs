//! Findings: faults of a configuration, and settings that are valid, but rarely intended.

use std::fmt;

/// A fault of the configuration: an invalid, missing or unknown key or value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Fault {
    /// The key in the configuration, such as `service.api.servers.0`.
    pub key: String,
    /// The fault, then the expected value.
    pub message: String,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The gateway does not start.
    Fault,
    /// The gateway starts nevertheless.
    Warning,
}

/// Advice to give this process's user access to a file. Names the user, since the operator often works as another user,
/// who can open the file.
fn right_to_it() -> String {
    let uid = rustix::process::geteuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| format!("`{name}` (uid {uid})"))
    });
    let user = name.unwrap_or_else(|| format!("of uid {uid}"));
    format!("give the user {user} the right to it, and to the directories above")
}

/// A fault or a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the finding prevents the start.
    pub severity: Severity,
    /// The key in the configuration; empty if the finding concerns the file as a whole.
    pub key: String,
    /// The fault, or the consequence of the value.
    pub message: String,
    /// The next step, in the imperative; `None` if the message states the expected value.
    pub next: Option<String>,
    /// The place in a file; `None` if the configuration was not read from one.
    pub location: Option<Location>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The path of the file.
    pub file: String,
    /// The line, counted from 1; `None` if no line contains the key.
    pub line: Option<usize>,
}

/// All findings about a configuration, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

impl Fault {
    pub(super) fn new(key: impl Into<String>, message: impl ToString) -> Self {
        Self { key: key.into(), message: message.to_string() }
    }
}

impl From<Fault> for Finding {
    fn from(Fault { key, message }: Fault) -> Self {
        // The text of rustls-webpki's error for an X.509 version 1 certificate.
        const VERSION_1: &str = "invalid peer certificate: Other(OtherError(UnsupportedCertVersion))";
        let next = if message.contains("Permission denied (os error 13)") {
            Some(right_to_it())
        } else if message.contains(VERSION_1) {
            Some("issue it with extensions, such as subjectAltName, which makes it version 3".to_owned())
        } else {
            None
        };
        let message = message.replace(VERSION_1, "it is X.509 version 1, which no TLS client accepts");
        Self { severity: Severity::Fault, key, message, next, location: None }
    }
}

impl From<Fault> for Findings {
    fn from(fault: Fault) -> Self {
        Self(vec![fault.into()])
    }
}

impl Finding {
    /// The message, and the next step.
    pub fn in_short(&self) -> String {
        match &self.next {
            Some(next) => format!("{}; {next}", self.message),
            None => self.message.clone(),
        }
    }

    /// The key and message. Findings of one severity with the same key and message are duplicates, regardless of their
    /// locations.
    pub(crate) fn identity(&self) -> (&str, &str) {
        (&self.key, &self.message)
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.severity, self.identity()) == (other.severity, other.identity())
    }
}

impl Findings {
    /// Adds a fault at a known location.
    pub(super) fn fault_at(&mut self, location: Location, key: &str, message: String) {
        let fault: Finding = Fault::new(key, message).into();
        self.0.push(Finding { location: Some(location), ..fault });
    }

    /// Adds a warning at a known location; `next` is the next step.
    pub(super) fn warn_at(&mut self, location: Location, key: &str, message: String, next: &str) {
        self.warn(key, message, next);
        if let Some(warning) = self.0.last_mut() {
            warning.location = Some(location);
        }
    }

    /// Adds the findings of `other` for which `is_wanted` returns true.
    pub(super) fn add(&mut self, other: Self, is_wanted: impl Fn(&Finding) -> bool) {
        self.0.extend(other.0.into_iter().filter(is_wanted));
    }

    /// Adds a fault, unless it is a duplicate: several parts may inherit the same fault.
    pub(crate) fn fault(&mut self, fault: Fault) {
        let fault = fault.into();
        if !self.0.iter().any(|known| known.is_same(&fault)) {
            self.0.push(fault);
        }
    }

    /// Adds a warning: `message` states the consequence of the value of `key`, and `next` the next step, in the
    /// imperative.
    pub(crate) fn warn(
        &mut self,
        key: impl Into<String>,
        message: impl Into<String>,
        next: impl Into<String>,
    ) {
        self.0.push(Finding {
            severity: Severity::Warning,
            key: key.into(),
            message: message.into(),
            next: Some(next.into()),
            location: None,
        });
    }

    /// Returns the value, or adds the fault and returns `None`.
    pub(crate) fn keep<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.fault(fault)).ok()
    }

    /// Locates each finding by its key.
    pub(super) fn locate(&mut self, locate: impl Fn(&str) -> Location) {
        for finding in &mut self.0 {
            let location = finding.location.take();
            finding.location = Some(location.unwrap_or_else(|| locate(&finding.key)));
        }
    }

    /// Sorts the findings by file and line, those without a line last. Removes duplicates: a line of `[defaults]` may
    /// cause the same finding for several routes.
    pub(super) fn sort(&mut self) {
        let files: Vec<_> =
            self.0.iter().filter_map(|finding| Some(finding.location.as_ref()?.file.clone())).collect();
        let place = |finding: &Finding| {
            let location = finding.location.as_ref();
            let file = location.and_then(|at| files.iter().position(|file| *file == at.file));
            (file, location.and_then(|at| at.line).unwrap_or(usize::MAX))
        };
        self.0.sort_by_key(place);
        self.0.dedup_by(|one, other| {
            (&one.location, &one.message, one.severity) == (&other.location, &other.message, other.severity)
        });
    }

    /// All findings, faults and warnings.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// The faults, which prevent the start.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter().filter(|finding| finding.severity == Severity::Fault)
    }

    /// The warnings, which do not prevent the start.
    pub fn warnings(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter().filter(|finding| finding.severity == Severity::Warning)
    }

    /// The faults, one per line.
    pub fn faults_in_words(&self) -> String {
        self.faults().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

impl fmt::Display for Finding {
    /// Writes one line: `FILE:LINE: KEY: MESSAGE`, with `warning` before the key of a warning.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, key, location, .. } = self;
        if let Some(location) = location {
            write!(f, "{location}: ")?;
        }
        if *severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.in_short())
    }
}

impl fmt::Display for Findings {
    /// Writes the findings, one per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, finding) in self.0.iter().enumerate() {
            let between = if at == 0 { "" } else { "\n" };
            write!(f, "{between}{finding}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Findings {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_permission_is_explained_with_the_user() {
        let uid = rustix::process::geteuid().as_raw();
        for (message, is_explained) in [
            ("/a/key.pem: cannot read: Permission denied (os error 13)", true),
            ("/a/key.pem: cannot read: No such file or directory (os error 2)", false),
        ] {
            let said = Finding::from(Fault::new("certificate.0.key", message)).to_string();
            assert!(said.starts_with(&format!("certificate.0.key: {message}")));
            assert_eq!(said.contains(&format!("uid {uid}")), is_explained, "{said}");
            assert_eq!(said.contains("; give the user "), is_explained, "{said}");
        }
    }
}
