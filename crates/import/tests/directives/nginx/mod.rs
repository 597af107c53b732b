//! Directives of nginx.

mod fields;
mod locations;
mod returns;
mod servers;
mod split;
mod stream;
mod upstreams;
