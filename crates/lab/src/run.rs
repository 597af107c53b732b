//! One run of one cell: its plan, its measurements, and its validity.

use crate::cell::Cell;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A planned process run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Names its file: stage, position and cell.
    pub id: String,
    /// Calibration or a block.
    pub stage: Stage,
    /// The cell.
    pub cell: Cell,
    /// In a duet, the id of the cell that is measured at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
}

/// The part of an experiment that a run belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Before the blocks: finds each subject's maximum.
    Calibration,
    /// A block, counted from 1.
    Block(u32),
    /// After the blocks: samples the subject, and is never compared.
    Profile,
}

impl Stage {
    /// Its block; 0 outside the blocks.
    pub fn block(self) -> u32 {
        match self {
            Self::Calibration | Self::Profile => 0,
            Self::Block(block) => block,
        }
    }
}

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

/// The schema's version of stored runs and plans. Version 1 is supported too.
pub const SCHEMA: u32 = 2;

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
