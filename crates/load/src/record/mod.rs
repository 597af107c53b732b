//! Recording: times and counts per worker and second, their totals, and validity.

pub(crate) mod monotonic;
pub(crate) mod recorder;
pub(crate) mod seconds;
pub(crate) mod stationarity;
pub(crate) mod sum;
pub(crate) mod times;
pub(crate) mod validity;
pub(crate) mod versions;
