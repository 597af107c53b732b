//! The rows of each version of HTTP in a run with both.

use super::Page;
use crate::output::figures::{count, percent, plural, rate};
use crate::result::{ByVersion, VersionFigures};

impl Page {
    pub(super) fn versions(&mut self, versions: &ByVersion<VersionFigures>) {
        for (version, figures) in versions.as_ref().into_pairs() {
            self.row(&format!("HTTP/{}", version.word()), &work(figures));
        }
    }
}

fn work(figures: &VersionFigures) -> String {
    let errors = match figures.errors.values().sum() {
        0 => "no errors".to_string(),
        errors => format!("{} ({})", plural(errors, "error"), percent(figures.error_ratio)),
    };
    let unsent = match figures.unsent {
        0 => String::new(),
        unsent => format!(", {} unsent", count(unsent)),
    };
    let (requests, per_second) = (count(figures.requests), rate(figures.requests_per_second));
    format!("{requests} correct responses, {per_second}, {errors}{unsent}")
}
