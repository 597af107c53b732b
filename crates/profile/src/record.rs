//! Sampling running processes.

use crate::error::ProfileError;
use crate::perf;
use crate::script;
use crate::stacks::Stacks;
use crate::unwind::Unwind;
use memchr::memmem;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use weir_doctor::proc::with_descendants;

/// What to sample, and how.
#[derive(Clone, Debug)]
pub struct Recording {
    /// These processes, with their descendants at the start.
    pub pids: Vec<u32>,
    /// How long.
    pub duration: Duration,
    /// Samples per second of CPU time.
    pub frequency: u32,
    /// How stacks are unwound; `None`: as suits the first process.
    pub unwind: Option<Unwind>,
}

/// No process, ten seconds, 499 samples per second.
impl Default for Recording {
    fn default() -> Self {
        Self { pids: Vec::new(), duration: Duration::from_secs(10), frequency: 499, unwind: None }
    }
}

/// What was sampled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// The samples.
    pub stacks: Stacks,
    /// The time sampled, in seconds.
    pub seconds: f64,
    /// The CPU time in the samples, in seconds.
    pub cpu_seconds: f64,
    /// What limits the profile, and the next step; a sentence each.
    pub notes: Vec<String>,
}

/// Bytes of stack copied with each sample.
const STACK_BYTES: u32 = 16_384;

/// How often the sampler is looked at.
const TURN: Duration = Duration::from_millis(20);

/// The time allowed to `perf` for writing its file.
const FLUSH: Duration = Duration::from_secs(20);

/// Samples processes until the time is over, they have ended or `is_interrupted` says so.
///
/// # Errors
/// There is no such process, it may not be sampled, it used no CPU, or `perf` is missing or failed.
pub fn record(recording: &Recording, is_interrupted: &dyn Fn() -> bool) -> Result<Recorded, ProfileError> {
    for pid in &recording.pids {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            return Err(ProfileError::NoProcess { pid: *pid });
        }
    }
    let pids = with_descendants(&recording.pids);
    let failed = |error: io::Error| ProfileError::Perf { step: "record", detail: error.to_string() };
    let work = tempfile::tempdir().map_err(failed)?;
    let (data, words) = (work.path().join("perf.data"), work.path().join("stderr"));
    let started = Instant::now();
    let mut sampler = command(recording, &pids, &data)
        .stderr(File::create(&words).map_err(failed)?)
        .spawn()
        .map_err(|error| perf::not_started("record", &error))?;
    let outcome = watch(&mut sampler, recording.duration, is_interrupted);
    let seconds = started.elapsed().as_secs_f64().min(recording.duration.as_secs_f64());
    outcome.map_err(failed)?;
    let words = fs::read_to_string(&words).unwrap_or_default();
    if !fs::metadata(&data).is_ok_and(|data| data.len() > 0) {
        return Err(refused(&words, &recording.pids));
    }
    let mut notes = Vec::new();
    notes.extend(
        pids.iter().filter(|pid| is_java(**pid).unwrap_or(false)).filter_map(|pid| map_java(*pid).err()),
    );
    let stacks = script::parse(&perf::script(&data)?);
    if stacks.samples() == 0 {
        return Err(ProfileError::NoSamples { why: idle(recording) });
    }
    notes.extend(user_space_only());
    let cpu_seconds = stacks.samples() as f64 / f64::from(recording.frequency);
    Ok(Recorded { stacks, seconds, cpu_seconds, notes })
}

/// Removes the maps of names that processes with a JIT compiler wrote for `perf`; they outlive the processes.
pub fn remove_maps(stacks: &Stacks) {
    let modules: BTreeSet<&str> = stacks.frames().iter().map(|frame| frame.module.as_str()).collect();
    for map in modules.into_iter().filter(|module| module.starts_with("perf-") && module.ends_with(".map")) {
        // It may have been removed already.
        let _ = fs::remove_file(Path::new("/tmp").join(map));
    }
}

/// The words before a command that sample it from start to end into a file, for [`sampled`].
pub fn sampler(data: &Path, unwind: Unwind) -> Vec<String> {
    let Recording { frequency, .. } = Recording::default();
    let words = ["perf", "record"].map(str::to_owned).into_iter().chain(options(frequency, unwind));
    words.chain(["-o".to_owned(), data.display().to_string(), "--".to_owned()]).collect()
}

/// The samples of a command that [`sampler`] sampled.
///
/// # Errors
/// As [`crate::read`].
pub fn sampled(data: &Path) -> Result<Recorded, ProfileError> {
    let stacks = crate::read(data)?;
    remove_maps(&stacks);
    let seconds = stacks.samples() as f64 / f64::from(Recording::default().frequency);
    Ok(Recorded { stacks, seconds, cpu_seconds: seconds, notes: user_space_only().into_iter().collect() })
}

/// The options of `perf record` that say what a sample is.
fn options(frequency: u32, unwind: Unwind) -> Vec<String> {
    let unwind = match unwind {
        Unwind::Dwarf => format!("dwarf,{STACK_BYTES}"),
        Unwind::FramePointers => "fp".into(),
    };
    let frequency = frequency.to_string();
    // Collecting build IDs reads every sample once more.
    let words =
        ["-e", "cpu-clock", "-F", &frequency, "--call-graph", &unwind, "--no-buildid", "--no-buildid-cache"];
    words.map(str::to_owned).to_vec()
}

