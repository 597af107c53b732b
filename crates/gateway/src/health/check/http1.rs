//! A check by HTTP/1.1: a GET request on a separate connection.

use super::Outcome;
use crate::config::document::Health;
use weir_http1::{Limits, Parse, ResponseHead, Rules};
use weir_transport::{Fault, Transport, Wire};

/// A GET request and the received part of its response.
#[derive(Debug)]
pub(super) struct Get {
    pub input: Vec<u8>,
    out: Vec<u8>,
}

impl Get {
    pub(super) fn new(host: &str, path: &str) -> Self {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: weir\r\nConnection: close\r\n\r\n");
        Self { input: Vec::new(), out: request.into_bytes() }
    }

    /// Sends the request once. Errors: the connection failed.
    pub(super) fn send(&mut self, transport: &mut Transport, wire: &mut Wire) -> Result<(), Fault> {
        match std::mem::take(&mut self.out) {
            request if request.is_empty() => Ok(()),
            request => transport.send(&request, wire),
        }
    }

    /// The result, once the received bytes determine it. `ended`: no more bytes follow.
    pub(super) fn outcome(&self, health: &Health, accept: Rules, ended: bool) -> Option<Outcome> {
        let mut head = ResponseHead::new();
        let limits = Limits::default();
        let parsed = head.parse(&self.input, &limits).or_else(|error| {
            let repaired = head.repair(&self.input, &limits, accept, error, &mut Vec::new());
            repaired
                .map(|repaired| repaired.map_or(Parse::Partial, |repaired| Parse::Complete(repaired.length)))
        });
        match parsed {
            Ok(Parse::Complete(_)) => Some(Outcome::of_status(health, head.status)),
            Ok(Parse::Partial) => ended.then(Outcome::closed),
            Err(error) => Some(Outcome::Failed(error.to_string())),
        }
    }
}
