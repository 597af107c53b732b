//! Compilation of `error_pages`: reads the files that replace the gateway's own error responses.

use super::{Fault, Findings};
use crate::config::document::Config;
use crate::config::snapshot::{Page, Pages};
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

/// Reads the pages. The page of a single status takes precedence over that of its class.
pub(super) fn compile(config: &Config, findings: &mut Findings) -> Pages {
    let mut pages = Pages::default();
    let mut written: Vec<_> = config.error_pages.iter().collect();
    // Classes first, so that pages of single statuses replace them.
    written.sort_by_key(|(statuses, _)| !statuses.ends_with("xx"));
    for (statuses, path) in written {
        let key = format!("error_pages.{statuses}");
        let found = findings.keep(range(statuses, &key)).zip(findings.keep(page(path, &key)));
        if let Some((range, page)) = found {
            pages.extend(range.map(|status| (status, Arc::clone(&page))));
        }
    }
    pages
}

/// The range of statuses that a page is for.
fn range(statuses: &str, key: &str) -> Result<RangeInclusive<u16>, Fault> {
    match (statuses, statuses.parse::<u16>()) {
        ("4xx", _) => Ok(400..=499),
        ("5xx", _) => Ok(500..=599),
        (_, Ok(status @ 400..=599)) => Ok(status..=status),
        _ => {
            let why = "expected a status of 400 to 599, or one of `4xx`, `5xx`";
            Err(Fault::new(key, format!("invalid status `{statuses}`: {why}")))
        }
    }
}

fn page(path: &Path, key: &str) -> Result<Arc<Page>, Fault> {
    let body = fs::read(path)
        .map_err(|error| Fault::new(key, format!("cannot read {}: {error}", path.display())))?;
    if body.len() > LARGEST {
        let why = format!("{} has {} bytes: expected at most {LARGEST}", path.display(), body.len());
        return Err(Fault::new(key, why));
    }
    Ok(Arc::new(Page { content_type: content_type(path), body }))
}

fn content_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("json") => "application/json",
        Some("xml") => "application/xml",
        _ => "text/plain; charset=utf-8",
    }
}

/// The maximum size of a page. The gateway keeps pages in memory, and queues a whole page even for a slow client.
const LARGEST: usize = 64 * 1024;
