//! The load engine: schedule, connection policy, worker, recorder, result.

pub mod result;
