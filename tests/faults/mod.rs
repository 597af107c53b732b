//! What goes wrong around the gateway: it goes on, loses only what it must, and says so.

mod clock;
mod disk;
mod restarts;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
