//! The gateway's log without a reader.

use crate::common::{Certificates, Client, DEADLINE, Weir, poll_until};
use std::io::{Read as _, Write as _};

/// Regression test: workers wrote their lines themselves, and blocked indefinitely when the pipe was full.
#[test]
fn a_log_that_nobody_reads_stops_no_request() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let capacity = rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    let mut full = writer.try_clone().unwrap();
    full.write_all(&vec![b'\n'; capacity]).unwrap();
    drop(full);
    let upstream = crate::common::origin(false, &Certificates::new());
    let args = ["serve", "--workers", "1", "--listen", "http://127.0.0.1:0", "--to", &upstream.urls[0]];
    let weir = Weir::start_with_stderr(&args, writer);
    for _ in 0..3 {
        let mut bad = Client::connect(weir.address(), None);
        assert_eq!(bad.ask("GET / HTTP/1.1\r\n\r\n").status, 400);
        let mut good = Client::connect(weir.address(), None);
        assert_eq!(good.ask("GET /bytes/10 HTTP/1.1\r\nHost: h\r\n\r\n").body.len(), 10);
    }
    // A late reader still gets all lines.
    let mut text = String::new();
    let mut bytes = vec![0; 4096];
    poll_until(DEADLINE, "three lines", || {
        let length = reader.read(&mut bytes).unwrap();
        text += &String::from_utf8_lossy(&bytes[..length]);
        text.matches("400 missing_host").count() == 3
    });
}
