//! What tables and charts go by: the metrics of a request or a handshake, and the places that are compared.

use super::levels::Place as _;
use super::{Case, Load};
use crate::cell::Levels;
use crate::metric::Metric;
use crate::plan::Plan;

/// The metrics of what a cell is about.
pub(super) struct UnitMetrics {
    pub(super) rate: Metric,
    pub(super) cpu: Metric,
    pub(super) origin_cpu: Metric,
    pub(super) load_cpu: Metric,
}

/// Of requests or of handshakes.
pub(super) fn unit_metrics(case: Case) -> UnitMetrics {
    match case.is_handshake() {
        false => UnitMetrics {
            rate: Metric::RequestsPerSecond,
            cpu: Metric::CpuUsPerRequest,
            origin_cpu: Metric::OriginCpuUsPerRequest,
            load_cpu: Metric::LoadCpuUsPerRequest,
        },
        true => UnitMetrics {
            rate: Metric::HandshakesPerSecond,
            cpu: Metric::CpuUsPerHandshake,
            origin_cpu: Metric::OriginCpuUsPerHandshake,
            load_cpu: Metric::LoadCpuUsPerHandshake,
        },
    }
}

/// The places of a plan without their load, in the experiment's order of modes.
pub(super) fn places(plan: &Plan) -> Vec<Levels> {
    let mut places = Vec::new();
    for mode in plan.experiment.modes() {
        for cell in plan.cells.iter().filter(|cell| cell.mode() == mode) {
            let place = cell.place().at(Load::Saturated);
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}
