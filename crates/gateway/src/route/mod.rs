//! Route selection, and a route's changes to requests and responses.

mod ambiguous_paths;
mod conditions;
mod edits;
mod hosts;
mod location;
mod normal_path;
mod path_tree;
mod pattern;
mod split;
mod template;

pub(crate) use ambiguous_paths::{Routes, is_ambiguous, is_unusual};
pub(crate) use conditions::{Conditions, WantedField};
pub(crate) use edits::{Edits, PathEdit};
pub(crate) use hosts::{Hosts, LONGEST_HOST, host_of};
pub(crate) use location::Location;
pub(crate) use pattern::End;
pub use pattern::PathPattern;
pub(crate) use split::{Share, Split, next_point};
pub(crate) use template::{Template, Values};
