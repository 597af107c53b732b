//! The services and route names that differ between two snapshots, computed once for all workers.

use super::snapshot::Snapshot;
use std::sync::Arc;

/// The differences of a new snapshot from an old one. All services that are not listed are unchanged, with the same
/// overrides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delta {
    /// New services, and services with changed settings, servers or overrides, in the order of the new snapshot.
    pub changed: Vec<Changed>,
    /// The indexes of the removed services, in the order of the old snapshot.
    pub gone: Vec<usize>,
    /// For each route name, its index in the old snapshot; `None` if both snapshots have the same names.
    pub route_names: Option<Vec<Option<usize>>>,
}

/// A new or changed service: its index in the new snapshot, and in the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub now: usize,
    /// `None` for a new service.
    pub before: Option<usize>,
}

impl Delta {
    pub(crate) fn between(now: &Snapshot, before: &Snapshot) -> Self {
        let overridden = now.overrides.differing(&before.overrides);
        let mut delta = Self::default();
        // Both lists are sorted by name.
        let mut rest = before.services.iter().enumerate().peekable();
        for (at, service) in now.services.iter().enumerate() {
            while let Some((gone, _)) = rest.next_if(|(_, old)| old.name < service.name) {
                delta.gone.push(gone);
            }
            let old = rest.next_if(|(_, old)| old.name == service.name);
            let is_kept = old.is_some_and(|(_, old)| Arc::ptr_eq(service, old) || service.is_same(old))
                && !overridden.contains(&*service.name);
            if !is_kept {
                delta.changed.push(Changed { now: at, before: old.map(|(at, _)| at) });
            }
        }
        delta.gone.extend(rest.map(|(at, _)| at));
        if now.route_names != before.route_names {
            let place = |name: &String| before.route_names.binary_search(name).ok();
            delta.route_names = Some(now.route_names.iter().map(place).collect());
        }
        delta
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::Config;
    use crate::config::{Findings, Override, compile};

    /// A configuration with services of one server each, by name and further settings.
    fn snapshot(services: &[(&str, &str)]) -> Snapshot {
        let service = |(name, more): &(&str, &str)| {
            format!("[service.{name}]\nservers = ['http://192.0.2.1']\n{more}\n")
        };
        let services: String = services.iter().map(service).collect();
        let text =
            format!("[listener.web]\nbind = '127.0.0.1:0'\n{services}[[route]]\nrespond.status = 200\n");
        let config: Config = toml::from_str(&text).unwrap();
        compile(&config, &mut Findings::default()).unwrap()
    }

    #[test]
    fn it_has_the_services_that_differ() {
        let before = snapshot(&[("a", ""), ("c", ""), ("d", "sticky = 'id'"), ("f", "")]);
        assert_eq!(Delta::between(&before, &before), Delta::default());
        let again = snapshot(&[("a", ""), ("c", ""), ("d", "sticky = 'id'"), ("f", "")]);
        assert_eq!(Delta::between(&again, &before), Delta::default());
        let now = snapshot(&[("b", ""), ("c", "retry_percent = 30"), ("d", "sticky = 'id'"), ("e", "")]);
        let changed = |now, before| Changed { now, before };
        let expected = vec![changed(0, None), changed(1, Some(1)), changed(3, None)];
        assert_eq!(
            Delta::between(&now, &before),
            Delta { changed: expected, gone: vec![0, 3], route_names: None }
        );
    }

    #[test]
    fn it_has_the_names_of_routes_that_differ() {
        let of = |names: &[&str]| {
            let mut snapshot = snapshot(&[]);
            snapshot.route_names = names.iter().map(|name| (*name).to_owned()).collect();
            snapshot
        };
        let before = of(&["a", "c", "d"]);
        assert_eq!(Delta::between(&of(&["a", "c", "d"]), &before).route_names, None);
        for (now, places) in [
            (&["c"][..], &[Some(1)][..]),
            (&["b", "c", "d", "e"], &[None, Some(1), Some(2), None]),
            (&[], &[]),
        ] {
            assert_eq!(Delta::between(&of(now), &before).route_names.as_deref(), Some(places));
        }
    }

    #[test]
    fn it_has_the_services_with_other_overrides() {
        let before = snapshot(&[("a", ""), ("b", ""), ("c", "")]);
        let mut now = before.clone();
        let id = now.services[1].servers[0].id;
        now.overrides.set("b", id, Override { is_drained: true, weight: None });
        let expected = Delta { changed: vec![Changed { now: 1, before: Some(1) }], ..Delta::default() };
        assert_eq!(Delta::between(&now, &before), expected);
        assert_eq!(Delta::between(&before, &now), expected);
        assert_eq!(Delta::between(&now, &now.clone()), Delta::default());
    }
}
