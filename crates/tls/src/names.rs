//! Names that settings give: found among those that are known.

use std::fmt::Display;

/// A name that is none of the known ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {value:?}; allowed: {allowed}")]
pub struct UnknownName {
    /// What was being named.
    pub what: &'static str,
    /// The name given.
    pub value: String,
    /// The names that would be understood.
    pub allowed: String,
}

/// The one of `all` that `is` it.
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
