//! A result for people and for programs: a table, rows, conditions, and a view while the run lasts.

pub(crate) mod assert;
pub mod csv;
pub mod figures;
pub mod live;
pub(crate) mod metric;
pub(crate) mod table;
