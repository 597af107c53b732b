//! The table of base multiples, made by the build script: no initialisation, no lock, and no data to trust. A test compares each
//! point with AWS-LC's.

use super::base::{ENTRIES, Entry, STEPS};

/// Cache lines begin at entries.
#[repr(align(64))]
pub(super) struct Table(pub(super) [[Entry; ENTRIES]; STEPS]);

/// See [`super::base::table`].
pub(super) static TABLE: Table = Table(include!(concat!(env!("OUT_DIR"), "/p256.rs")));
