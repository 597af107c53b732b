//! Fields that connect a request with the logs of other machines.

use schemars::JsonSchema;
use serde::Deserialize;

/// Fields by which to find a request in the logs of other machines.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tracing {
    /// A field name, such as `"X-Request-Id"`: the gateway gives each request an ID of 32 hexadecimal digits in this
    /// field, and logs it in the access log. It keeps the ID of a trusted proxy. Default: none.
    pub request_id: Option<String>,
    /// Gives each request without a valid W3C `traceparent` a new, unsampled one; valid ones pass unchanged.
    pub traceparent: bool,
}
