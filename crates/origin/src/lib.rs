//! The test server: known answers, known delays, known cost.