/// `perf record`, with a `sleep` that ends it even if this process is killed.
fn command(recording: &Recording, pids: &[u32], data: &Path) -> Command {
    let mut command = perf::command("record");
    let unwind = recording.unwind.or_else(|| pids.first().map(|pid| Unwind::of_process(*pid)));
    let unwind = unwind.unwrap_or(Unwind::Dwarf);
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    command
        .args(options(recording.frequency, unwind))
        .args(["-p", &pids.join(","), "-o"])
        .arg(data)
        .args(["--", "sleep", &recording.duration.as_secs_f64().to_string()])
        .stdout(Stdio::null())
        // An interrupt from the terminal is ours to pass on.
        .process_group(0);
    command
}

/// Waits for the sampler; ends it early on an interrupt, and by force if it does not end.
fn watch(sampler: &mut Child, duration: Duration, is_interrupted: &dyn Fn() -> bool) -> io::Result<()> {
    let started = Instant::now();
    let mut asked = None;
    loop {
        if sampler.try_wait()?.is_some() {
            return Ok(());
        }
        let since = asked.map(|asked: Instant| asked.elapsed());
        if since.is_none() && (is_interrupted() || started.elapsed() > duration + TURN) {
            asked = Some(Instant::now());
            if is_interrupted() {
                interrupt(sampler);
            }
        }
        if since.is_some_and(|since| since > FLUSH) {
            sampler.kill()?;
            sampler.wait()?;
            return Err(io::Error::other("it did not end in time"));
        }
        thread::sleep(TURN);
    }
}

fn interrupt(sampler: &Child) {
    if let Some(pid) = i32::try_from(sampler.id()).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::INT);
    }
}

/// Why `perf record` wrote nothing.
fn refused(words: &str, pids: &[u32]) -> ProfileError {
    let is_root = geteuid().is_root();
    let other = |pid: &&u32| {
        fs::metadata(format!("/proc/{pid}")).is_ok_and(|process| process.uid() != geteuid().as_raw())
    };
    match (pids.iter().find(|pid| !Path::new(&format!("/proc/{pid}")).exists()), pids.iter().find(other)) {
        (Some(pid), _) => {
            ProfileError::NoSamples { why: format!("process {pid} ended before the first sample") }
        }
        (None, Some(pid)) if !is_root => ProfileError::OtherUser { pid: *pid },
        _ if words.contains("perf_event_paranoid") || words.contains("ermission") => {
            ProfileError::Forbidden { level: perf::paranoia().unwrap_or_default() }
        }
        _ => ProfileError::Perf { step: "record", detail: perf::last_words(words) },
    }
}

/// What a process without a sample did.
fn idle(recording: &Recording) -> String {
    let pids: Vec<String> = recording.pids.iter().map(u32::to_string).collect();
    let (pids, seconds) = (pids.join(", "), recording.duration.as_secs_f64());
    format!("process {pids} used no CPU in {seconds} s; put load on it, such as with `weir load URL -d 30s`")
}

fn user_space_only() -> Option<String> {
    let level = perf::paranoia()?;
    (level >= 2 && !geteuid().is_root()).then(|| {
        format!(
            "The kernel was not sampled (perf_event_paranoid is {level}): shares are of the time in user space. Run \
             it as root, or allow it with `sudo sysctl kernel.perf_event_paranoid=1`."
        )
    })
}

/// Whether a process is a JVM.
///
/// # Errors
/// It does not exist, or is another user's.
pub fn is_java(pid: u32) -> io::Result<bool> {
    Ok(memmem::find(&fs::read(format!("/proc/{pid}/maps"))?, b"/libjvm.so").is_some())
}

/// Lets a JVM write the names of its compiled methods to where `perf` looks for them (JDK 17 and later).
fn map_java(pid: u32) -> Result<(), String> {
    let next_to_java = fs::read_link(format!("/proc/{pid}/exe")).ok().map(|java| java.with_file_name("jcmd"));
    let jcmd = next_to_java.filter(|jcmd| jcmd.exists()).unwrap_or_else(|| "jcmd".into());
    let output = Command::new(jcmd).args([&pid.to_string(), "Compiler.perfmap"]).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(format!(
            "The Java methods of process {pid} have no names: `jcmd {pid} Compiler.perfmap` failed; it needs a JDK, \
             17 or later."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_sampled_with_their_parents() {
        let mut child = Command::new("sh").args(["-c", "sleep 1000 & wait"]).spawn().expect("starts");
        let deadline = Instant::now() + Duration::from_secs(10);
        let all = loop {
            let all = with_descendants(&[child.id()]);
            assert!(Instant::now() < deadline, "no grandchild: {all:?}");
            if all.len() == 2 {
                break all;
            }
            thread::sleep(TURN);
        };
        child.kill().expect("is running");
        child.wait().expect("ends");
        let grandchild = Pid::from_raw(all[1] as i32).expect("a PID");
        kill_process(grandchild, Signal::KILL).expect("is running");
    }

    #[test]
    fn a_process_that_does_not_exist_is_named() {
        let recording = Recording {
            pids: vec![u32::MAX],
            duration: Duration::from_millis(1),
            frequency: 99,
            unwind: None,
        };
        let error = record(&recording, &|| false).expect_err("there is none");
        assert_eq!(error.to_string(), format!("there is no process {}", u32::MAX));
    }
}
