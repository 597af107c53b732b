//! The experiment file: one grammar for all instruments. Strict: an unknown key or value is an error that names the
//! file, the line and the allowed ones.

mod check;
mod document;
mod parse;
mod quick;
mod settings;

#[cfg(test)]
pub(crate) use parse::parse;
pub(crate) use parse::{blame, directory_key, load};

#[cfg(test)]
mod tests;
