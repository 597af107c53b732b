//! Incomplete heads: when to parse them again.

use crate::Limits;

/// The state of an incomplete head that has been parsed. If the gateway parsed from the start with every received
/// piece, a client that sends many pieces could waste CPU time. So the gateway parses again only when another line is
/// complete ([`Limits::fields`] bounds the number of lines) or a limit is reached; errors in an incomplete line are
/// reported only then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The start of the last line, which is incomplete.
    line: usize,
}

impl Part {
    /// The state of `head`, which starts with the head's first byte.
    #[must_use]
    pub fn of(head: &[u8]) -> Self {
        Self { line: head.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) }
    }

    /// Whether to parse again once `more` has arrived after the first `length` bytes. Call this for every piece: it
    /// assumes that no piece since the state's creation has completed a line.
    #[must_use]
    pub fn is_worth_parsing(self, length: usize, more: &[u8], limits: &Limits) -> bool {
        let length = length + more.len();
        more.contains(&b'\n') || length - self.line >= limits.line_bytes || limits.is_reached_by(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parse, RequestError, RequestHead};

    /// Sends a head byte by byte: returns the result, the number of bytes until then, and the number of
    /// parses.
    fn trickle(head: &[u8], limits: &Limits) -> (Result<Parse, RequestError>, usize, usize) {
        let (mut part, mut parses) = (None::<Part>, 0);
        for length in 1..=head.len() {
            if part.is_some_and(|part| !part.is_worth_parsing(length - 1, &head[length - 1..length], limits))
            {
                continue;
            }
            parses += 1;
            match RequestHead::new().parse(&head[..length], limits) {
                Ok(Parse::Partial) => part = Some(Part::of(&head[..length])),
                result => return (result, length, parses),
            }
        }
        (Ok(Parse::Partial), head.len(), parses)
    }

    #[test]
    fn a_head_is_parsed_once_for_each_line() {
        let long = format!("X: {}\r\n", "y".repeat(5000));
        let head = format!("\r\nGET / HTTP/1.1\r\nHost: h\r\n{long}{long}\r\n");
        let complete = (Ok(Parse::Complete(head.len())), head.len(), 7);
        assert_eq!(trickle(head.as_bytes(), &Limits::default()), complete);
    }

    #[test]
    fn a_limit_is_found_with_the_byte_that_reaches_it() {
        let head = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "y".repeat(5000));
        for (head_bytes, line_bytes) in [(1000, 1000), (1000, 300), (300, 1000)] {
            let limits = Limits { head_bytes, line_bytes, ..Limits::default() };
            let at_once = (1..).find_map(|length| {
                let result = RequestHead::new().parse(&head.as_bytes()[..length], &limits);
                (result != Ok(Parse::Partial)).then_some((result, length))
            });
            let (result, length, parses) = trickle(head.as_bytes(), &limits);
            assert_eq!((Some((result, length)), parses), (at_once, 4), "{head_bytes} {line_bytes}");
        }
    }

    #[test]
    fn what_is_wrong_is_found_at_the_end_of_its_line() {
        let head = b"GET / HTTP/1.1\r\nHost: h\r\nna me: x\r\n\r\n";
        let (result, length, _) = trickle(head, &Limits::default());
        assert!(result.is_err());
        assert_eq!(length, head.len() - b"\r\n".len());
    }
}
