//! The subcommands of the lab: everything except the gateway.

mod advise;
mod calibrate;
mod compare;
mod cost;
mod doctor;
mod history;
mod load;
mod origin;
mod outputs;
mod probe;
mod profile;
mod report;
mod run;
mod stacks;
mod studies;
mod targets;

use crate::outcome::{Failure, Outcome};
use clap::Subcommand;

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Origin(origin::OriginArgs),
    Load(Box<load::Arguments>),
    Calibrate(calibrate::CalibrateArgs),
    Run(run::RunArgs),
    Plan(run::PlanArgs),
    Probe(probe::ProbeArgs),
    Profile(profile::ProfileArgs),
    Cost(cost::CostArgs),
    Advise(advise::AdviseArgs),
    Doctor(doctor::DoctorArgs),
    Report(report::ReportArgs),
    Compare(compare::CompareArgs),
    History(history::HistoryArgs),
    /// Kill the processes listed on standard input once it closes; started by `weir run`.
    #[command(hide = true)]
    Guard {
        /// PID of the `weir` that owns the processes and network namespaces
        #[arg(long, value_name = "PID")]
        lab: u32,
    },
    Targets(targets::TargetsArgs),
    Stacks(stacks::StacksArgs),
    Studies(studies::StudiesArgs),
    /// Delay and drop packets; started by the lab (crates/netem).
    #[command(hide = true)]
    DelayRelay,
}

impl Command {
    pub(crate) fn run(self) -> Outcome {
        match self {
            Self::Origin(args) => origin::run(args),
            Self::Load(args) => load::run(*args),
            Self::Calibrate(args) => calibrate::run(args),
            Self::Run(args) => run::run(args),
            Self::Plan(args) => run::plan(args),
            Self::Probe(args) => probe::run(args),
            Self::Profile(args) => profile::run(args),
            Self::Cost(args) => cost::run(args),
            Self::Advise(args) => advise::run(args),
            Self::Doctor(args) => doctor::run(args),
            Self::Report(args) => report::run(args),
            Self::Compare(args) => compare::run(args),
            Self::History(args) => history::run(args),
            Self::Guard { lab } => weir_lab::guard(lab).map_err(Failure::run),
            Self::Targets(args) => targets::run(args),
            Self::Stacks(args) => stacks::run(args),
            Self::Studies(args) => studies::run(args),
            Self::DelayRelay => {
                weir_netem::relay::run().map_err(|error| Failure::run(format!("delay-relay: {error}")))
            }
        }
    }
}
