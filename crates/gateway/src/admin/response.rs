//! Responses of the admin address, written as HTTP/1.1.

use serde::Serialize;

/// A response whose body is text or JSON.
#[derive(Debug)]
pub(super) struct Response {
    pub status: u16,
    pub kind: &'static str,
    pub body: String,
    /// The value of `Allow`; `None`: no such field.
    pub allow: Option<String>,
}

impl Response {
    pub(super) fn text(status: u16, body: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: body.into(), allow: None }
    }

    pub(super) fn json(status: u16, value: &impl Serialize) -> Self {
        let json = serde_json::to_string(value).unwrap_or_default();
        Self { kind: "application/json", ..Self::text(status, json + "\n") }
    }

    /// The bytes on the wire, without the body for HEAD.
    pub(super) fn bytes(&self, is_head: bool, persists: bool) -> Vec<u8> {
        let Self { status, kind, body, allow } = self;
        let phrase = crate::heads::own::phrase(*status);
        let allow = allow.as_ref().map(|methods| format!("Allow: {methods}\r\n")).unwrap_or_default();
        let connection = if persists { "" } else { "Connection: close\r\n" };
        let head = format!(
            "HTTP/1.1 {status} {phrase}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n{allow}{connection}\r\n",
            body.len()
        );
        [head.as_bytes(), if is_head { b"" } else { body.as_bytes() }].concat()
    }
}
