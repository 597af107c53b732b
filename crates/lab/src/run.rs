//! One run of one cell: what is planned, what was seen, and whether it may be used.

use crate::cell::Cell;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One process run that is to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Names its file: stage, position and cell.
    pub id: String,
    /// Calibration or which block.
    pub stage: Stage,
    /// What is run.
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
}

impl Stage {
    /// Its block; 0 before the first.
    pub fn block(self) -> u32 {
        match self {
            Self::Calibration => 0,
            Self::Block(block) => block,
        }
    }
}

/// A run as it is stored: what was planned, whether it may be used, and beside these what its instrument saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run<S> {
    /// Version of this layout: [`SCHEMA`].
    pub schema: u32,
    /// What was planned.
    #[serde(flatten)]
    pub run: PlannedRun,
    /// Whether it may be used.
    pub validity: Validity,
    /// What was seen.
    #[serde(flatten)]
    pub seen: S,
}

/// The layout's version of stored runs and plans. Those of version 1 are read as well.
pub const SCHEMA: u32 = 2;

impl<S> Run<S> {
    /// Not judged yet.
    pub(crate) fn new(run: &PlannedRun, seen: S) -> Self {
        Self { schema: SCHEMA, run: run.clone(), validity: Validity::Valid, seen }
    }
}

/// `valid`, or `invalid: reason`. An invalid run is kept and listed, and never averaged: one that only made errors can be
/// the fastest of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Validity {
    /// It may be used.
    Valid,
    /// It may not, and why.
    Invalid(String),
}

impl Validity {
    /// Whether it may be used.
    pub fn is_valid(&self) -> bool {
        *self == Self::Valid
    }

    /// From the first rule that is broken.
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
