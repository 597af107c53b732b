//! One line on stderr for every exchange or connection that ended early, rate-limited.

use crate::{Reason, lines};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// One worker's log.
#[derive(Debug)]
pub(crate) struct Log {
    second: Instant,
    lines: u32,
}

/// Details besides the reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub client: SocketAddr,
    /// Method and target, once a request has been read.
    pub request: Option<&'a str>,
}

impl Log {
    pub(crate) fn new(now: Instant) -> Self {
        Self { second: now, lines: 0 }
    }

    pub(crate) fn ended(&mut self, now: Instant, reason: &Reason, context: Context<'_>) {
        if now.duration_since(self.second) >= Duration::from_secs(1) {
            if self.lines > LINES_PER_SECOND {
                let unwritten = self.lines - LINES_PER_SECOND;
                lines::err(format_args!("weir: {unwritten} more lines suppressed"));
            }
            (self.second, self.lines) = (now, 0);
        }
        self.lines += 1;
        if self.lines > LINES_PER_SECOND {
            return;
        }
        let status = reason.status().map_or("-".to_string(), |status| status.to_string());
        let mut line = format!("weir: {status} {} client={}", reason.as_str(), context.client);
        if let Some(request) = context.request {
            line.push_str(&format!(" request=\"{}\"", request.replace('"', "%22")));
        }
        if let Some(detail) = reason.detail() {
            line.push_str(&format!(" detail=\"{detail}\""));
        }
        lines::err(line);
    }
}

/// Enough for diagnosis, too few for a flood of bad clients to become a flood of writes.
const LINES_PER_SECOND: u32 = 50;
