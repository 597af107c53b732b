//! The runs of a turn in parallel: all take a step before any takes the next.

use super::running::{Failure, Running};
use crate::instrument::gateway::run::Observation;
use crate::stats::rng::Rng;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use weir_doctor::Meter;
use weir_load::result::LoadResult;
use weir_load::since_boot;

/// The lead time of the common start: engines poll for it every 2 ms, and share their cores.
const AHEAD: Duration = Duration::from_millis(25);

/// The order in which the runs of a turn take exclusive steps and get their ports.
pub(super) struct Draw {
    pub(super) ports: Vec<usize>,
    servers: Vec<usize>,
    engines: Vec<usize>,
}

impl Draw {
    pub(super) fn new(runs: usize, rng: &mut Rng) -> Self {
        let mut order = || {
            let mut order: Vec<usize> = (0..runs).collect();
            rng.shuffle(&mut order);
            order
        };
        Self { ports: order(), servers: order(), engines: order() }
    }
}

/// Executes the runs. A failure of one run fails the others.
pub(super) fn measure(runs: &mut [Running<'_>], observations: &mut [Observation], draw: &Draw) {
    if let Err((failed, why)) = steps(runs, observations, draw) {
        for (index, observation) in observations.iter_mut().enumerate() {
            observation.failure = Some(match index == failed {
                true => why.to_string(),
                false => format!("the run beside it failed: {why}"),
            });
        }
    }
}

fn steps(
    runs: &mut [Running<'_>],
    observations: &mut [Observation],
    draw: &Draw,
) -> Result<(), (usize, Failure)> {
    let is_together = runs.len() > 1;
    let is_timed = is_together || runs.iter().any(Running::is_profile);
    for &index in &draw.servers {
        runs[index].serve().map_err(|why| (index, why))?;
    }
    let cores: BTreeSet<usize> = runs.iter().flat_map(|run| run.cores().all()).collect();
    let cores: Vec<usize> = cores.into_iter().collect();
    let groups = |runs: &[Running<'_>]| runs.iter().flat_map(Running::groups).collect::<Vec<u32>>();
    let meter = Meter::begin(&cores, &groups(runs));
    for &index in &draw.engines {
        runs[index].load(is_timed).map_err(|why| (index, why))?;
    }
    if is_timed {
        for &index in &draw.engines {
            runs[index].open().map_err(|why| (index, why))?;
        }
        let up =
            since_boot(Instant::now()).ok_or_else(|| (0, "this machine's clock cannot be read".into()))?;
        for &index in &draw.engines {
            runs[index].go(up + AHEAD).map_err(|why| (index, why))?;
        }
    }
    for (index, run) in runs.iter().enumerate().filter(|(_, run)| run.is_profile()) {
        match run.sampled() {
            Ok(recorded) => observations[index].profile = Some(recorded),
            Err(why) => observations[index].notes.push(why),
        }
    }
    for (index, run) in runs.iter_mut().enumerate() {
        observations[index].load = Some(run.measured().map_err(|why| (index, why))?);
    }
    let taken = meter.and_then(|meter| meter.taken(&cores, &groups(runs)));
    let common_share = is_together.then(|| common_share(observations)).flatten();
    for (index, observation) in observations.iter_mut().enumerate() {
        observation.foreign_cpu = taken.map(|taken| taken.foreign);
        observation.stolen_cpu = taken.map(|taken| taken.stolen);
        observation.common_share = common_share;
        runs[index].after(observation).map_err(|why| (index, why))?;
    }
    Ok(())
}

/// The share of the longest window in which all were measured.
fn common_share(observations: &[Observation]) -> Option<f64> {
    let window = |load: &LoadResult| Some((load.window_boot_s?, load.window_boot_s? + load.window_s));
    let windows = observations.iter().map(|one| window(one.load.as_ref()?));
    let windows: Vec<(f64, f64)> = windows.collect::<Option<_>>()?;
    let from = windows.iter().map(|(from, _)| *from).reduce(f64::max)?;
    let to = windows.iter().map(|(_, to)| *to).reduce(f64::min)?;
    let longest = windows.iter().map(|(from, to)| to - from).reduce(f64::max)?;
    Some(((to - from) / longest).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::gateway::testing::load_result;

    fn windows(windows: [(f64, f64); 2]) -> Option<f64> {
        let observation = |(from, length)| {
            let load = LoadResult { window_boot_s: Some(from), window_s: length, ..load_result() };
            Observation { load: Some(load), ..Observation::default() }
        };
        common_share(&windows.map(observation))
    }

    #[test]
    fn the_common_share_of_windows() {
        let shares = [[(10.0, 2.0), (10.0, 2.0)], [(10.0, 2.0), (10.5, 2.0)], [(10.0, 2.0), (13.0, 2.0)]];
        assert_eq!(shares.map(windows), [Some(1.0), Some(0.75), Some(0.0)]);
        assert_eq!(common_share(&[Observation::default()]), None);
    }
}
