//! HTTP/2 with other programs as clients.

mod clients;
mod h2spec;
