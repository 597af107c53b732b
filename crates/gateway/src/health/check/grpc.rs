//! The messages of grpc.health.v1.Health/Check (the gRPC health checking protocol), within gRPC over HTTP/2.

use super::Outcome;
use crate::grpc;
use weir_http2::Head;

pub(super) const PATH: &str = "/grpc.health.v1.Health/Check";
pub(super) const FIELDS: [(&str, &str); 2] = [("content-type", CONTENT_TYPE), ("te", "trailers")];
const CONTENT_TYPE: &str = "application/grpc";

/// The request about a service; an empty name asks about the whole server.
pub(super) fn request(service: &str) -> Vec<u8> {
    let mut message = Vec::new();
    // proto3 omits a field at its default.
    if !service.is_empty() {
        message.push(SERVICE);
        write_varint(service.len(), &mut message);
        message.extend_from_slice(service.as_bytes());
    }
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[UNCOMPRESSED], &length[..], &message].concat()
}

#[derive(Debug, Default)]
pub(super) struct Response {
    body: Vec<u8>,
}

/// The server's health. Errors: the reason why the server is not SERVING.
pub(super) type Verdict = Result<(), String>;

impl Response {
    /// Checks the final head, and returns a verdict if one is already certain. `end`: the head also contains the fields
    /// of the trailers.
    pub(super) fn head(&self, head: &Head, end: bool) -> Option<Verdict> {
        if head.status != 200 {
            return Some(Err(format!("HTTP status {}", head.status)));
        }
        match field(head, "content-type") {
            Some(value) if grpc::is_content_type(value) => end.then(|| self.trailers(head)),
            value => {
                let value = value.map_or("no content-type".to_owned(), |value| {
                    format!("content-type {}", printable(value))
                });
                Some(Err(format!("{value}: expected {CONTENT_TYPE}")))
            }
        }
    }

    /// Stores a part of the body. Returns a verdict if the body is too long, or if it ends (`end`) without trailers.
    pub(super) fn data(&mut self, data: &[u8], end: bool) -> Option<Verdict> {
        if self.body.len() + data.len() > MOST_BYTES {
            return Some(Err(format!("a response of more than {MOST_BYTES} bytes")));
        }
        self.body.extend_from_slice(data);
        end.then(|| Err(NO_STATUS.to_owned()))
    }

    /// The verdict from the trailers and the message.
    pub(super) fn trailers(&self, head: &Head) -> Verdict {
        let value = field(head, "grpc-status").ok_or(NO_STATUS)?;
        match std::str::from_utf8(value).ok().and_then(|value| value.parse::<u32>().ok()) {
            Some(0) => {}
            Some(code) => {
                let name = usize::try_from(code).ok().and_then(|code| grpc::STATUSES.get(code));
                return Err(format!("grpc-status {code} {}", name.unwrap_or(&"(unknown)")));
            }
            None => return Err(format!("invalid grpc-status `{}`", printable(value))),
        }
        match serving_status(message(&self.body)?).ok_or("a malformed response message")? {
            SERVING => Ok(()),
            status => {
                let name = usize::try_from(status).ok().and_then(|status| STATUSES.get(status));
                Err(name.map_or_else(|| format!("status {status}"), |name| format!("status {name}")))
            }
        }
    }
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        verdict.map_or_else(Self::Failed, |()| Self::Passed)
    }
}

/// The only message of a body. Errors: the body has no message, more than one, or one that is compressed or truncated.
fn message(body: &[u8]) -> Result<&[u8], &'static str> {
    let Some((prefix, message)) = body.split_first_chunk::<5>() else {
        return Err(if body.is_empty() { "no response message" } else { "a truncated response message" });
    };
    let [compressed, length @ ..] = *prefix;
    let length = u32::from_be_bytes(length) as usize;
    match message.len() {
        _ if compressed != UNCOMPRESSED => Err("a compressed response message"),
        received if received < length => Err("a truncated response message"),
        received if received > length => Err("more than one response message"),
        _ => Ok(message),
    }
}

/// The status in a HealthCheckResponse; `None` if it is malformed. Skips other fields; the last value counts.
fn serving_status(mut message: &[u8]) -> Option<u64> {
    let mut status = 0;
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let length = match (tag >> 3, tag & 7) {
            (0, _) => return None,
            (field, VARINT) => {
                let value = varint(&mut message)?;
                if field == STATUS_FIELD {
                    status = value;
                }
                0
            }
            (_, FIXED_64) => 8,
            (_, LENGTH) => usize::try_from(varint(&mut message)?).ok()?,
            (_, FIXED_32) => 4,
            _ => return None,
        };
        message = message.get(length..)?;
    }
    Some(status)
}

/// Takes a variable-length integer; `None` if it is incomplete or exceeds 64 bits.
fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        let bits = u64::from(byte & 0x7f);
        // Nine bytes hold 63 bits, so the tenth may hold only one.
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn write_varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The value of a field; names are in lower case.
fn field<'a>(head: &'a Head, name: &str) -> Option<&'a [u8]> {
    let field = head.fields.iter().find(|field| field.name.of(&head.bytes) == name.as_bytes())?;
    Some(field.value.of(&head.bytes))
}

/// The start of a text from the server, escaped for the log.
fn printable(value: &[u8]) -> String {
    value[..value.len().min(100)].escape_ascii().to_string()
}

/// The tag of `service` in HealthCheckRequest: field 1, with a length.
const SERVICE: u8 = 1 << 3 | LENGTH as u8;
/// The number of the field `status` in HealthCheckResponse.
const STATUS_FIELD: u64 = 1;
const SERVING: u64 = 1;
const STATUSES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

/// Wire types of protobuf.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED_32: u64 = 5;

const UNCOMPRESSED: u8 = 0;
/// The maximum size of a body. The message takes 2 bytes today, but later versions may add fields.
const MOST_BYTES: usize = 4096;
const NO_STATUS: &str = "a response without grpc-status";

#[cfg(test)]
mod tests;
