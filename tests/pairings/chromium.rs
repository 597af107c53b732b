//! Chromium as a client: a page with a script that performs the steps and writes the transcript into the document.

use super::programs::output;
use super::{Client, Pair, all_but};
use crate::common::{Certificates, peer};
use aws_lc_rs::digest::{SHA256, digest as sha256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use x509_parser::pem::parse_x509_pem;

pub(super) struct Chromium(PathBuf);

impl Chromium {
    pub(super) fn new() -> Option<Self> {
        peer("chromium").map(Self)
    }
}

impl Client for Chromium {
    /// A browser sends chunked bodies only over HTTP/2, and never sends `Expect`.
    fn services(&self) -> Vec<&'static str> {
        [vec!["page"], all_but(&["chunked", "continued", "refused"])].concat()
    }

    fn transcript(&self, pair: &Pair<'_>) -> Result<String, String> {
        // The number of pages so far, for the name of a page's report.
        static PAGES: AtomicUsize = AtomicUsize::new(0);
        let name = PAGES.fetch_add(1, Ordering::Relaxed);
        let (origin, prefix) = match pair.base.strip_suffix("/unix") {
            Some(origin) => (origin, "/unix"),
            None => (pair.base.as_str(), ""),
        };
        let url = format!("{origin}/?{}&{}&{name}&{prefix}", pair.steps, pair.length);
        let document = headless(&self.0, pair.certificates, &url)?;
        let found =
            document.split_once("<pre id=\"transcript\">").and_then(|(_, rest)| rest.split_once("</pre>"));
        found.map(|(lines, _)| lines.to_owned()).ok_or(document)
    }
}

/// Loads a page in a browser that trusts this certificate; returns the document at the end of its load.
///
/// # Errors
/// The browser's output if it fails.
pub(crate) fn headless(program: &Path, certificates: &Certificates, url: &str) -> Result<String, String> {
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--disable-breakpad",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--no-proxy-server",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--dump-dom",
    ]);
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.arg(format!("--ignore-certificate-errors-spki-list={}", spki(certificates)));
    output(command.arg(url))
}

/// The hash of the leaf's key, by which the browser trusts it.
fn spki(certificates: &Certificates) -> String {
    let (_, pem) = parse_x509_pem(&std::fs::read(&certificates.cert).unwrap()).unwrap();
    let certificate = pem.parse_x509().unwrap();
    STANDARD.encode(sha256(&SHA256, certificate.public_key().raw))
}
