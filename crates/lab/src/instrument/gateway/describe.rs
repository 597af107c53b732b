//! What `weir plan` says of gateways: where they come from and what is varied.

use super::target::Targets;
use crate::host::allowed_cores;
use crate::placement::Placement;
use crate::plan::Plan;
use std::fmt::Write;

pub(super) fn subjects(text: &mut String, plan: &Plan, targets: &Targets) {
    if let (Ok(conditions), Ok(allowed)) = (plan.experiment.any_conditions(), allowed_cores())
        && let Some(note) = Placement::choose(&conditions.cores, &allowed).note
    {
        let _ = writeln!(text, "CORES: {note}");
    }
    for (name, target) in &targets.present {
        let _ = writeln!(text, "target {name}: {} {}", target.title, target.version);
        let _ = writeln!(text, "    from {}", target.folder().display());
    }
    for factor in &plan.experiment.factors {
        let levels: Vec<String> = factor.names().iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "factor {}: {}", factor.key, levels.join(" | "));
    }
}
