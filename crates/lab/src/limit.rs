//! Who was the limit of a run: information beside its numbers, not a judgement on them.

use crate::run::Parts;
pub use weir_load::result::Limit;

/// Cores used this much are full: the rest is lost between window edges and scheduler ticks.
const FULL: f64 = 0.95;

/// The share of what is used on shared cores from which on one part alone is called the limit.
const DOMINATES: f64 = 0.75;

/// Names the limit of a run. A server whose own cores are full is it; else the engine, if it found itself near the
/// ceiling that it was calibrated to.
pub fn of_run(parts: &Parts<'_>) -> Limit {
    let near_ceiling = parts.load.ceiling.is_some() && parts.load.limit == Limit::Load;
    match of(parts) {
        Limit::SharedCores | Limit::Neither if near_ceiling => Limit::Load,
        limit => limit,
    }
}

/// Names the limit of a run from what each part used of its cores.
pub fn of(parts: &Parts<'_>) -> Limit {
    let users = [
        (Limit::Gateway, parts.gateway.map(|server| &server.cost), parts.gateway_cores),
        (Limit::Origin, parts.origin.map(|server| &server.cost), parts.origin_cores),
        (Limit::Load, Some(&parts.load.engine.cost), parts.load_cores),
    ];
    // Cores in use, not shares of cores: parts that share a set can then be added.
    let used = users.map(|(who, cost, cores)| {
        (who, cost.map_or(0.0, |cost| cost.utilisation * f64::from(cost.cores)), cores)
    });
    let full = |(_, cpu, cores): &(Limit, f64, &[usize])| {
        let shared: f64 =
            used.iter().filter(|(_, _, others)| overlap(cores, others)).map(|(_, cpu, _)| cpu).sum();
        let available = cores.len().max(1) as f64;
        *cpu > 0.0 && shared >= FULL * available
    };
    for part in used.iter().filter(|part| full(part)) {
        let (who, cpu, cores) = part;
        let shared: f64 =
            used.iter().filter(|(_, _, others)| overlap(cores, others)).map(|(_, cpu, _)| cpu).sum();
        if *cpu >= DOMINATES * shared {
            return *who;
        }
    }
    if used.iter().any(full) { Limit::SharedCores } else { Limit::Neither }
}

fn overlap(left: &[usize], right: &[usize]) -> bool {
    left.iter().any(|core| right.contains(core))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::load_result;
    use weir_load::result::{Ceiling, Cost, ServerCost};

    fn limit(gateway: f64, origin: f64, load: f64, cores: [&[usize]; 3]) -> Limit {
        let server = |utilisation: f64, cores: &[usize]| ServerCost {
            cost: Cost { utilisation, cores: cores.len() as u32, ..Cost::default() },
            ..ServerCost::default()
        };
        let mut result = load_result();
        result.engine.cost = server(load, cores[2]).cost;
        let (gateway, origin) = (server(gateway, cores[0]), server(origin, cores[1]));
        of(&Parts {
            load: &result,
            gateway: Some(&gateway),
            origin: Some(&origin),
            gateway_cores: cores[0],
            origin_cores: cores[1],
            load_cores: cores[2],
        })
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
    fn a_shared_full_core_names_who_dominates_or_nobody() {
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
        let of = |gateway, ceiling: Option<f64>, limit| {
            let mut result = load_result();
            result.limit = limit;
            result.ceiling = ceiling.map(|share| Ceiling { share, ..Ceiling::default() });
            let gateway = ServerCost {
                cost: Cost { utilisation: gateway, cores: 1, ..Cost::default() },
                ..ServerCost::default()
            };
            let (gateway_cores, origin_cores, load_cores) = (&[0][..], &[1][..], &[2][..]);
            let gateway = Some(&gateway);
            of_run(&Parts { load: &result, gateway, origin: None, gateway_cores, origin_cores, load_cores })
        };
        assert_eq!(of(0.5, Some(0.85), Limit::Load), Limit::Load);
        assert_eq!(of(0.5, Some(0.5), Limit::Neither), Limit::Neither);
        assert_eq!(of(0.5, None, Limit::Load), Limit::Neither, "no ceiling is known: the cores decide");
        assert_eq!(of(0.99, Some(0.85), Limit::Load), Limit::Gateway);
    }

    #[test]
    fn a_part_with_two_cores_is_full_when_both_are() {
        assert_eq!(limit(0.6, 0.1, 0.1, [&[0, 1], &[2], &[3]]), Limit::Neither);
        assert_eq!(limit(0.97, 0.1, 0.1, [&[0, 1], &[2], &[3]]), Limit::Gateway);
    }
}
