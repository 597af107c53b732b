//! `do primitive`: one cryptographic operation, repeated.

use crate::calls::timed;
use crate::error::Error;
use crate::measure::{Measured, Worker, measure};
use crate::names::Side;
use crate::scenario::Primitive;
use crate::stack::{Operate, Stack};

/// Each sample, in nanoseconds: the mean of a batch.
pub(crate) type Record = Vec<u64>;

/// Measures an operation on all threads.
pub(crate) fn run<S: Stack>(stack: &S, scenario: &Primitive) -> Result<Vec<Measured<Record>>, Error> {
    measure(&scenario.load, || Repeater::new(stack.operation(scenario)?))
}

struct Repeater {
    operation: Box<dyn Operate>,
    batch: u64,
}

/// Reading the clock takes some tens of nanoseconds; in a batch of this length that is negligible.
const BATCH_NS: u64 = 20_000;
/// Probe operations to estimate the duration.
const PROBES: u64 = 8;

impl Repeater {
    fn new(mut operation: Box<dyn Operate>) -> Result<Repeater, Error> {
        repeat(&mut *operation, PROBES)?; // the first ones build tables
        let took = repeat(&mut *operation, PROBES)?;
        let batch = (BATCH_NS * PROBES / took.max(1)).clamp(1, BATCH_NS);
        Ok(Repeater { operation, batch })
    }
}

impl Worker for Repeater {
    type Record = Record;

    fn unit(&mut self, most: u64, record: &mut Record) -> Result<u64, Error> {
        let times = self.batch.min(most);
        let took = repeat(&mut *self.operation, times)?;
        record.push((took + times / 2) / times);
        Ok(times)
    }
}

/// Runs it repeatedly and returns the time.
fn repeat(operation: &mut dyn Operate, times: u64) -> Result<u64, Error> {
    operation.prepare(times as usize)?;
    let ((), took) = timed(Side::Operation, || (0..times).try_for_each(|_| operation.run()))?;
    Ok(took)
}
