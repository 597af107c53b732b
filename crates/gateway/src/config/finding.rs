//! Findings: what is wrong with a configuration, and what is valid and rarely meant.

use std::fmt;

/// An invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Fault {
    /// Its key in the document, such as `service.api.servers.0`.
    pub key: String,
    /// What is wrong, and what was expected.
    pub message: String,
}

/// Whether the gateway starts nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It does not.
    Fault,
    /// It does.
    Warning,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Fault or warning.
    pub severity: Severity,
    /// The key in the document; empty: it is about the file.
    pub key: String,
    /// What is wrong, or what follows from the value.
    pub message: String,
    /// An imperative; `None`: the message says what was expected.
    pub next: Option<String>,
    /// `None`: it was not read from a file.
    pub location: Option<Location>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub file: String,
    /// The line, counted from 1; `None`: the key is in no line.
    pub line: Option<usize>,
}

/// All of a configuration, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

impl Fault {
    pub(super) fn new(key: impl Into<String>, message: impl ToString) -> Self {
        Self { key: key.into(), message: message.to_string() }
    }
}

impl From<Fault> for Finding {
    fn from(Fault { key, message }: Fault) -> Self {
        Self { severity: Severity::Fault, key, message, next: None, location: None }
    }
}

impl From<Fault> for Findings {
    fn from(fault: Fault) -> Self {
        Self(vec![fault.into()])
    }
}

impl Finding {
    /// Whether it is the same, wherever in the file it is.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.severity, &self.key, &self.message) == (other.severity, &other.key, &other.message)
    }
}

impl Findings {
    /// One fault, in a place that is known already.
    pub(super) fn at(location: Location, message: String) -> Self {
        let (severity, key) = (Severity::Fault, String::new());
        Self(vec![Finding { severity, key, message, next: None, location: Some(location) }])
    }

    /// Adds a fault, once: what several parts inherit is one fault.
    pub(crate) fn fault(&mut self, fault: Fault) {
        let fault = fault.into();
        if !self.0.iter().any(|known| known.is_same(&fault)) {
            self.0.push(fault);
        }
    }

    /// Adds a warning: what follows from the value of `key`, and as an imperative what to do next.
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

    /// The value; or `None`, and the fault is added.
    pub(crate) fn keep<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.fault(fault)).ok()
    }

    /// Locates each by its key, and brings them into the order of the file.
    pub(super) fn locate(&mut self, locate: impl Fn(&str) -> Location) {
        for finding in &mut self.0 {
            let location = finding.location.take();
            finding.location = Some(location.unwrap_or_else(|| locate(&finding.key)));
        }
        // What is missing in the file comes last.
        self.0.sort_by_key(|finding| finding.location.as_ref().and_then(|at| at.line).unwrap_or(usize::MAX));
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// The faults.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter().filter(|finding| finding.severity == Severity::Fault)
    }

    /// The warnings.
    pub fn warnings(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter().filter(|finding| finding.severity == Severity::Warning)
    }

    /// The faults, a line each.
    pub fn faults_in_words(&self) -> String {
        self.faults().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for Finding {
    /// One line: `FILE:LINE: KEY: MESSAGE`, with `warning` before the key if it is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, key, message, next, location } = self;
        if let Some(Location { file, line }) = location {
            match line {
                Some(line) => write!(f, "{file}:{line}: ")?,
                None => write!(f, "{file}: ")?,
            }
        }
        if *severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        f.write_str(message)?;
        next.iter().try_for_each(|next| write!(f, "; {next}"))
    }
}

impl fmt::Display for Findings {
    /// A line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, finding) in self.0.iter().enumerate() {
            let between = if at == 0 { "" } else { "\n" };
            write!(f, "{between}{finding}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Findings {}
