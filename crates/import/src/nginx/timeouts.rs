//! Timeouts: the general ones, and those of a route.

use super::http::Context;
use super::module::Module;
use super::time;
use crate::model::{Document, Table, Value};
use crate::note::Notes;
use crate::values;
use weir_syntax::nginx::Scope;

/// Translates the timeouts that nginx sets per `server` block, but Weir only globally: the longest applies.
pub(super) fn of_servers(servers: &[Scope<'_>], document: &mut Document, notes: &mut Notes) {
    for (name, key) in [
        ("client_header_timeout", "head"),
        ("client_body_timeout", "stall"),
        ("send_timeout", "stall"),
        ("keepalive_timeout", "idle"),
    ] {
        for directive in servers.iter().filter_map(|server| server.find(name)) {
            match time(directive.arg()) {
                Some(0) if key == "idle" => {
                    let message = "Weir keeps connections; set timeouts.idle to a short time";
                    notes.loss(&directive.at, directive.text(), message);
                }
                Some(ms) => document.timeouts.set(key, ms, name, notes),
                None => notes.loss(&directive.at, directive.text(), "expected a time; see [timeouts]"),
            }
        }
    }
}

/// Returns the timeouts of a location's route, without those that `http` sets. Adds those, and any connect timeout, to
/// the general timeouts.
pub(super) fn of_route(
    module: Module,
    scope: &Scope<'_>,
    is_upgraded: bool,
    context: &mut Context<'_>,
) -> Table {
    let mut table = Table::default();
    let mut stall = None;
    for (name, is_read) in [("proxy_read_timeout", true), ("proxy_send_timeout", false)] {
        let Some(directive) = module.find(scope, name) else { continue };
        let Some(ms) = time(directive.arg()).filter(|ms| *ms > 0) else { continue };
        let general = module.find(&context.scope, name);
        let is_general = general.is_some_and(|general| std::ptr::eq(general, directive));
        let name = module.name(name);
        if is_general {
            if is_read {
                context.document.timeouts.set("response", ms, &name, context.notes);
            }
            context.document.timeouts.set("stall", ms, &name, context.notes);
        } else if is_read {
            table.texts("response", values::duration(ms));
        }
        if !is_general {
            stall = stall.max(Some(ms));
        }
        if is_read && is_upgraded {
            table.texts("tunnel", values::duration(ms));
        }
    }
    if let Some(text) = stall.and_then(values::duration) {
        table.text("stall", text);
    }
    let connect = "proxy_connect_timeout";
    if let Some(directive) = module.find(scope, connect)
        && let Some(ms) = time(directive.arg())
    {
        context.document.timeouts.set("connect", ms, &module.name(connect), context.notes);
    }
    table.0.retain(|(_, value)| *value != Value::List(Vec::new()));
    table
}
