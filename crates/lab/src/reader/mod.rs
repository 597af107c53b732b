//! The experiment file: one grammar for all instruments. Strict: an unknown key or value is an error that names the file, the
//! line and what is allowed.

mod check;
mod document;

#[cfg(test)]
pub(crate) use document::parse;
pub(crate) use document::{blame, directory_key, load};

#[cfg(test)]
mod tests;
