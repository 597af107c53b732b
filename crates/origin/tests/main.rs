//! The test server through a socket.

mod http1;
mod http2;
mod server;
