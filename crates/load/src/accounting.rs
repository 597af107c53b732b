//! What the processes cost: CPU by their own clocks, which count nanoseconds, read at the edges of the window.

use crate::options::{Meter, Server as Named};
use crate::result::{Cost, Role, ServerCost};
use crate::usage::Usage;
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use rustix::thread::sched_getaffinity;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

/// The processes to account.
#[derive(Debug)]
pub(crate) struct Accounts {
    servers: Vec<Server>,
}

/// A named process and its descendants.
#[derive(Debug)]
struct Server {
    role: Role,
    pid: u32,
    members: Vec<Member>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    pid: u32,
    clock: ClockId,
}

/// CPU times at one instant: ours, and each member's of each server; `None` for a process that is gone.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    own: Duration,
    servers: Vec<Vec<Option<Duration>>>,
}

/// CPU time of each thread of each server, to tell which of them work and on how many cores they can.
#[derive(Debug)]
pub(crate) struct Threads(Vec<BTreeMap<(u32, u32), Duration>>);

/// One worker's readings at the edges of the window.
#[derive(Debug)]
pub(crate) struct Edges<'a> {
    /// Only one worker reads the clocks of the processes.
    accounts: Option<&'a Accounts>,
    start: Option<Edge>,
    end: Option<Edge>,
}

/// The clocks at one edge.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) at: Instant,
    pub(crate) thread: Duration,
    pub(crate) processes: Option<Reading>,
}

impl Accounts {
    /// Finds the processes named and their descendants.
    ///
    /// # Errors
    /// When a process does not exist.
    pub(crate) fn open(servers: &[Named]) -> Result<Self, Usage> {
        let parents = parents();
        let server = |named: &Named| {
            let Meter::Process(pid) = &named.meter else {
                return Err(Usage::new("--cgroup", "", "not yet"));
            };
            let members: Vec<Member> = family(*pid, &parents).into_iter().filter_map(member).collect();
            match members.first() {
                Some(first) if first.pid == *pid => Ok(Server { role: named.role, pid: *pid, members }),
                _ => Err(Usage::new("--pid", &pid.to_string(), "the id of a process that runs")),
            }
        };
        Ok(Self { servers: servers.iter().map(server).collect::<Result<_, _>>()? })
    }

    /// Reads all clocks: a system call for each process, some microseconds in all.
    pub(crate) fn read(&self) -> Reading {
        let members = |server: &Server| server.members.iter().map(|member| time(member.clock)).collect();
        Reading { own: own_cpu(), servers: self.servers.iter().map(members).collect() }
    }

    /// Reads the CPU time of each thread.
    pub(crate) fn threads(&self) -> Threads {
        let of = |server: &Server| {
            let mut threads = BTreeMap::new();
            for pid in server.members.iter().map(|member| member.pid) {
                for tid in numbers(&format!("/proc/{pid}/task")) {
                    threads.insert((pid, tid), thread_cpu(pid, tid).unwrap_or_default());
                }
            }
            threads
        };
        Threads(self.servers.iter().map(of).collect())
    }

    /// What each server used between the readings. `requests` are those answered in between.
    pub(crate) fn servers(
        &self,
        (from, to): (&Reading, &Reading),
        threads: (&Threads, &Threads),
        window: Duration,
        requests: u64,
    ) -> Vec<ServerCost> {
        let parents = parents();
        let mut costs = Vec::new();
        for (index, server) in self.servers.iter().enumerate() {
            let pairs = from.servers[index].iter().zip(&to.servers[index]);
            let mut cpu: Duration =
                pairs.map(|(from, to)| to.unwrap_or_default().saturating_sub(from.unwrap_or_default())).sum();
            // Processes that were started after the accounts were opened have used all that they have since.
            let known: BTreeSet<u32> = server.members.iter().map(|member| member.pid).collect();
            let born: Vec<u32> =
                family(server.pid, &parents).into_iter().filter(|pid| !known.contains(pid)).collect();
            cpu += born.iter().filter_map(|pid| time(member(*pid)?.clock)).sum::<Duration>();
            // What a process used that is gone before the end is not known.
            let requests = if to.servers[index].first().is_some_and(Option::is_some) { requests } else { 0 };
            let cores = usable_cores(&threads.0.0[index], &threads.1.0[index], window);
            let everyone = known.iter().chain(&born);
            costs.push(ServerCost {
                role: server.role,
                source: format!("process {}", server.pid),
                cost: cost(cpu, window, cores, requests),
                rss_peak_kib: Some(everyone.filter_map(|pid| rss_peak_kib(*pid)).sum()),
            });
        }
        costs
    }

