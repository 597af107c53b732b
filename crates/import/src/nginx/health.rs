//! Translates `health_check` to `health` of a service.

use super::time;
use crate::model::Table;
use crate::note::Notes;
use crate::values;
use weir_syntax::nginx::Directive;

/// The kind of a health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Path,
    Grpc,
    /// Connects and, with TLS, completes a handshake.
    Connection,
}

pub(super) fn health(check: &Directive, kind: Check, notes: &mut Notes) -> Table {
    let mut table = Table::default();
    match kind {
        Check::Path => table.text("path", "/"),
        Check::Grpc => table.text("grpc", ""),
        // nginx checks every 5 s by default.
        Check::Connection => table.text("every", "5s"),
    }
    for arg in &check.args {
        let Some((name, value)) = arg.split_once('=') else { continue };
        match name {
            "uri" if value.starts_with('/') && kind == Check::Path => table.text("path", value),
            "match" | "port" if kind == Check::Connection => {
                notes.loss(&check.at, arg, "a check is a connection to the server's own port; remove it");
            }
            "grpc_service" if kind == Check::Grpc => match values::is_grpc_service(value) {
                true => table.text("grpc", value),
                false => {
                    notes.loss(
                        &check.at,
                        arg,
                        "no name of a gRPC service; the check is about the whole server",
                    );
                }
            },
            "grpc_status" => {
                let message =
                    "a check passes if the server reports SERVING, and has no other status; remove it";
                notes.loss(&check.at, arg, message);
            }
            "interval" => {
                if let Some(text) = time(value).and_then(values::duration) {
                    table.text("every", text);
                }
            }
            "fails" | "passes" => {
                let key = if name == "fails" { "fall" } else { "rise" };
                if let Ok(count) = value.parse::<u32>() {
                    table.number(key, count.max(1).into());
                }
            }
            _ => {}
        }
    }
    table
}
