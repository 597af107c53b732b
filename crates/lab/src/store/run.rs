//! One run of one cell as stored: its plan, its measurements, and its validity.

use crate::experiment::Grammar;
use crate::planning::planned_run::{PlannedRun, SCHEMA};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Debug};

/// An instrument's stored measurements.
pub trait Stored: Grammar {
    /// The measurements of one run, stored beside its plan and its validity.
    type Seen: Clone + Debug + PartialEq + Serialize + DeserializeOwned;

    /// Whether the measurements of a stored run have a supported schema version.
    ///
    /// # Errors
    /// Another version.
    fn check_layout(_run: &serde_json::Value) -> Result<(), String> {
        Ok(())
    }
}

/// The runs of an instrument.
pub type RunOf<I> = Run<<I as Stored>::Seen>;

/// A run as stored: its plan, its validity, and beside these the measurements of its instrument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run<S> {
    /// The schema's version: [`SCHEMA`].
    pub schema: u32,
    /// The planned run.
    #[serde(flatten)]
    pub run: PlannedRun,
    /// Its validity.
    pub validity: Validity,
    /// The measurements.
    #[serde(flatten)]
    pub seen: S,
}

impl<S> Run<S> {
    /// Not judged yet.
    pub(crate) fn new(run: &PlannedRun, seen: S) -> Self {
        Self { schema: SCHEMA, run: run.clone(), validity: Validity::Valid, seen }
    }
}

/// `valid`, or `invalid: reason`. An invalid run is stored and listed, and never averaged: a run of errors only can be
/// the fastest of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Validity {
    /// It counts.
    Valid,
    /// It does not count, and why.
    Invalid(String),
}

impl Validity {
    /// Whether it counts.
    pub fn is_valid(&self) -> bool {
        *self == Self::Valid
    }

    /// The first broken rule, if any.
    pub(crate) fn of(broken: Option<String>) -> Self {
        broken.map_or(Self::Valid, Self::Invalid)
    }
}

impl fmt::Display for Validity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid => formatter.write_str("valid"),
            Self::Invalid(reason) => write!(formatter, "invalid: {reason}"),
        }
    }
}

impl From<Validity> for String {
    fn from(validity: Validity) -> Self {
        validity.to_string()
    }
}

impl From<String> for Validity {
    fn from(text: String) -> Self {
        match text.strip_prefix("invalid: ") {
            Some(reason) => Self::Invalid(reason.to_owned()),
            None if text == "valid" => Self::Valid,
            None => Self::Invalid(text),
        }
    }
}
