//! A planned run of one cell, and the stage that it belongs to.

use super::cell::Cell;
use serde::{Deserialize, Serialize};

/// The schema's version of stored runs and plans.
pub const SCHEMA: u32 = 2;

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
