//! One plan or one result for its readers: on a terminal, on a page, and in formats for other programs.

pub(crate) mod answer;
pub(crate) mod describe;
pub mod export;
pub(crate) mod page;
pub mod shown;
pub(crate) mod split;
pub(crate) mod words;
