//! Foreign load: the share of the cores that processes outside an experiment and other guests took.

use crate::stats;
use serde::{Deserialize, Serialize};
use weir_load::plural;

/// The foreign load on an experiment's cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Foreign {
    /// Median share over the runs of the blocks, from 0 to 1; null if the system does not report it.
    pub median: Option<f64>,
    /// Runs in which it was above [`FOREIGN_MUCH`].
    pub much: u32,
    /// All runs of the blocks.
    pub runs: u32,
    /// Runs repeated because of it.
    #[serde(default)]
    pub repeated: u32,
}

/// A quiet machine and the lab itself need a few per cent; this share is more.
pub(crate) const FOREIGN_MUCH: f64 = 0.1;

/// The foreign load: processes outside a run and other guests.
pub(crate) fn taken(foreign: Option<f64>, stolen: Option<f64>) -> Option<f64> {
    Some(foreign? + stolen.unwrap_or(0.0))
}

impl Foreign {
    /// From the share in each run; `None` if unknown.
    pub(crate) fn of(shares: impl Iterator<Item = Option<f64>>) -> Self {
        let all: Vec<Option<f64>> = shares.collect();
        let known: Vec<f64> = all.iter().copied().flatten().collect();
        let much = known.iter().filter(|share| **share > FOREIGN_MUCH).count() as u32;
        Self { median: stats::median(&known), much, runs: all.len() as u32, repeated: 0 }
    }

    /// The warning to read before any number; none on a machine that was quiet in nine of ten runs.
    pub(crate) fn label(&self) -> Option<String> {
        let Self { median, much, runs, repeated } = *self;
        let limit = FOREIGN_MUCH * 100.0;
        match median.filter(|_| much * 10 > runs) {
            Some(median) => {
                let again = match repeated {
                    0 => String::new(),
                    many => format!("; {many} were repeated"),
                };
                Some(format!(
                    "BUSY: foreign load took more than {limit:.0} % of the cores in {much} of {} \
                     (median {:.0} %){again}.",
                    plural(runs.into(), "run"),
                    median * 100.0,
                ))
            }
            None => (repeated > 0).then(|| {
                let repeated = plural(repeated.into(), "run");
                format!("{repeated} repeated: foreign load had taken more than {limit:.0} % of the cores.")
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_called_busy_where_more_than_one_run_in_ten_was_disturbed() {
        let label = |shares: &[Option<f64>]| Foreign::of(shares.iter().copied()).label();
        assert_eq!(label(&[]), None);
        assert_eq!(label(&[None, None]), None, "no system reported it");
        let mut runs = vec![Some(0.02); 10];
        runs[0] = Some(0.3);
        assert_eq!(label(&runs), None);
        runs[1] = Some(0.5);
        let line = label(&runs).expect("two of ten");
        assert!(
            line.starts_with("BUSY: foreign load took more than 10 % of the cores in 2 of 10 runs"),
            "{line}"
        );
        let one = label(&[Some(0.4)]).expect("all of one");
        assert!(one.contains("in 1 of 1 run (") && one.contains("(median 40 %)"), "{one}");
    }
}
