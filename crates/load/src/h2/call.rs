//! A gRPC call, and the check of its response.

use super::tally::Counts;
use crate::check::{Detail, ErrorClass, Wrong};
use weir_http2::Head;
use weir_http2::grpc::{self, Messages, STATUSES};

/// The response to a call, as far as it has been received.
#[derive(Debug, Default)]
pub(super) struct Call {
    messages: Messages,
    end: End,
}

/// The status of a call.
#[derive(Debug, Default)]
enum End {
    /// Not received.
    #[default]
    Missing,
    Ok,
    /// Another status, or no response of gRPC.
    Wrong(Box<Wrong>),
}

/// The maximum length of a server's text in an error, in bytes.
const MOST_TEXT: usize = 200;

impl Call {
    /// The final head. One that ends the response has the status (*trailers-only*).
    pub(super) fn head(&mut self, head: &Head, end: bool, counts: &mut Counts) {
        let content_type = grpc::value(&head.fields, &head.bytes, b"content-type");
        if !content_type.is_some_and(grpc::is_content_type) {
            let found = content_type
                .map_or("no content-type".to_string(), |value| format!("content-type {}", shown(value)));
            self.end = wrong(ErrorClass::Malformed, format!("{found}: expected application/grpc"));
        } else if end {
            self.status(head, counts);
        }
    }

    /// Bytes of the body.
    pub(super) fn body(&mut self, bytes: &[u8], counts: &mut Counts) {
        let before = self.messages.count();
        self.messages.take(bytes);
        counts.messages_received += self.messages.count() - before;
    }

    /// The trailers.
    pub(super) fn trailers(&mut self, head: &Head, counts: &mut Counts) {
        if let End::Missing = self.end {
            self.status(head, counts);
        }
    }

    fn status(&mut self, head: &Head, counts: &mut Counts) {
        let Some(value) = grpc::value(&head.fields, &head.bytes, grpc::STATUS) else { return };
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u32>().ok());
        counts.status(number);
        self.end = match number {
            Some(0) => End::Ok,
            None => wrong(ErrorClass::Malformed, format!("invalid grpc-status `{}`", shown(value))),
            Some(number) => {
                let name = STATUSES.get(number as usize).unwrap_or(&"(unknown)");
                let text = grpc::value(&head.fields, &head.bytes, grpc::MESSAGE).unwrap_or_default();
                let text = if text.is_empty() { String::new() } else { format!(": {}", shown(text)) };
                wrong(ErrorClass::GrpcStatus, format!("grpc-status {number} {name}{text}"))
            }
        };
    }

    /// Checks the complete response, which should have `expected` messages.
    pub(super) fn check(self, expected: u64) -> Option<Wrong> {
        let malformed = |text| Some(Wrong { class: ErrorClass::Malformed, detail: text });
        match self.end {
            End::Wrong(wrong) => return Some(*wrong),
            End::Missing => return malformed(Detail::Fixed("the response has no grpc-status")),
            End::Ok => {}
        }
        if let Err(bad) = self.messages.end() {
            return malformed(Detail::Text(bad.to_string()));
        }
        let count = self.messages.count();
        (count != expected)
            .then(|| Wrong::number(ErrorClass::Length, "unexpected number of messages:", count))
    }
}

fn wrong(class: ErrorClass, text: String) -> End {
    End::Wrong(Box::new(Wrong { class, detail: Detail::Text(text) }))
}

/// A value from the server, as it may be printed.
fn shown(value: &[u8]) -> String {
    value[..value.len().min(MOST_TEXT)].escape_ascii().to_string()
}
