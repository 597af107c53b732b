//! The limit of a run: information beside its numbers, not a judgement on them.

use super::run::Parts;
use weir_load::limit::{self, Part};
use weir_load::result::Limit;
use weir_load::result::{Cost, ServerCost};

/// Finds the limit of a run from the utilisation of the cores of gateway, origin and load engine, and from the engine's
/// distance to its own ceiling.
pub(super) fn of(parts: &Parts<'_>, cores: [&[usize]; 3]) -> Limit {
    let part = |who, cost: Option<&Cost>, cores| {
        let most = cost.map_or(0.0, |cost| f64::from(cost.cores));
        Part { who, cpu: cost.map_or(0.0, |cost| cost.utilisation * most), most, busiest: 0.0, cores }
    };
    let server = |who, server: Option<&ServerCost>, cores| {
        let busiest = server.and_then(|server| server.busiest_thread.as_ref());
        let busiest = busiest.map_or(0.0, |thread| thread.utilisation);
        Part { busiest, ..part(who, server.map(|server| &server.cost), cores) }
    };
    let limit = limit::of(&[
        server(Limit::Gateway, parts.gateway, cores[0]),
        server(Limit::Origin, parts.origin, cores[1]),
        part(Limit::Load, Some(&parts.load.engine.cost), cores[2]),
    ]);
    parts.load.ceiling.as_ref().map_or(limit, |ceiling| limit::beside_ceiling(limit, ceiling.share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::gateway::testing::load_result;
    use weir_load::result::{BusyThread, Ceiling};

    fn limit(gateway: f64, origin: f64, load: f64, cores: [&[usize]; 3]) -> Limit {
        let server = |utilisation: f64, cores: &[usize]| ServerCost {
            cost: Cost { utilisation, cores: cores.len() as u32, ..Cost::default() },
            ..ServerCost::default()
        };
        let mut result = load_result();
        result.engine.cost = server(load, cores[2]).cost;
        let (gateway, origin) = (server(gateway, cores[0]), server(origin, cores[1]));
        of(&Parts { load: &result, gateway: Some(&gateway), origin: Some(&origin), gc: None }, cores)
    }

    const APART: [&[usize]; 3] = [&[0], &[1], &[2]];
    const SHARED: [&[usize]; 3] = [&[0], &[1], &[1]];
    const ONE: [&[usize]; 3] = [&[0], &[0], &[0]];

    #[test]
    fn a_full_part_on_its_own_cores_is_the_limit() {
        assert_eq!(limit(0.99, 0.4, 0.4, APART), Limit::Gateway);
        assert_eq!(limit(0.5, 0.97, 0.4, APART), Limit::Origin);
        assert_eq!(limit(0.5, 0.4, 0.96, APART), Limit::Load);
        assert_eq!(limit(0.5, 0.4, 0.3, APART), Limit::Neither);
        assert_eq!(limit(0.99, 0.4, 0.97, APART), Limit::Gateway);
    }

    #[test]
    fn a_shared_full_core_names_the_dominant_part_if_any() {
        assert_eq!(limit(0.99, 0.4, 0.4, SHARED), Limit::Gateway);
        assert_eq!(limit(0.7, 0.45, 0.53, SHARED), Limit::SharedCores);
        assert_eq!(limit(0.7, 0.2, 0.78, SHARED), Limit::Load);
        assert_eq!(limit(0.7, 0.8, 0.18, SHARED), Limit::Origin);
        assert_eq!(limit(0.7, 0.4, 0.4, SHARED), Limit::Neither);
        assert_eq!(limit(0.4, 0.3, 0.28, ONE), Limit::SharedCores);
        assert_eq!(limit(0.8, 0.1, 0.08, ONE), Limit::Gateway);
    }

    #[test]
    fn an_engine_near_its_ceiling_is_the_limit_unless_a_server_is_full() {
        let limit = |gateway, share: Option<f64>| {
            let mut result = load_result();
            result.ceiling = share.map(|share| Ceiling { share, ..Ceiling::default() });
            let gateway = ServerCost {
                cost: Cost { utilisation: gateway, cores: 1, ..Cost::default() },
                ..ServerCost::default()
            };
            of(&Parts { load: &result, gateway: Some(&gateway), origin: None, gc: None }, APART)
        };
        assert_eq!(limit(0.5, None), Limit::Neither);
        assert_eq!(limit(0.5, Some(0.79)), Limit::Neither);
        assert_eq!(limit(0.5, Some(0.81)), Limit::Load);
        assert_eq!(limit(0.99, Some(0.81)), Limit::Gateway);
    }

    #[test]
    fn a_server_is_full_when_one_of_its_threads_is() {
        let limit = |utilisation| {
            let busiest_thread = Some(BusyThread { name: "node".into(), utilisation });
            let cost = Cost { utilisation: 0.3, cores: 4, ..Cost::default() };
            let server = ServerCost { cost, busiest_thread, ..ServerCost::default() };
            let parts = Parts { load: &load_result(), gateway: Some(&server), origin: None, gc: None };
            of(&parts, [&[0, 1, 2, 3], &[], &[4]])
        };
        assert_eq!([limit(0.94), limit(0.96)], [Limit::Neither, Limit::Gateway]);
    }

    #[test]
    fn a_part_with_two_cores_is_full_when_both_are() {
        assert_eq!(limit(0.6, 0.1, 0.1, [&[0, 1], &[2], &[3]]), Limit::Neither);
        assert_eq!(limit(0.97, 0.1, 0.1, [&[0, 1], &[2], &[3]]), Limit::Gateway);
    }
}
