//! Runs workers on named threads, optionally pinned to cores.

use crate::cores;
use std::io;

/// Runs `work(index, part)` on one thread per part and waits for all threads. With `cores`, worker `i` is pinned to the
/// `i`-th core of the list, wrapping around if there are more workers than cores. Fails before any worker runs if a
/// core is not allowed, else with the first error of a worker.
pub fn run_workers<P: Send, E: From<io::Error> + Send>(
    parts: impl IntoIterator<Item = P>,
    cores: Option<&cores::Cores>,
    work: impl Fn(usize, P) -> Result<(), E> + Sync,
) -> Result<(), E> {
    if let Some(cores) = cores {
        cores.check()?;
    }
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..)
            .zip(parts)
            .map(|(index, part)| {
                let core = cores.map(|cores| cores.0[index % cores.0.len()]);
                let run = move || {
                    if let Some(core) = core {
                        cores::pin(core)?;
                    }
                    work(index, part)
                };
                std::thread::Builder::new().name(format!("worker-{index}")).spawn_scoped(scope, run)
            })
            .collect();
        let mut outcome = Ok(());
        for thread in threads {
            let ended = match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(error) => Err(error.into()),
            };
            outcome = outcome.and(ended);
        }
        outcome
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_worker_runs_and_the_first_error_is_returned() {
        let ran = AtomicUsize::new(0);
        let outcome = run_workers([(); 3], None, |index, ()| {
            ran.fetch_add(1, Ordering::Relaxed);
            if index == 1 { Err(io::Error::other("one")) } else { Ok(()) }
        });
        assert_eq!((ran.into_inner(), outcome.unwrap_err().to_string()), (3, "one".to_string()));
    }

    #[test]
    fn a_core_that_does_not_exist_is_an_error_that_names_it() {
        let outcome = run_workers([()], Some(&cores::Cores(vec![1000])), |_, ()| Ok::<(), io::Error>(()));
        assert!(outcome.unwrap_err().to_string().contains("core 1000"));
    }
}
