//! What the test server has counted, asked for at its `/stats`.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long the test server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many connections the test server that listens at `address` has accepted, this look's own among them.
pub(super) fn accepted(address: &str) -> io::Result<u64> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /stats HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    connections(&answer)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its answer has no number of connections"))
}

fn connections(answer: &str) -> Option<u64> {
    let (_head, body) = answer.split_once("\r\n\r\n")?;
    serde_json::from_str::<serde_json::Value>(body).ok()?["connections"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_in_the_answers_body() {
        let answer = |body: &str| format!("HTTP/1.1 200 OK\r\nServer: weir-origin\r\n\r\n{body}");
        assert_eq!(connections(&answer("{\"requests\":7,\"connections\":3}")), Some(3));
        assert_eq!(connections(&answer("{\"requests\":7}")), None);
        assert_eq!(connections("HTTP/1.1 200 OK\r\n"), None);
    }
}
