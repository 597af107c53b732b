//! The configuration: the operator's settings, and the snapshot that the workers use.

pub mod document;

mod certificate_json;
mod changes;
mod compile;
mod delta;
mod endpoints;
mod endpoints_json;
mod explain;
mod file;
mod finding;
mod inherited_state;
mod log_format;
mod named_files;
mod overrides;
mod policy;
#[cfg(test)]
mod reference;
pub(crate) mod restart;
mod schema;
mod served_certificates;
mod snapshot;
mod source;

pub use crate::network::Network;
pub use crate::route::PathPattern;
pub(crate) use certificate_json::certificate;
pub(crate) use changes::Changes;
pub(crate) use compile::{compile, why_invalid, workers};
pub(crate) use delta::Delta;
pub(crate) use endpoints::{EndpointLists, Endpoints, ServersFrom};
pub(crate) use endpoints_json::{endpoint, endpoints};
pub use file::{Checked, parse, read, read_after};
pub use finding::{Fault, Finding, Findings, Location, Severity};
pub(crate) use inherited_state::inherit_service_state;
pub(crate) use log_format::LogFormat;
pub(crate) use named_files::OnDisk;
pub(crate) use overrides::{Override, Overrides, Setting};
pub(crate) use policy::{
    Forms, InterimLimits, LEAST_BUFFER, MAX_PENDING, MinRate, MinRates, MirrorTo, Policy, RateLimit,
};
pub use schema::schema;
pub(crate) use served_certificates::{
    CertificateFrom, ServedCertificate, SetCertificates, origin_at_run_time,
};
pub use snapshot::Role;
pub(crate) use snapshot::{
    AccessLog, Action, FieldNames, Listener, ListenerId, Names, Pages, Passthrough, Redirect, Route, Server,
    Service, Snapshot, Tracing, UpstreamTls,
};
