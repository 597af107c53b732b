//! The syntax of nginx's and HAProxy's configurations: directives, sections, times and sizes, without their meaning.
//!
//! [`Kind::of`] recognizes the program. [`nginx::parse`] returns directives with included files in place, and
//! [`haproxy::parse`] sections of lines. Each directive and line has its place ([`At`]).

pub mod haproxy;
pub mod nginx;

mod at;
mod kind;
mod reader;
mod values;

pub use at::{At, SyntaxError};
pub use kind::Kind;
pub use reader::{Files, Reader};
pub use values::{bytes, time};