    /// Named processes that are gone.
    pub(crate) fn gone(&self) -> Vec<String> {
        let first =
            |server: &Server| server.members.first().is_none_or(|member| time(member.clock).is_none());
        self.servers
            .iter()
            .filter(|server| first(server))
            .map(|server| format!("process {}", server.pid))
            .collect()
    }
}

impl Reading {
    /// CPU that this process used between two readings.
    pub(crate) fn own_since(&self, earlier: &Self) -> Duration {
        self.own.saturating_sub(earlier.own)
    }
}

impl<'a> Edges<'a> {
    pub(crate) fn new(accounts: Option<&'a Accounts>) -> Self {
        Self { accounts, start: None, end: None }
    }

    pub(crate) fn start(&mut self) {
        self.start = Some(self.edge());
    }

    pub(crate) fn end(&mut self) {
        self.end = Some(self.edge());
    }

    /// Both edges, once the window is over.
    pub(crate) fn both(self) -> Option<(Edge, Edge)> {
        self.start.zip(self.end)
    }

    fn edge(&self) -> Edge {
        let processes = self.accounts.map(Accounts::read);
        let thread = time(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default();
        Edge { at: Instant::now(), thread, processes }
    }
}

/// A cost as it stands in results.
pub(crate) fn cost(cpu: Duration, window: Duration, cores: u32, requests: u64) -> Cost {
    let cpu_us = cpu.as_secs_f64() * 1e6;
    Cost {
        cpu_us,
        cpu_us_per_request: (requests > 0).then(|| cpu_us / requests as f64),
        cpu_us_per_handshake: None,
        utilisation: cpu.as_secs_f64() / (window.as_secs_f64() * f64::from(cores.max(1))),
        cores,
    }
}

/// How many cores the threads that worked can use at once: those that they are allowed, but no more than there are
/// such threads. A thread that used less than 1 % of the window does not count, unless all are like that.
fn usable_cores(
    from: &BTreeMap<(u32, u32), Duration>,
    to: &BTreeMap<(u32, u32), Duration>,
    window: Duration,
) -> u32 {
    let used =
        |thread: &(u32, u32), to: &Duration| to.saturating_sub(from.get(thread).copied().unwrap_or_default());
    let mut threads: Vec<(Duration, u32)> =
        to.iter().map(|(thread, to)| (used(thread, to), thread.1)).collect();
    threads.sort_unstable();
    let most = threads.last().map_or(Duration::ZERO, |last| last.0);
    threads.retain(|(used, _)| *used >= (window / 100).min(most));
    let mut cores = BTreeSet::new();
    for (_, tid) in &threads {
        let Some(tid) = rustix::process::Pid::from_raw(*tid as i32) else { continue };
        if let Ok(set) = sched_getaffinity(Some(tid)) {
            cores.extend((0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core)));
        }
    }
    cores.len().min(threads.len()).max(1) as u32
}

fn own_cpu() -> Duration {
    time(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default()
}

fn time(clock: ClockId) -> Option<Duration> {
    clock.now().ok().map(Duration::from)
}

fn member(pid: u32) -> Option<Member> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
    Some(Member { pid, clock })
}

