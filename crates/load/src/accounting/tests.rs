use super::*;
use crate::options::Meter;
use crate::result::Role;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

fn named(meter: Meter) -> Named {
    Named { role: Role::Origin, meter }
}

/// One worker that spins for `time` between its edges, with scans around them.
fn account(accounts: &Accounts, time: Duration, between: impl FnOnce()) -> Account {
    let mut edges = Edges::new(0, accounts);
    let before = accounts.look();
    edges.start();
    let end = Instant::now() + time;
    between();
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    edges.end();
    let looks = (before, accounts.look());
    let work = Work { requests: 10, handshakes: 0, paired: false };
    accounts.settle(&[edges.both().unwrap()], &looks, work).unwrap()
}

const SOME_TIME: Duration = Duration::from_millis(50);

#[test]
fn this_process_as_server_and_as_engine() {
    let attempt = || {
        let accounts = Accounts::open(&[named(Meter::Process(std::process::id()))]).unwrap();
        account(&accounts, SOME_TIME, || {})
    };
    // Children of other tests belong to this process: one that ends while it is looked at leaves a gap.
    let is_whole = |account: &Account| account.servers[0].counters.rss_end_kib.is_some();
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut account = attempt();
    while !is_whole(&account) && Instant::now() < deadline {
        account = attempt();
    }
    assert!(account.window >= SOME_TIME && account.lost.is_empty(), "{account:?}");
    let [server] = &account.servers[..] else { panic!("{account:?}") };
    assert_eq!(server.role, Role::Origin);
    assert!(server.source.starts_with(&format!("process {}", std::process::id())), "{}", server.source);
    assert!(server.cost.cpu_us > 0.0 && server.cost.cores >= 1 && server.rss_peak_kib > Some(0));
    assert_eq!(server.cost.cpu_us_per_request, Some(server.cost.cpu_us / 10.0));
    assert_eq!(server.cost.cpu_us_per_handshake, None);
    let [worker] = &account.engine.workers[..] else { panic!("{account:?}") };
    assert!(worker.cpu_us > 0.0 && account.engine.cost.cpu_us > 0.0 && account.engine.cost.cores == 1);
    // This process measures itself twice: from /proc, and with getrusage.
    for counters in [server.counters, account.engine.counters] {
        let Counters { rss_end_kib, voluntary_switches, open_files, .. } = counters;
        assert!(rss_end_kib > Some(0) && open_files > Some(2), "{counters:?}");
        assert!(voluntary_switches.is_some() && counters.involuntary_switches.is_some(), "{counters:?}");
        assert!(counters.minor_faults.is_some() && counters.major_faults.is_some(), "{counters:?}");
    }
    assert!(account.engine.rss_peak_kib > Some(0) && account.since_boot > Some(Duration::ZERO));
}

/// A server with known usage: a shell with a child that opens files and waits.
#[test]
fn a_server_and_its_child_by_what_they_did() {
    let script = "exec 9<&0 3</dev/null 4</dev/null; sh -c 'exec 5</dev/null; echo; read x; \
                  for i in 1 2 3 4 5 6 7 8; do sleep 0; done; echo; read x' <&9 & wait";
    let mut child =
        Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::new(stdout).lines();
    lines.next().unwrap().unwrap();
    let accounts = Accounts::open(&[named(Meter::Process(child.id()))]).unwrap();
    let account = account(&accounts, SOME_TIME, || {
        stdin.write_all(b"\n").unwrap();
        lines.next().unwrap().unwrap();
    });
    let counters = account.servers[0].counters;
    // Both have three standard files and the pipe's; plus two, and three.
    assert!(counters.open_files >= Some(12), "{counters:?}");
    // It reaped eight children, each of which faulted in its own pages.
    assert!(counters.voluntary_switches >= Some(8), "{counters:?}");
    assert!(counters.minor_faults >= Some(8 * 10), "{counters:?}");
    assert!(counters.rss_end_kib >= Some(200), "{counters:?}");
    drop(stdin);
    child.wait().unwrap();
}

#[test]
fn a_pinned_worker_reports_its_core() {
    let core = weir_reactor::cores::allowed().unwrap().0[0];
    let worker = thread::spawn(move || {
        weir_reactor::cores::pin(core).unwrap();
        account(&Accounts::open(&[]).unwrap(), SOME_TIME, || {}).engine.workers.remove(0)
    });
    assert_eq!(worker.join().unwrap().core, Some(core));
}

