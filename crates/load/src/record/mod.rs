//! What was seen: times and counts of each worker and each second, their sum, and whether it may be believed.

pub(crate) mod recorder;
pub(crate) mod seconds;
pub(crate) mod stationarity;
pub(crate) mod sum;
pub(crate) mod times;
pub(crate) mod validity;
