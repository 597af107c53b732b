//! HTTP/2 in cleartext. TLS and other clients are tested with the whole program.

mod abuse;
mod client;
mod ends;
mod flow;
mod grpc;
mod responses;
