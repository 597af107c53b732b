//! Output of a result: table, CSV rows, conditions, and the live view.

pub(crate) mod assert;
pub mod csv;
pub mod figures;
pub mod live;
pub(crate) mod metric;
pub(crate) mod table;
