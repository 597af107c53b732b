//! Faults in the gateway's environment: the gateway keeps running, limits its losses and reports them.

mod clock;
mod disk;
mod restarts;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
