//! What is refused: with which status and reason, that nothing of it reaches the upstream, and that the gateway goes on.

mod ports;
mod refused;
mod requests;
mod upstreams;
