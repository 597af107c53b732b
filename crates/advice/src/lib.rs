//! Advice on a TLS service: rules on measured facts.
//!
//! [`advise`] inspects a running service, its process and its configuration. It gathers [`Facts`], each with its
//! source, and applies [`Rules`], which are data (`rules/*.toml`). A [`Finding`] names the observation, the change in
//! the terms of the product's configuration, the gain that the profile predicts, and what the change gives up. A rule
//! whose facts are unknown finds nothing, unless it asks for that.

mod advice;
mod condition;
mod config;
mod fact;
mod finding;
mod gain;
mod gather;
mod offers;
mod product;
mod question;
mod rule;
mod split;
mod survey;
mod template;
mod text;

pub use advice::{Advice, Profiled};
pub use config::{Config, ConfigError};
pub use fact::{Fact, Facts, Value};
pub use finding::{Evidence, Finding, findings};
pub use gain::Gain;
pub use gather::Process;
pub use offers::costs;
pub use product::Product;
pub use question::{AdviceError, Question};
pub use rule::{Rules, RulesError};
pub use split::{Function, Part, Shared, Split};
pub use survey::advise;
