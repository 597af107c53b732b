//! The cores of each process, chosen from the allowed ones.

use serde::{Deserialize, Serialize};

pub use weir_doctor::cores::list;

/// The core sets in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The cores of each part.
    pub cores: CoreSets,
    /// The deviation from the experiment's core sets.
    pub note: Option<String>,
}

/// Core numbers, as the system counts them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CoreSets {
    /// The target under test.
    pub gateway: Vec<usize>,
    /// The test server.
    pub origin: Vec<usize>,
    /// The load engine.
    pub load: Vec<usize>,
}

impl CoreSets {
    /// All of them, with repetitions for shared cores.
    pub(crate) fn all(&self) -> impl Iterator<Item = usize> {
        let Self { gateway, origin, load } = self;
        gateway.iter().chain(origin).chain(load).copied()
    }
}

impl Default for CoreSets {
    fn default() -> Self {
        Self { gateway: vec![0], origin: vec![1], load: vec![1] }
    }
}

impl Placement {
    /// The experiment's own core sets where the machine has them; otherwise the nearest ones, and a note.
    pub fn choose(asked: &CoreSets, allowed: &[usize]) -> Self {
        let has = |cores: &[usize]| cores.iter().all(|core| allowed.contains(core));
        if has(&asked.gateway) && has(&asked.origin) && has(&asked.load) {
            return Self { cores: asked.clone(), note: None };
        }
        let first = allowed.first().copied().unwrap_or(0);
        let second = allowed.get(1).copied().unwrap_or(first);
        let third = allowed.get(2).copied().unwrap_or(second);
        let cores = CoreSets { gateway: vec![first], origin: vec![second], load: vec![third] };
        let note = format!(
            "the experiment asks for cores {} (gateway), {} (origin), {} (load), but only {} are allowed: \
             using {first}, {second} and {third} instead{}",
            list(&asked.gateway),
            list(&asked.origin),
            list(&asked.load),
            list(allowed),
            if second == first { "; gateway, origin and load share one core" } else { "" },
        );
        Self { cores, note: Some(note) }
    }

    /// The parts that share cores, in words; `None` if none do.
    pub fn sharing(&self) -> Option<String> {
        let CoreSets { gateway, origin, load } = &self.cores;
        let overlap = |left: &[usize], right: &[usize]| left.iter().any(|core| right.contains(core));
        match (overlap(gateway, origin), overlap(gateway, load), overlap(origin, load)) {
            (false, false, false) => None,
            (false, false, true) => Some(format!("origin and load share core {}", list(load))),
            (true, true, _) => Some(format!("gateway, origin and load share core {}", list(gateway))),
            (true, false, _) => Some(format!("gateway and origin share core {}", list(gateway))),
            (false, true, _) => Some(format!("gateway and load share core {}", list(gateway))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> CoreSets {
        CoreSets { gateway: vec![0], origin: vec![1], load: vec![1] }
    }

    #[test]
    fn available_cores_are_used_as_requested() {
        let placement = Placement::choose(&asked(), &[0, 1, 2, 3]);
        assert_eq!((placement.cores.clone(), placement.note.clone()), (asked(), None));
        assert_eq!(placement.sharing().as_deref(), Some("origin and load share core 1"));
    }

    #[test]
    fn too_few_cores_are_noted() {
        let placement = Placement::choose(&asked(), &[3]);
        assert_eq!(placement.cores, CoreSets { gateway: vec![3], origin: vec![3], load: vec![3] });
        assert!(placement.note.as_ref().is_some_and(|note| note.ends_with("share one core")));
        assert_eq!(placement.sharing().as_deref(), Some("gateway, origin and load share core 3"));
        assert_eq!(
            Placement::choose(&asked(), &[4, 6]).cores,
            CoreSets { gateway: vec![4], origin: vec![6], load: vec![6] }
        );
    }
}
