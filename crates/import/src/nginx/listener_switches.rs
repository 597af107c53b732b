//! Switches that apply per server or location in nginx, but per listener in Weir.

use crate::model::Table;
use crate::note::Notes;
use weir_syntax::nginx::{Directive, Scope};

/// Directives that are off by default, with the listener's key and its value for `on`.
const SWITCHES: [(&str, &str, &str); 2] = [
    ("underscores_in_headers", "underscores_in_headers", "pass"),
    ("proxy_ignore_client_abort", "half_close", "serve"),
];

/// Sets the switches that all servers of a listener turn on, and reports each server or location that differs.
pub(super) fn switches(name: &str, servers: &[&Scope<'_>], settings: &mut Table, notes: &mut Notes) {
    for (switch, key, value) in SWITCHES {
        let is_set = servers.iter().all(|server| server.find(switch).is_some_and(is_on));
        if is_set {
            settings.text(key, value);
        }
        let message = format!(
            "one setting for all servers and locations of a listener in Weir; review {key} of [listener.{name}]"
        );
        for server in servers {
            let set = server.find(switch).into_iter().chain(within(server.own(), switch));
            for directive in set.filter(|directive| is_on(directive) != is_set) {
                notes.loss(&directive.at, directive.text(), &*message);
            }
        }
        if is_set && switch == "underscores_in_headers" {
            notes.remark(
                "underscores_in_headers: fields that servers may take for others, such as X_Forwarded_For, are dropped all the same",
            );
        }
    }
}

fn is_on(directive: &Directive) -> bool {
    directive.arg().eq_ignore_ascii_case("on")
}

/// All directives of a name in a block and its nested blocks.
fn within<'a>(block: &'a [Directive], name: &str) -> Vec<&'a Directive> {
    let (mut found, mut pending) = (Vec::new(), block.iter().collect::<Vec<_>>());
    while let Some(directive) = pending.pop() {
        if directive.is(name) {
            found.push(directive);
        }
        pending.extend(directive.block());
    }
    found
}
