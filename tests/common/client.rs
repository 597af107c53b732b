//! A client that sends exactly the given bytes and parses responses.

use super::{Ending, Stream};
use std::net::SocketAddr;
use weir_http::Method;
use weir_http1::{BodyDecoder, Limits, Parse, ResponseHead};
use weir_tls::Session;

/// One client connection.
pub struct Client {
    pub stream: Stream,
}

/// One response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// The head as received, including its empty line.
    pub head: String,
    /// The body, decoded.
    pub body: Vec<u8>,
    /// The body as received, with its framing.
    pub raw_body: Vec<u8>,
    /// The close within the response, if any; it ends a body without other framing.
    pub ending: Option<Ending>,
    /// Whether the body is complete.
    pub complete: bool,
}

impl Client {
    /// # Panics
    /// If the connection or its handshake fails.
    pub fn connect(address: SocketAddr, session: Option<Session>) -> Self {
        Self { stream: Stream::connect(address, session).unwrap() }
    }

    /// Sends all of `bytes`.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.send(bytes.as_ref()).unwrap();
    }

    /// Sends a request and reads its response. The bytes start with the method.
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> Answer {
        let request = request.as_ref();
        self.send(request);
        let method = request.split(|byte| *byte == b' ').next().unwrap_or_default();
        self.answer(Method::of(method))
    }

    /// Reads the response to a request with `method`, or one interim response.
    ///
    /// # Panics
    /// If there is no valid response.
    pub fn answer(&mut self, method: Method) -> Answer {
        self.next_answer(method).unwrap_or_else(|ending| panic!("{ending:?} instead of a response"))
    }

    /// Like [`Client::answer`].
    ///
    /// # Errors
    /// The close before the first byte of a response.
    pub fn next_answer(&mut self, method: Method) -> Result<Answer, Ending> {
        let (mut bytes, mut head) = (Vec::new(), ResponseHead::new());
        let len = loop {
            if let Some(ending) = self.stream.receive(&mut bytes) {
                assert!(bytes.is_empty(), "{ending:?} after {:?}", String::from_utf8_lossy(&bytes));
                return Err(ending);
            }
            match head.parse(&bytes, &Limits::default()) {
                Ok(Parse::Complete(len)) => break len,
                Ok(Parse::Partial) => {}
                Err(error) => panic!("{error}: {:?}", String::from_utf8_lossy(&bytes)),
            }
        };
        let mut raw_body = bytes.split_off(len);
        let mut decoder = BodyDecoder::new(head.framing(method), &Limits::default());
        let (mut body, mut at, mut ending) = (Vec::new(), 0, None);
        while !decoder.is_complete() && ending.is_none() {
            let step = decoder.decode(&raw_body[at..]).unwrap();
            body.extend_from_slice(&raw_body[at..][step.data]);
            at += step.consumed;
            if step.consumed == 0 && !decoder.is_complete() {
                ending = self.stream.receive(&mut raw_body);
            }
        }
        self.stream.unread(&raw_body[at..]);
        raw_body.truncate(at);
        // A body delimited by the end of the connection is complete only after a clean close.
        let complete =
            decoder.is_complete() || ending == Some(Ending::Clean) && decoder.end_of_input().is_ok();
        let head_text = String::from_utf8(bytes).unwrap();
        Ok(Answer { status: head.status, head: head_text, body, raw_body, ending, complete })
    }

    /// Reads to the end of the connection; returns all bytes and the kind of close.
    pub fn read_to_end(&mut self) -> (Vec<u8>, Ending) {
        let mut bytes = Vec::new();
        loop {
            if let Some(ending) = self.stream.receive(&mut bytes) {
                return (bytes, ending);
            }
        }
    }

    /// # Panics
    /// Unless the connection closes cleanly without further bytes.
    pub fn expect_end(&mut self) {
        let (bytes, ending) = self.read_to_end();
        assert_eq!((String::from_utf8_lossy(&bytes).as_ref(), ending), ("", Ending::Clean));
        // The gateway need not wait for this side to close.
        self.stream.finish_tcp();
    }
}

impl Answer {
    /// The values of the fields with this name, in any case.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        super::upstream::fields(&self.head, name)
    }

    /// The head without its single `Date` field.
    ///
    /// # Panics
    /// If it has none, or several.
    pub fn undated(&self) -> String {
        assert_eq!(self.fields("date").len(), 1, "{}", self.head);
        let lines = self.head.split_inclusive('\n');
        lines.filter(|line| !line.to_ascii_lowercase().starts_with("date:")).collect()
    }

    /// Whether the head announces that the connection closes after this response.
    pub fn says_close(&self) -> bool {
        self.fields("connection").iter().any(|value| value.eq_ignore_ascii_case("close"))
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}
