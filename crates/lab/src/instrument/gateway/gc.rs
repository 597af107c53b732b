//! The cost of a JVM's garbage collection in the window, by its unified log:
//! `-Xlog:gc*:file=FILE:uptime:filecount=0`.
//!
//! The log counts from the JVM's start, the window is in time since boot, and `/proc/PID/stat` has the process's start
//! since boot. The process is some 15 to 60 ms older than the JVM's own count (measured with OpenJDK 17 on a busy
//! machine, by a log that had the monotonic clock beside the uptime), and the kernel counts in ticks of 10 ms: so a
//! pause within a tenth of a second of either edge may count on the wrong side of it; nothing else is affected.

use super::target::run_check;
use crate::running::guard::Guard;
use crate::running::interrupt::Interrupt;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use weir_doctor::proc::Stat;

/// Garbage collection in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Share of the window in which the collector did not pause the program, in percent, as in GCViewer and the
    /// pass-through study: 100 * (1 - pauses / window). `None` for a window of no length.
    pub throughput_percent: Option<f64>,
    /// Heap in use after the last collection of the whole heap since the window's start, in KiB; `None` without one.
    /// The log has whole MiB. ZGC and Shenandoah collect while the program runs, which includes its new allocations.
    pub after_full_gc_kib: Option<u64>,
    /// Pauses at least partly in the window. Nested ones count once.
    pub pauses: u64,
    /// Their part of the window in milliseconds.
    pub pause_ms: f64,
}

/// The start of a process, since boot.
/// Errors: no such process.
pub(crate) fn process_start(pid: u32) -> Result<Duration, String> {
    let start = Stat::of(pid).and_then(|stat| stat.time(22));
    start.ok_or_else(|| format!("the start of process {pid} is unknown: /proc/{pid}/stat cannot be read"))
}

/// Parses a JVM's log. `process_start` and `window` are times since boot (see [`process_start`], and
/// [`weir_load::result::LoadResult::window_boot_s`]).
/// Errors: a log that cannot be read, is no GC log, or begins after the window's start since it was rotated; a
/// window that began before the process.
pub(crate) fn measure(
    log: &Path,
    process_start: Duration,
    window: Range<Duration>,
) -> Result<Report, String> {
    let says = |what: &str| format!("{}: {what}", log.display());
    let uptime = |at: Duration| at.checked_sub(process_start).map(|time| time.as_secs_f64());
    let (Some(from), Some(to)) = (uptime(window.start), uptime(window.end)) else {
        return Err(says("the window began before the process started"));
    };
    let file = File::open(log).map_err(|error| says(&error.to_string()))?;
    read(BufReader::new(file), from..to).map_err(|what| says(&what))
}

/// Makes a JVM collect its whole heap, and waits for the end; `jcmd`'s output goes to `directory`.
/// Errors: `jcmd` is not on the PATH, the process is no JVM of the same user, or it takes longer than a minute.
pub(crate) fn full_collection(
    pid: u32,
    directory: &Path,
    interrupt: &Interrupt,
    guard: &Guard,
) -> Result<(), String> {
    // It sends SIGQUIT, which a JVM handles but which kills any other program.
    if !weir_profile::is_java(pid).map_err(|error| error.to_string())? {
        return Err(format!("process {pid} is not a JVM"));
    }
    let command = ["jcmd".to_owned(), pid.to_string(), "GC.run".to_owned()];
    run_check("jcmd", &command, directory, interrupt, guard).flatten()
}

/// The figures of a window in seconds of the JVM's own count.
fn read(mut log: impl BufRead, window: Range<f64>) -> Result<Report, String> {
    let mut report = Report::default();
    let mut pause_s = 0.0;
    // The outermost pause in progress, by the number of its collection.
    let mut outermost = None;
    let mut first = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        if log.read_until(b'\n', &mut line).map_err(|error| error.to_string())? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let Some((at, message)) = decorated(text.trim_end()) else { continue };
        if *first.get_or_insert(at) > window.start {
            return Err(format!(
                "it begins at {at} s of the JVM, after the window's start ({:.3} s): it was rotated; write it with \
                 filecount=0",
                window.start
            ));
        }
        let Some((collection, message)) = of_collection(message) else { continue };
        if message.starts_with("Pause ") {
            let Some(pause_ms) = duration_ms(message) else {
                outermost = outermost.or(Some(collection));
                continue;
            };
            let inner = outermost.is_some_and(|outermost| outermost != collection);
            if !inner {
                outermost = None;
                let within = at.min(window.end) - (at - pause_ms / 1e3).max(window.start);
                if within > 0.0 {
                    report.pauses += 1;
                    pause_s += within;
                }
            }
        }
        if at >= window.start
            && is_of_whole_heap(message)
            && let Some(kib) = after_kib(message)
        {
            report.after_full_gc_kib = Some(kib);
        }
    }
    if first.is_none() {
        return Err("no line begins with an uptime such as [0.123s]: \
                    write it with -Xlog:gc*:file=FILE:uptime:filecount=0"
            .to_owned());
    }
    let length = window.end - window.start;
    report.pause_ms = pause_s * 1e3;
    report.throughput_percent = (length > 0.0).then(|| 100.0 * (1.0 - pause_s / length).max(0.0));
    Ok(report)
}

/// Uptime in seconds and message of a line: `[0.123s][info][gc] message`, with any decorations.
fn decorated(line: &str) -> Option<(f64, &str)> {
    let (mut uptime, mut rest) = (None, line);
    while let Some((decoration, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        // Some locales use a comma.
        let seconds = decoration.strip_suffix('s').and_then(|text| text.replace(',', ".").parse().ok());
        uptime = uptime.or(seconds);
        rest = after;
    }
    Some((uptime?, rest.trim_start()))
}

/// Number and message of a line about one collection: `GC(12) message`. The generational ZGC puts `Y: ` or `O: ` before
/// it.
fn of_collection(message: &str) -> Option<(u64, &str)> {
    let (number, message) = message.strip_prefix("GC(")?.split_once(") ")?;
    let bare = ["y: ", "Y: ", "O: "].iter().find_map(|generation| message.strip_prefix(generation));
    Some((number.parse().ok()?, bare.unwrap_or(message)))
}

/// The duration at the end of a pause's last line. Its first line has none.
fn duration_ms(message: &str) -> Option<f64> {
    message.rsplit(' ').next()?.strip_suffix("ms")?.replace(',', ".").parse().ok()
}

/// Marks of the last lines of whole-heap collections: G1, Parallel and Serial; ZGC without and with generations;
/// Shenandoah.
fn is_of_whole_heap(message: &str) -> bool {
    [
        "Pause Full",
        "Garbage Collection (",
        "Major Collection (",
        "Concurrent cleanup ",
        "Pause Degenerated GC",
    ]
    .iter()
    .any(|start| message.starts_with(start))
}

/// The heap in use after a collection: `45M` of `123M->45M(256M)`, `3M` of `12M(1%)->3M(0%)`.
fn after_kib(message: &str) -> Option<u64> {
    let (_, after) = message.rsplit_once("->")?;
    let (digits, rest) = after.split_at(after.find(|c: char| !c.is_ascii_digit())?);
    let number: u64 = digits.parse().ok()?;
    match rest.chars().next()? {
        'B' => Some(number / 1024),
        'K' => Some(number),
        'M' => number.checked_mul(1 << 10),
        'G' => number.checked_mul(1 << 20),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
