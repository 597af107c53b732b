//! A summary of a reload's changes.

use super::Checked;
use super::files::{of_certificate, of_listener, of_service};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The number of entries of each kind that are new, removed or changed, including changes of the files that they name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Changes {
    pub listeners: usize,
    pub certificates: usize,
    pub services: usize,
    pub routes: usize,
    /// Tables of general settings.
    pub settings: usize,
}

impl Changes {
    pub(crate) fn between(now: &Checked, before: &Checked) -> Self {
        let (files, old) = (&now.files, &before.files);
        let listeners = changed(&now.config.listeners, &before.config.listeners, |now, before| {
            now == before && files.are_same(old, now.tls.iter().flat_map(of_listener))
        });
        let services = changed(&now.config.services, &before.config.services, |now, before| {
            now == before && files.are_same(old, of_service(&now.tls))
        });
        let certificates = differing(&now.config.certificates, &before.config.certificates, |certificate| {
            files.are_same(old, of_certificate(certificate))
        });
        let routes = differing(&now.config.routes, &before.config.routes, |_| true);
        let (now, before) = (&now.config, &before.config);
        let settings = [
            now.dns != before.dns,
            now.client_fields != before.client_fields,
            now.error_pages != before.error_pages
                || !files.are_same(old, now.error_pages.values().map(AsRef::as_ref)),
            now.tracing != before.tracing,
            now.log != before.log,
            now.buffers != before.buffers,
            now.limits != before.limits,
            now.timeouts != before.timeouts,
            now.min_rate != before.min_rate,
            now.reload != before.reload,
        ];
        let settings = settings.into_iter().filter(|is_changed| *is_changed).count();
        Self { listeners, certificates, services, routes, settings }
    }
}

/// The number of named entries that are new, removed or changed.
fn changed<T>(
    now: &BTreeMap<String, T>,
    before: &BTreeMap<String, T>,
    is_same: impl Fn(&T, &T) -> bool,
) -> usize {
    let is_kept = |(name, now): &(&String, &T)| before.get(*name).is_some_and(|before| is_same(now, before));
    let kept = now.iter().filter(is_kept).count();
    let gone = before.keys().filter(|name| !now.contains_key(*name)).count();
    now.len() - kept + gone
}

/// The number of changes in a list without names: 1 for two lists that differ in one entry.
fn differing<T: PartialEq>(now: &[T], before: &[T], is_same: impl Fn(&T) -> bool) -> usize {
    let mut rest: Vec<_> = before.iter().collect();
    let mut kept = 0;
    for entry in now.iter().filter(|entry| is_same(entry)) {
        if let Some(at) = rest.iter().position(|before| *before == entry) {
            rest.swap_remove(at);
            kept += 1;
        }
    }
    now.len().max(before.len()) - kept
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listeners, certificates, services, routes, settings } = self;
        write!(
            f,
            "changed: listeners {listeners}, certificates {certificates}, services {services}, routes {routes}, \
             other settings {settings}"
        )
    }
}