/// The first number of /proc/PID/task/TID/schedstat: nanoseconds on a CPU.
fn thread_cpu(pid: u32, tid: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// The largest resident size that a process has had (`VmHWM`). Memory that processes share counts for each of them.
fn rss_peak_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

/// `pid` and its descendants, itself first.
fn family(pid: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut family = vec![pid];
    let mut at = 0;
    while at < family.len() {
        let parent = family[at];
        family.extend(parents.iter().filter(|(_, ppid)| *ppid == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    family
}

/// Every process with its parent.
fn parents() -> Vec<(u32, u32)> {
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold anything, parentheses too: what follows the last one is `state ppid ..`.
        let ppid = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some((pid, ppid))
    };
    numbers("/proc").into_iter().filter_map(parent).collect()
}

/// The entries of a directory that are numbers.
fn numbers(directory: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn process(pid: u32) -> Named {
        Named { role: Role::Gateway, meter: Meter::Process(pid) }
    }

    /// A shell whose child burns CPU for as long as its standard input is open.
    fn burner() -> Child {
        let script = "sh -c 'while :; do :; done' & child=$!; read x; kill $child; wait; times";
        Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// `1m2.34s`, as the shell's `times` writes it.
    fn seconds(text: &str) -> f64 {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    }

    #[test]
    fn a_descendants_cpu_is_accounted_as_the_system_itself_accounts_it() {
        let mut shell = burner();
        let deadline = Instant::now() + Duration::from_secs(20);
        let accounts = loop {
            let accounts = Accounts::open(&[process(shell.id())]).unwrap();
            if accounts.servers[0].members.len() == 2 {
                break accounts;
            }
            assert!(Instant::now() < deadline, "the shell's child never came");
        };
        let (from, threads, begun) = (accounts.read(), accounts.threads(), Instant::now());
        let spent = |reading: &Reading| reading.servers[0].iter().flatten().sum::<Duration>();
        while spent(&accounts.read()) < Duration::from_millis(500) {
            assert!(Instant::now() < deadline, "the child gets no CPU");
        }
        let (to, after) = (accounts.read(), accounts.threads());
        let costs = accounts.servers((&from, &to), (&threads, &after), begun.elapsed(), 10);
        assert!(accounts.gone().is_empty());

        drop(shell.stdin.take());
        let output = shell.wait_with_output().unwrap();
        let times = String::from_utf8(output.stdout).unwrap();
        let all: f64 = times.split_whitespace().map(seconds).sum();
        let accounted = spent(&to).as_secs_f64();
        // The child went on until the shell killed it, so the system's account can only be larger (by its 10 ms ticks
        // in each of four numbers, smaller).
        assert!(accounted >= 0.5 && accounted <= all + 0.04, "{accounted} {all}");
        let cost = &costs[0].cost;
        assert!(cost.cpu_us > 0.0 && cost.cpu_us <= accounted * 1e6);
        assert_eq!(cost.cpu_us_per_request, Some(cost.cpu_us / 10.0));
        assert_eq!(cost.cores, 1, "one thread works, however many cores it may choose from");
        assert!(costs[0].rss_peak_kib.is_some_and(|kib| kib > 0));
        assert_eq!(accounts.gone().len(), 1, "and now it is gone");
    }

    #[test]
    fn a_process_that_does_not_exist_is_told() {
        let error = Accounts::open(&[process(u32::MAX)]).unwrap_err().to_string();
        assert!(error.contains("--pid") && error.contains("4294967295"), "{error}");
    }

    #[test]
    fn our_own_cpu_is_counted_up() {
        let accounts = Accounts::open(&[]).unwrap();
        let first = accounts.read();
        while accounts.read().own_since(&first).is_zero() {}
        assert!(first.own_since(&accounts.read()).is_zero(), "never negative");
    }

    #[test]
    fn a_family_is_a_process_and_all_that_descend_from_it() {
        let parents = [(1, 0), (2, 1), (3, 2), (4, 1), (5, 3)];
        assert_eq!(family(2, &parents), [2, 3, 5]);
        assert_eq!(family(4, &parents), [4]);
    }
}
