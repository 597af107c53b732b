//! Translation of nginx configurations.

mod admission;
mod audit;
mod closed;
mod errors;
mod guards;
mod headers;
mod health;
mod http;
mod listen;
mod listener_switches;
mod listener_tls;
mod location;
mod log;
mod module;
mod passthrough;
mod server;
mod service_tls;
mod split;
mod stream;
mod timeouts;
mod upstream;
mod variables;

pub(crate) use location::prefix_edit;
pub(crate) use server::host_of_regex;
pub(crate) use upstream::url as server_url;

use crate::model::Document;
use crate::note::Notes;
use std::path::Path;
use weir_syntax::nginx::{self, Directive};
use weir_syntax::{Reader, SyntaxError};

/// Translates the text of the file `path`.
pub(crate) fn translate(
    text: &str,
    path: &Path,
    reader: &dyn Reader,
    notes: &mut Notes,
) -> Result<Document, SyntaxError> {
    let nginx::Parsed { directives, skipped, missing } = nginx::parse(text, path, reader)?;
    if !skipped.is_empty() {
        notes.quiet("include of types and parameters");
    }
    for include in missing {
        let message = "the file cannot be read; import it where it is, or with a copy beside this file";
        notes.loss(&include.at, include.text(), message);
    }
    audit::audit(&directives, notes);
    let mut document = Document::default();
    if let Some(workers) = find(&directives, "worker_processes") {
        document.workers = workers.arg().parse().ok().filter(|workers| *workers > 0);
    }
    let mut blocks = Vec::new();
    blocks.extend(directives.iter().filter(|directive| directive.is("http")).map(Directive::block));
    // A file from `sites-available` or `conf.d` contains only the content of `http`.
    if directives.iter().any(|directive| directive.is("server") || directive.is("upstream")) {
        blocks.push(&directives);
    }
    for block in blocks {
        http::translate(block, &mut document, notes);
    }
    for block in directives.iter().filter(|directive| directive.is("stream")) {
        stream::translate(block.block(), &mut document, notes);
    }
    finish(&document, notes);
    Ok(document)
}

/// Remarks about the complete document.
fn finish(document: &Document, notes: &mut Notes) {
    document.lacks_certificate(notes);
    let relative = |path: &str| !path.starts_with('/');
    if document
        .certificates
        .iter()
        .any(|certificate| relative(&certificate.chain) || relative(&certificate.key))
    {
        notes.remark("relative names of files are looked for where `weir serve` is started");
    }
}

fn find<'a>(block: &'a [Directive], name: &str) -> Option<&'a Directive> {
    block.iter().rfind(|directive| directive.is(name))
}

/// Parses a time in milliseconds; a plain number counts seconds.
fn time(text: &str) -> Option<u64> {
    crate::values::time(text, 1000)
}
