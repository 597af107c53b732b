//! Experiment, plan, runs, statistics, report.
