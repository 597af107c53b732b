//! The content of each resource, in any version of HTTP.

use crate::counters::Counters;
use crate::response::Status;
use crate::route::Resource;
use std::borrow::Cow;

pub(crate) const TEXT: &str = "text/plain";
pub(crate) const JSON: &str = "application/json";
pub(crate) const BYTES: &str = "application/octet-stream";
pub(crate) const GRPC: &str = "application/grpc";

const NO_CALL: &str = "gRPC: expected POST with content-type application/grpc in HTTP/2\n";

/// The content of a response that is no echo.
pub(crate) enum Content {
    /// This many bytes of the known pattern.
    Pattern(u64),
    /// A few bytes.
    Short { status: Status, kind: &'static str, body: Cow<'static, str> },
}

impl Content {
    /// The content of `resource`. An echo without a body to echo is empty.
    pub(crate) fn of(resource: Resource, counters: &[Counters]) -> Self {
        let (status, kind, body) = match resource {
            Resource::Bytes(total) => return Self::Pattern(total),
            Resource::Hello => (Status::Ok, TEXT, "The Weir test server: /bytes/N, /echo, /stats.\n".into()),
            Resource::Echo => (Status::Ok, BYTES, "".into()),
            Resource::Stats => (Status::Ok, JSON, Counters::sum(counters).to_json().into()),
            Resource::Unknown => (Status::NotFound, TEXT, "Not found.\n".into()),
            Resource::Invalid(why) => (Status::BadRequest, TEXT, format!("{why}\n").into()),
            Resource::Grpc(_) => (Status::BadRequest, TEXT, NO_CALL.into()),
            Resource::Tunnel => {
                (Status::NotImplemented, TEXT, "CONNECT: the test server opens no tunnels\n".into())
            }
        };
        Self::Short { status, kind, body }
    }
}
