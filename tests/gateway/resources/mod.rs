//! Limits of the process, and its behaviour at each of them.

mod descriptors;
mod handshakes;
mod memory;

use super::{held_back, metric, named};
use crate::common::{DEADLINE, Weir, poll_until};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

fn reload(weir: &Weir) -> u16 {
    weir.ask_admin("POST /reload").status
}
