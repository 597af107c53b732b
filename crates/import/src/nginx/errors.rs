//! Translates `error_page` to `error_pages`.

use super::http::Context;
use crate::pattern::Pattern;
use crate::regex::of_regex;
use std::collections::BTreeSet;
use weir_syntax::nginx::{Directive, Scope};

/// The error pages of all servers.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// URIs of pages that are files; their locations need no route.
    pub uris: BTreeSet<String>,
}

/// Translates a server's error pages. Their files are below the `root` of the server or of the page's location.
pub(super) fn pages(server: &Scope<'_>, context: &mut Context<'_>) {
    let own: Vec<_> = server.all("error_page");
    for directive in own {
        let Some((uri, statuses)) = directive.args.split_last() else { continue };
        let Some(file) = file(uri, server).filter(|_| !statuses.iter().any(|status| status.starts_with('=')))
        else {
            let message =
                "Weir has files for its own error responses: error_pages; other pages are the service's";
            context.notes.loss(&directive.at, directive.text(), message);
            continue;
        };
        for status in statuses {
            match status.parse::<u16>() {
                Ok(status @ 400..=599) => page(status, &file, directive, context),
                _ => context.notes.loss(&directive.at, directive.text(), "expected statuses of 400 to 599"),
            }
        }
        context.pages.uris.insert(uri.clone());
    }
}

fn page(status: u16, file: &str, directive: &Directive, context: &mut Context<'_>) {
    let known = context.document.error_pages.entry(status).or_insert_with(|| file.to_owned());
    if known != file {
        let message = format!("error pages are the same for all names; {status} has {known}");
        context.notes.loss(&directive.at, directive.text(), message);
    }
}

fn is_of_regex(regex: &str, uri: &str) -> bool {
    let patterns = of_regex(regex).into_iter().flatten();
    Pattern::exact(uri).is_some_and(|uri| patterns.into_iter().any(|pattern| pattern.covers(&uri)))
}

/// The file of a page; `None` if the page is not a file.
fn file(uri: &str, server: &Scope<'_>) -> Option<String> {
    if !uri.starts_with('/') || uri.contains('$') {
        return None;
    }
    let of_page = |directive: &&Directive| {
        directive.is("location")
            && match &directive.args[..] {
                [path] => uri.starts_with(path.as_str()) && path != "/",
                [modifier, path] => match modifier.as_str() {
                    "=" => path == uri,
                    "^~" => uri.starts_with(path.as_str()),
                    _ => is_of_regex(path, uri),
                },
                _ => false,
            }
    };
    let location = server.own().iter().find(of_page);
    let scope = location.map_or_else(|| server.clone(), |location| server.within(location.block()));
    let is_answered =
        ["proxy_pass", "grpc_pass", "return", "alias"].iter().any(|name| scope.here(name).is_some());
    let root = scope.arg("root");
    (!is_answered && !root.is_empty() && !root.contains('$'))
        .then(|| format!("{}{uri}", root.trim_end_matches('/')))
}
