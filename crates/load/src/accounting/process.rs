//! A process to account, with its descendants.

use super::clock;
use super::family::{Ended, Family};
use nix::time::ClockId;
use std::time::Duration;

/// A process and its descendants at the start. Later ones are only seen by scans.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    members: Vec<Member>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    pid: u32,
    started: u64,
    clock: ClockId,
}

impl Process {
    /// `None` when there is no such process.
    pub(crate) fn open(pid: u32) -> Option<Self> {
        let family = Family::of([pid]);
        let member = |(pid, started)| Some(Member { pid, started, clock: clock::of_process(pid)? });
        let mut ids: Vec<(u32, u64)> = family.0.iter().map(|(pid, life)| (*pid, life.started)).collect();
        ids.sort_unstable_by_key(|(id, _)| (*id != pid, *id));
        let members: Vec<Member> = ids.into_iter().filter_map(member).collect();
        members.first().is_some_and(|first| first.pid == pid).then_some(Self { pid, members })
    }

    /// Each member's clock, the process's first; `None` once exited.
    pub(crate) fn read(&self) -> Vec<Option<Duration>> {
        self.members.iter().map(|member| clock::now(member.clock)).collect()
    }

    /// All descendants of the members. (An orphan has a new parent, but is still one of ours.)
    pub(crate) fn look(&self) -> Family {
        let mut family = Family::of(self.members.iter().map(|member| member.pid));
        for Member { pid, started, .. } in &self.members {
            // The PID was reused.
            if family.0.get(pid).is_some_and(|life| life.started != *started) {
                family.0.remove(pid);
            }
        }
        family
    }

    /// Usage of all of them between two readings at the window's edges and two scans near them.
    ///
    /// - Members: by their clocks at the edges.
    /// - Later ones: by their clocks at the scans.
    /// - Exited ones: from their parents, in ticks, see [`Family::ended_since`].
    pub(crate) fn used(
        &self,
        readings: (&[Option<Duration>], &[Option<Duration>]),
        looks: (&Family, &Family),
    ) -> (Duration, Ended) {
        let (before, after) = looks;
        let exact = |pid: u32| {
            let at = self.members.iter().position(|member| member.pid == pid)?;
            let (from, to) = (*readings.0.get(at)?, *readings.1.get(at)?);
            Some(to?.saturating_sub(from?))
        };
        let ended = after.ended_since(before);
        let standing: Duration = after
            .0
            .iter()
            .map(|(pid, life)| {
                let earlier = before.same(*pid, life.started).map_or(Duration::ZERO, |life| life.cpu);
                exact(*pid).unwrap_or_else(|| life.cpu.saturating_sub(earlier))
            })
            .sum();
        (standing + ended.cpu, ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Lines, Write};
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
    use std::time::Instant;

    /// A shell that runs each line it is given, and prints a line when done.
    struct Shell {
        child: Child,
        stdin: Option<ChildStdin>,
        lines: Lines<BufReader<ChildStdout>>,
    }

    impl Shell {
        fn new() -> Self {
            let mut child = Command::new("sh")
                .args(["-c", SCRIPT])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            Self { stdin: child.stdin.take(), child, lines }
        }

        fn does(&mut self, line: &str) {
            writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
            assert_eq!(self.lines.next().unwrap().unwrap(), "done");
        }

        /// CPU seconds of the shell and its reaped children, from its own `times`.
        fn times(mut self) -> f64 {
            drop(self.stdin.take());
            // `1m2.34s`, four of them on two lines.
            let seconds = |text: &str| {
                let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
                minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
            };
            let rest: Vec<String> = self.lines.map(Result::unwrap).collect();
            self.child.wait().unwrap();
            rest.join(" ").split_whitespace().map(seconds).sum()
        }
    }

    const SCRIPT: &str = "while read line; do eval \"$line\"; echo done; done; times; \
                          kill $child 2>/dev/null";

    /// Ticks are 10 ms, and each of the shell's four numbers and the kernel's two is rounded.
    const TICKS: f64 = 0.06;

    const BURNER: &str = "sh -c 'while :; do :; done' & child=$!";
    const END_IT: &str = "kill $child; wait $child 2>/dev/null; :";

    fn spent(readings: &[Option<Duration>]) -> Duration {
        readings.iter().flatten().sum()
    }

    fn until(what: &str, mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !condition() {
            assert!(Instant::now() < deadline, "timed out: {what}");
        }
    }

    #[test]
    fn a_descendants_cpu_is_accounted_as_the_system_itself_accounts_it() {
        let mut shell = Shell::new();
        shell.does(BURNER);
        let process = Process::open(shell.child.id()).unwrap();
        assert_eq!(process.members.len(), 2);
        let (before, from) = (process.look(), process.read());
        let started = Instant::now();
        until("CPU for the child", || spent(&process.read()) >= Duration::from_millis(500));
        let (to, after) = (process.read(), process.look());
        let (cpu, ended) = process.used((&from, &to), (&before, &after));
        assert_eq!((cpu, ended), (spent(&to) - spent(&from), Ended::default()));
        let working = after.working_since(&before, started.elapsed());
        assert_eq!(working.usable(), 1, "one thread works, however many cores it may use");
        assert!(!working.cores.is_empty() && after.rss_peak_kib() > 0);
        shell.does(END_IT);
        // The child ran until it was killed, so the kernel's figure can only be larger.
        let all = shell.times();
        assert!(spent(&to).as_secs_f64() >= 0.5 && spent(&to).as_secs_f64() <= all + TICKS, "{all}");
        assert_eq!(process.read(), [None, None], "both are gone");
    }

    #[test]
    fn children_that_are_born_between_the_looks_are_accounted() {
        let mut shell = Shell::new();
        let process = Process::open(shell.child.id()).unwrap();
        let (before, from) = (process.look(), process.read());
        shell.does(BURNER);
        let mut after = Family::default();
        until("CPU for the child", || {
            after = process.look();
            after.0.values().any(|life| life.parent == process.pid && life.cpu >= Duration::from_millis(200))
        });
        let (cpu, ended) = process.used((&from, &process.read()), (&before, &after));
        assert!(cpu >= Duration::from_millis(200) && ended == Ended::default(), "{cpu:?} {ended:?}");
        shell.does(END_IT);
        assert!(cpu.as_secs_f64() <= shell.times() + TICKS);
    }

    /// Regression test: the CPU of exited children was lost (fork per request, replaced workers).
    #[test]
    fn children_that_end_between_the_looks_are_accounted_in_ticks() {
        let mut shell = Shell::new();
        shell.does(BURNER);
        let process = Process::open(shell.child.id()).unwrap();
        until("CPU for the child", || spent(&process.read()) >= Duration::from_millis(300));
        let (before, from) = (process.look(), process.read());
        let had = spent(&from).as_secs_f64();
        until("more CPU for it", || spent(&process.read()).as_secs_f64() >= had + 0.2);
        shell.does(END_IT);
        // Another short-lived one.
        shell.does("(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done)");
        let (to, after) = (process.read(), process.look());
        let (cpu, ended) = process.used((&from, &to), (&before, &after));
        assert_eq!(ended.known, 1);
        let (cpu, all) = (cpu.as_secs_f64(), shell.times());
        assert!(cpu >= 0.2 - TICKS, "{cpu}");
        assert!((cpu + had - all).abs() <= TICKS, "{cpu} {had} {all}");
    }

    #[test]
    fn a_process_that_does_not_exist_is_none() {
        assert!(Process::open(u32::MAX).is_none());
        assert!(Process::open(i32::MAX as u32).is_none());
    }
}
