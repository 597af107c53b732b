//! Limits and privileges of this process and its children.

use crate::finding::{Check, Finding, Level, Subject};
use crate::system::System;

pub(crate) const CHECKS: &[Check] = &[open_files, priority];

/// CAP_SYS_NICE of capabilities(7).
const SYS_NICE: u32 = 23;

/// 2000 users need as many connections to the gateway, from it to the origin, and in the load engine.
const ENOUGH_FILES: u64 = 16_384;
/// 500 users and their upstream connections.
const FEW_FILES: u64 = 1100;

fn open_files(system: &System) -> Finding {
    let subject = Subject::new(
        "open-files",
        "A gateway needs two per user; without files left it refuses connections, and the run is invalid.",
    );
    let Some((soft, hard)) = system.limit("Max open files") else { return subject.unknown() };
    let text = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
    let value = format!("{} (at most {})", text(soft), text(hard));
    let (soft, hard) = (soft.unwrap_or(u64::MAX), hard.unwrap_or(u64::MAX));
    let level = match soft {
        ..FEW_FILES => Level::Bad,
        FEW_FILES..ENOUGH_FILES => Level::Note,
        ENOUGH_FILES.. => Level::Good,
    };
    let finding = subject.found(level, value, "Raise the limit in the shell that starts the experiment.");
    match hard {
        ENOUGH_FILES.. => finding.fix(&format!("ulimit -n {}", hard.min(1 << 20))),
        _ => finding.fix(&format!("sudo prlimit --pid $$ --nofile={}:{}", 1 << 16, 1 << 16)),
    }
}

fn priority(system: &System) -> Finding {
    let subject = Subject::new(
        "priority",
        "In an open loop the engine asks for the highest priority. On a shared core it was 5 to 12 ms late without it, \
         and 0.05 to 0.2 ms with it.",
    );
    // A limit of 40 is a nice value of -20.
    let by_limit = system.limit("Max nice priority").map(|(soft, _)| soft.is_none_or(|soft| soft >= 40));
    match (system.capability(SYS_NICE), by_limit) {
        (None, None) => subject.unknown(),
        (Some(true), _) => subject.good("can be raised (CAP_SYS_NICE)"),
        (_, Some(true)) => subject.good("can be raised (RLIMIT_NICE)"),
        _ => subject
            .note(
                "cannot be raised",
                "Grant the program CAP_SYS_NICE, or the pacer of an open loop may be late.",
            )
            .fix("sudo setcap cap_sys_nice+ep \"$(command -v weir)\""),
    }
}
