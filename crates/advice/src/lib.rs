//! Advice on a TLS service: rules on measured facts.
//!
//! [`advise`] looks at a running service, its process and its configuration. It gathers [`Facts`], each with its source,
//! and applies [`Rules`], which are data (`rules/*.toml`). A [`Finding`] names what was seen, what to change in the words
//! of the product's configuration, what the change would gain by the profile's split, and what it gives up. A rule
//! without its facts finds nothing.

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
