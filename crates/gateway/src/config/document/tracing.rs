//! What makes a request known by other machines.

use serde::Deserialize;

/// Fields that a request takes along, so that it is found again in other machines' logs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tracing {
    /// The field with the request's id, such as `X-Request-Id`: a trusted proxy's, else a new one; default: none.
    pub request_id: Option<String>,
    /// Adds a W3C `traceparent` to requests that have no valid one.
    pub traceparent: bool,
}
