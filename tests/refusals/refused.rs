//! An error response, read to the end of its connection.

use crate::common::{Client, Ending};
use weir_http::Method;

pub(crate) const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Reads the error response and, unless it is about a server, the close that follows.
pub(crate) fn refusal(client: &mut Client, what: &str) -> (u16, String) {
    let answer = client.answer(Method::Get);
    let is_closed = !matches!(answer.status, 502..=504);
    assert_eq!(answer.says_close(), is_closed, "{what:?}: {}", answer.head);
    assert_eq!(answer.fields("content-length"), [answer.body.len().to_string()], "{what:?}");
    assert_eq!(answer.fields("content-type"), ["text/plain"], "{what:?}");
    assert_eq!(answer.fields("date").len(), 1, "{what:?}");
    assert!(answer.body.len() < 150, "{what:?}: {}", answer.text());
    if is_closed {
        let (rest, ending) = client.read_to_end();
        assert_eq!((rest.len(), ending), (0, Ending::Clean), "{what:?}");
    }
    // Close this side, so that the gateway need not wait for it.
    client.stream.finish_tcp();
    (answer.status, answer.text().to_owned())
}
