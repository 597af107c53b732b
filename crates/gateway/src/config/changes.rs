//! The numbers of entries that a reload has added, removed or changed.

use super::Checked;
use super::document::Route;
use super::named_files::{of_certificate, of_listener, of_service};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;

/// The number of entries of each kind that are new, removed or changed, including changes of the files that they name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Changes {
    pub listeners: usize,
    pub certificates: usize,
    pub services: usize,
    pub routes: usize,
    /// The number of changed tables of general settings, such as `[limits]`.
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
        let certificates = differing(
            &now.config.certificates,
            &before.config.certificates,
            |certificate| &certificate.chain,
            |certificate| files.are_same(old, of_certificate(certificate)),
        );
        let place = |route: &Route| {
            let paths: Vec<_> = route.path.iter().map(ToString::to_string).collect();
            (route.host.clone(), paths)
        };
        let routes = differing(&now.config.routes, &before.config.routes, place, |_| true);
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

/// The number of changes between two lists of unnamed entries, where a modified entry counts once. Equal entries must
/// have equal keys. Few entries should share a key, since each is compared with all entries of its key.
fn differing<'a, T: PartialEq, K: Eq + Hash>(
    now: &'a [T],
    before: &'a [T],
    key: impl Fn(&'a T) -> K,
    is_same: impl Fn(&T) -> bool,
) -> usize {
    let mut rest: HashMap<K, Vec<&T>> = HashMap::new();
    for entry in before {
        rest.entry(key(entry)).or_default().push(entry);
    }
    let mut kept = 0;
    for entry in now.iter().filter(|entry| is_same(entry)) {
        let Some(alike) = rest.get_mut(&key(entry)) else { continue };
        if let Some(at) = alike.iter().position(|before| *before == entry) {
            alike.swap_remove(at);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(Clone, Copy, Debug)]
    struct Entry {
        key: usize,
        value: usize,
    }

    impl PartialEq for Entry {
        fn eq(&self, other: &Self) -> bool {
            COMPARISONS.set(COMPARISONS.get() + 1);
            (self.key, self.value) == (other.key, other.value)
        }
    }

    fn count(now: &[Entry], before: &[Entry]) -> usize {
        differing(now, before, |entry| entry.key, |_| true)
    }

    #[test]
    fn entries_of_a_list_are_counted_wherever_they_are() {
        let list = |entries: &[(usize, usize)]| -> Vec<_> {
            entries.iter().map(|(key, value)| Entry { key: *key, value: *value }).collect()
        };
        let before = list(&[(1, 1), (1, 2), (1, 1), (2, 1)]);
        for (now, changes) in [
            (&[(1, 1), (1, 2), (1, 1), (2, 1)][..], 0),
            (&[(2, 1), (1, 1), (1, 1), (1, 2)], 0),
            (&[(1, 1), (1, 2), (1, 3), (2, 1)], 1),
            (&[(1, 1), (1, 2), (1, 2), (2, 1)], 1),
            (&[(1, 1), (1, 2), (2, 1)], 1),
            (&[(0, 0), (1, 1), (1, 2), (1, 1), (2, 1)], 1),
            (&[], 4),
        ] {
            assert_eq!(count(&list(now), &before), changes, "{now:?}");
        }
    }

    /// Regression test: comparing every entry with half of the others took quadratic time.
    #[test]
    fn entries_are_compared_with_those_of_their_key_alone() {
        let before: Vec<_> = (0..1000).map(|key| Entry { key, value: 1 }).collect();
        let mut now = before.clone();
        now[500].value = 2;
        now.reverse();
        COMPARISONS.set(0);
        assert_eq!(count(&now, &before), 1);
        assert_eq!(COMPARISONS.get(), 1000);
    }
}
