//! Names in settings, such as those of cipher suites: their lookup, and the error for an unknown name.

use std::fmt::Display;

/// An unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {value:?}: expected {allowed}")]
pub struct UnknownName {
    /// The kind of name.
    pub what: &'static str,
    /// The unknown name.
    pub value: String,
    /// The expected names.
    pub allowed: String,
}

/// Finds the item of `all` that satisfies `is`.
pub(crate) fn find<T: Copy + Display>(
    what: &'static str,
    value: &str,
    all: &[T],
    is: impl Fn(T) -> bool,
) -> Result<T, UnknownName> {
    all.iter().copied().find(|&known| is(known)).ok_or_else(|| UnknownName {
        what,
        value: value.to_owned(),
        allowed: joined(all),
    })
}

pub(crate) fn joined<'a, T: Display + 'a>(items: impl IntoIterator<Item = &'a T>) -> String {
    items.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
