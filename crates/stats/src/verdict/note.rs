//! Reasons to say nothing.

/// Why nothing may be said of a ratio, whatever its numbers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// There is no valid run to say it from: another try may have one.
    NoEvidence(String),
    /// Such runs cannot support it, however many there are.
    Unsupported(String),
}

impl Note {
    /// That the cell or target of this name has no valid run.
    pub fn no_valid_run(name: &str) -> Self {
        Self::NoEvidence(format!("{name} has no valid run"))
    }

    /// The reason, in words.
    pub fn text(&self) -> &str {
        match self {
            Self::NoEvidence(why) | Self::Unsupported(why) => why,
        }
    }
}