#[test]
fn a_command_is_asked_at_both_edges_and_scaled() {
    // It counts nanoseconds since the epoch: like a server that keeps one core busy.
    let text = "date +%s.%N";
    let accounts = Accounts::open(&[named(Meter::Command(text.into()))]).unwrap();
    let (start, end) = accounts.leads();
    assert!(start > Duration::ZERO && start == end, "half of its run before either edge");
    let account = account(&accounts, SOME_TIME, || {});
    let [server] = &account.servers[..] else { panic!("{account:?}") };
    assert!(server.source.starts_with("command date +%s.%N (scaled from 0."), "{}", server.source);
    assert_eq!((server.cost.cores, server.rss_peak_kib), (0, None), "only the command could know");
    assert_eq!(server.counters, Counters::default());
    // Within a tolerance: the command does not read its clock in the exact middle of its run.
    assert!(server.cost.cpu_us > 0.0 && account.lost.is_empty());
    assert_eq!(server.cost.cpu_us_per_request, Some(server.cost.cpu_us / 10.0));
}

#[test]
fn a_command_that_fails_later_is_reported() {
    let file = std::env::temp_dir().join(format!("weir-meter-{}", std::process::id()));
    std::fs::write(&file, "1.5\n").unwrap();
    let text = format!("cat {}", file.display());
    let accounts = Accounts::open(&[named(Meter::Command(text))]).unwrap();
    let account = account(&accounts, SOME_TIME, || std::fs::write(&file, "1.4\n").unwrap());
    assert!(account.lost[0].contains("reported less CPU"), "{:?}", account.lost);
    let cost = &account.servers[0].cost;
    assert_eq!((cost.cpu_us, cost.cpu_us_per_request), (0.0, None));
    let account = self::account(&accounts, SOME_TIME, || std::fs::remove_file(&file).unwrap());
    assert!(account.lost[0].contains("window's end: exit status: 1"), "{:?}", account.lost);
}

#[test]
fn a_process_that_exits_is_reported() {
    let mut child = Command::new("sh").args(["-c", "read x"]).stdin(Stdio::piped()).spawn().unwrap();
    let accounts = Accounts::open(&[named(Meter::Process(child.id()))]).unwrap();
    let account = account(&accounts, SOME_TIME, || {
        drop(child.stdin.take());
        child.wait().unwrap();
    });
    assert_eq!(account.lost, [format!("process {} exited before the window's end", child.id())]);
    assert_eq!(account.servers[0].cost.cpu_us_per_request, None);
}

#[test]
fn servers_that_cannot_be_accounted_name_the_flag_and_what_is_expected() {
    let temporary = std::env::temp_dir();
    for (meter, parts) in [
        (Meter::Process(i32::MAX as u32), ["--pid: invalid value `2147483647`", "a running process"]),
        (
            Meter::Cgroup(temporary.clone()),
            ["--cgroup: invalid value `", "cpu.stat (version 2) or with cpuacct.usage"],
        ),
        (Meter::Cgroup(temporary.join("nothing/here")), ["nothing/here`", "No such file"]),
        (Meter::Command("exit 7".into()), ["--cpu-command: invalid value `exit 7`", "exit status: 7"]),
        (Meter::Command("echo fast".into()), ["seconds as a decimal number", "unexpected output `fast`"]),
    ] {
        let error = Accounts::open(&[named(meter)]).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn costs_per_request_and_per_handshake() {
    let second = Duration::from_secs(1);
    for (requests, handshakes, paired, per_request, per_handshake) in [
        (100, 0, false, Some(5000.0), None),
        (100, 99, false, Some(5000.0), None),
        (100, 100, false, Some(5000.0), Some(5000.0)),
        (100, 200, false, Some(5000.0), Some(2500.0)),
        // The edge of the window separated one handshake from its request.
        (125, 124, true, Some(4000.0), Some(500_000.0 / 124.0)),
        (0, 100, false, None, None),
        (0, 0, true, None, None),
    ] {
        let work = Work { requests, handshakes, paired };
        let cost = cost(second / 2, second, 2, work);
        assert_eq!(
            (cost.cpu_us_per_request, cost.cpu_us_per_handshake),
            (per_request, per_handshake),
            "{work:?}"
        );
        assert_eq!((cost.cpu_us, cost.utilisation, cost.cores), (500_000.0, 0.25, 2));
    }
    assert_eq!(
        cost(second / 2, second, 0, Work { requests: 1, handshakes: 0, paired: false }).utilisation,
        0.5
    );
}
