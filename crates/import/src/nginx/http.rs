//! Translates the `http` block.

use super::errors::Pages;
use super::listen::{self, Place};
use super::split::{Split, splits};
use super::upstream::{Upstreams, upstreams};
use super::{log, server, timeouts};
use crate::model::{Document, Value};
use crate::note::Notes;
use crate::values;
use std::collections::BTreeMap;
use weir_syntax::At;
use weir_syntax::nginx::{Directive, Scope};

/// The state that the translations of all servers share.
pub(super) struct Context<'a> {
    pub scope: Scope<'a>,
    pub upstreams: Upstreams<'a>,
    pub splits: Vec<Split<'a>>,
    pub document: &'a mut Document,
    pub notes: &'a mut Notes,
    /// The default limit of request bodies; 0: none.
    pub max_body: u64,
    pub pages: Pages,
    /// Server names by server number.
    pub names: BTreeMap<usize, Vec<String>>,
}

/// nginx's default of `client_max_body_size`.
const MAX_BODY: u64 = 1 << 20;

pub(super) fn translate(block: &[Directive], document: &mut Document, notes: &mut Notes) {
    let http = Scope::new(block);
    let directives: Vec<_> = block.iter().filter(|directive| directive.is("server")).collect();
    let servers: Vec<_> = directives.iter().map(|directive| http.within(directive.block())).collect();
    let at: Vec<At> = directives.iter().map(|directive| directive.at.clone()).collect();
    if servers.is_empty() {
        return;
    }
    notes.remark(
        "X-Forwarded-For, -Proto and -Host are always sent to services, in place of the client's own; no line is needed",
    );
    let sockets = listen::sockets(&servers, &at, notes);
    let places = listen::listeners(&sockets, &servers, document, notes);
    let max_body = http.find("client_max_body_size").and_then(|directive| values::bytes(directive.arg()));
    let max_body = max_body.unwrap_or(MAX_BODY);
    if max_body > 0 {
        document.limits.text("body", values::size(max_body));
    }
    limits(&servers, document, notes);
    timeouts::of_servers(&servers, document, notes);
    log::access(&http, &servers, document, notes);
    let mut context = Context {
        upstreams: upstreams(block),
        splits: splits(block),
        scope: http,
        document,
        notes,
        max_body,
        pages: Pages::default(),
        names: BTreeMap::new(),
    };
    for (number, scope) in servers.iter().enumerate() {
        let names = server::names(scope, context.notes);
        context.names.insert(number, names);
    }
    for (number, scope) in servers.iter().enumerate() {
        let none: Vec<Place> = Vec::new();
        let places = places.get(&number).unwrap_or(&none);
        if let Some(at) = at.get(number) {
            server::translate(number, scope, places, at, &mut context);
        }
    }
    let used = context.splits.iter().filter(|split| split.is_used).map(|split| split.directive);
    let used: Vec<_> = used.collect();
    let is_used = |directive: &Directive| used.iter().any(|known| std::ptr::eq(*known, directive));
    for split in block.iter().filter(|directive| directive.is("split_clients") && !is_used(directive)) {
        let message =
            "no proxy_pass has its variable; `service` of a [[route]] may list services with weights";
        context.notes.loss(&split.at, split.text(), message);
    }
}

/// The general limits: the largest values of all servers.
fn limits(servers: &[Scope<'_>], document: &mut Document, notes: &mut Notes) {
    let found = servers.iter().filter_map(|server| server.find("large_client_header_buffers"));
    let mut largest = None;
    for directive in found {
        let [count, size] = &directive.args[..] else { continue };
        let (Ok(count), Some(size)) = (count.parse::<u64>(), values::bytes(size)) else { continue };
        largest = largest.max(Some((size, count)));
    }
    let Some((size, count)) = largest else { return };
    // Clamp to Weir's ranges.
    let line = size.clamp(256, 1 << 20);
    let head = size.saturating_mul(count).clamp(512, 1 << 20).max(line);
    if head != size.saturating_mul(count) {
        notes.remark("limits.head is at most 1 MiB");
    }
    document.limits.set("head", Value::Text(values::size(head)));
    document.limits.set("line", Value::Text(values::size(line)));
}
