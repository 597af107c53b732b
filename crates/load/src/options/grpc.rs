//! Calls of gRPC.

use super::{HttpVersion, HttpVersions, Options, RequestOptions};
use crate::usage::Usage;
use weir_http2::grpc::PREFIX_BYTES;

/// Makes each request a gRPC call: its body is the message, sent `messages` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grpc {
    /// Messages to send in a call, 0 to 1000000.
    pub messages: u32,
    /// Expected messages in a response.
    pub expect_messages: u64,
}

impl Default for Grpc {
    /// A unary call: one message in each direction.
    fn default() -> Self {
        Self { messages: 1, expect_messages: 1 }
    }
}

const MOST_MESSAGES: u32 = 1_000_000;

/// Maximum bytes of a call's messages with their prefixes: they are held in memory.
const MOST_BYTES: u64 = 1 << 30;

/// Checks the calls against the other options.
pub(super) fn check(options: &Options) -> Result<(), Usage> {
    let Some(grpc) = options.grpc else { return Ok(()) };
    if options.http != HttpVersions::One(HttpVersion::Http2) {
        let expected = "--http 2 as well, for all connections: gRPC needs the streams and trailers of HTTP/2";
        return Err(Usage::new("--grpc", &options.url(), expected));
    }
    if grpc.messages > MOST_MESSAGES {
        return Err(Usage::new("--messages", &grpc.messages.to_string(), "0 to 1000000"));
    }
    options.requests.iter().try_for_each(|request| check_request(grpc, request))
}

fn check_request(grpc: Grpc, request: &RequestOptions) -> Result<(), Usage> {
    if let Some(method) = request.method.as_deref().filter(|method| *method != "POST") {
        return Err(Usage::new("-X", method, "POST, the method of gRPC calls (--grpc)"));
    }
    let expect = &request.expect;
    let wrong = |flag, value: &str, expected| Err(Usage::new(flag, value, expected));
    if let Some(status) = expect.status {
        let expected = "no --expect-status with --grpc, whose calls get 200 and grpc-status 0";
        return wrong("--expect-status", &status.to_string(), expected);
    }
    if let Some(length) = expect.length {
        let expected = "no --expect-length with --grpc, but --expect-messages";
        return wrong("--expect-length", &length.to_string(), expected);
    }
    if expect.sha256.is_some() {
        return wrong(
            "--expect-sha256",
            &request.path,
            "no --expect-sha256 with --grpc, but --expect-messages",
        );
    }
    let length = request.body.as_ref().map_or(0, Vec::len) as u64;
    if (length + PREFIX_BYTES as u64) * u64::from(grpc.messages) > MOST_BYTES {
        let expected = "at most 1 GiB per call (--data times --messages)";
        return wrong("--messages", &grpc.messages.to_string(), expected);
    }
    Ok(())
}
