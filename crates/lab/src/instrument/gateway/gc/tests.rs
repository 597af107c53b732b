use super::*;
use crate::testing::no_guard;
use std::io::{BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// Logs of OpenJDK 17.0.15 under `Churn.java`, which end with `jcmd PID GC.run`; shortened.
const LOGS: [(&str, &str); 5] = [
    ("G1", include_str!("../../../../testdata/gc/g1.log")),
    ("Parallel", include_str!("../../../../testdata/gc/parallel.log")),
    ("Serial", include_str!("../../../../testdata/gc/serial.log")),
    ("ZGC", include_str!("../../../../testdata/gc/z.log")),
    ("Shenandoah", include_str!("../../../../testdata/gc/shenandoah.log")),
];

fn close(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 0.002
}

/// Another program added up the figures.
#[test]
fn real_logs_of_each_collector() {
    let part = [(23, 51.071), (7, 139.468), (7, 289.153), (15, 0.203), (18, 6.691)];
    let whole = [(44, 137.807), (12, 219.768), (14, 369.975), (27, 0.347), (30, 7.093)];
    let after_mib = [21, 20, 20, 22, 20];
    for (index, (name, log)) in LOGS.into_iter().enumerate() {
        for (window, (pauses, pause_ms)) in [(0.8..1.3, part[index]), (0.1..10.0, whole[index])] {
            // The JVM's first lines precede any window.
            let report = read(log.as_bytes(), window.clone()).unwrap();
            assert_eq!(report.pauses, pauses, "{name} {window:?}");
            assert!(close(report.pause_ms, pause_ms), "{name} {report:?}");
            let share = 100.0 * (1.0 - pause_ms / 1e3 / (window.end - window.start));
            assert!(close(report.throughput_percent.unwrap(), share), "{name} {report:?}");
            assert_eq!(report.after_full_gc_kib, Some(after_mib[index] * 1024), "{name} {window:?}");
        }
    }
}

#[test]
fn only_collections_since_the_windows_start_count_for_its_memory() {
    let (_, serial) = LOGS[2];
    let before_the_last = serial.split("GC(13)").next().unwrap();
    let after = |window| read(before_the_last.as_bytes(), window).unwrap().after_full_gc_kib;
    assert_eq!(after(1.0..2.0), Some(20 * 1024), "a collection that the program itself triggered");
    assert_eq!(after(2.0..3.0), None);
    let quiet = read(serial.as_bytes(), 2.0..3.0).unwrap();
    assert_eq!((quiet.throughput_percent, quiet.pauses, quiet.pause_ms), (Some(100.0), 0, 0.0));
}

#[test]
fn pauses_are_cut_at_the_windows_edges_and_counted_once() {
    let log = "[0.001s][info][gc] Using Serial\n\
               [1.000s][info][gc,start] GC(0) Pause Young (Allocation Failure)\n\
               [1.050s][info][gc,start] GC(1) Pause Full (Allocation Failure)\n\
               [1.150s][info][gc] GC(1) Pause Full (Allocation Failure) 60M->50M(61M) 100,000ms\n\
               [1.200s][info][gc] GC(0) Pause Young (Allocation Failure) 60M->50M(61M) 200.000ms\n\
               [2.000s][info][gc] GC(2) Y: Pause Mark Start (Major) 10.000ms\n\
               [2,000s][info][gc] GC(2) O: Pause Mark Start 10.000ms\n\
               [2.100s][info][gc] GC(2) Major Collection (System.gc()) 2G(1%)->1G(0%) 0.012s\n\
               [2.200s] GC(3) Pause Young (Normal) (cut off";
    for (window, pauses, pause_ms, after) in [
        (0.5..3.0, 3, 220.0, Some(1 << 20)),
        (1.1..1.15, 1, 50.0, Some(1 << 20)),
        (1.19..1.995, 3, 20.0, Some(1 << 20)),
        (2.15..2.25, 0, 0.0, None),
    ] {
        let report = read(log.as_bytes(), window.clone()).unwrap();
        assert_eq!((report.pauses, report.after_full_gc_kib), (pauses, after), "{window:?}");
        assert!(close(report.pause_ms, pause_ms), "{window:?} {report:?}");
    }
    let none = read(log.as_bytes(), 1.0..1.0).unwrap();
    assert_eq!((none.throughput_percent, none.pauses), (None, 0));
}

#[test]
fn sizes_after_a_collection() {
    for (message, expected) in [
        ("Pause Full (System.gc()) 3M->1M(8M) 5.0ms", Some(1024)),
        ("Pause Full (System.gc()) 3000K->900K(8M) 5.0ms", Some(900)),
        ("Garbage Collection (Proactive) 9B(0%)->4096B(0%)", Some(4)),
        ("Pause Full (System.gc())", None),
        ("Pause Full (x) 3M->", None),
        ("Pause Full (x) 3M->M(8M)", None),
        ("Pause Full (x) 3M->9X(8M)", None),
        ("Pause Full (x) 3M->99999999999999999999M(8M)", None),
        ("Pause Full (x) 3M->18446744073709551615G(8M)", None),
    ] {
        assert_eq!(after_kib(message), expected, "{message}");
    }
}

#[test]
fn useless_logs_are_rejected() {
    let window = 1.0..2.0;
    for (log, part) in [
        (&b""[..], "-Xlog:gc*"),
        (b"2026-01-01 GC pause 1.0 ms\n\xff\xfe\n[info][gc] x\n", "-Xlog:gc*"),
        (b"[1.500s] GC(9) Pause Remark 1M->1M(2M) 1.0ms\n", "filecount=0"),
    ] {
        assert!(read(log, window.clone()).unwrap_err().contains(part), "{log:?}");
    }
    let seconds = Duration::from_secs;
    let missing = Path::new("/nothing/here.log");
    let error = measure(missing, seconds(1), seconds(2)..seconds(3)).unwrap_err();
    assert!(error.starts_with("/nothing/here.log: No such file"), "{error}");
    let error = measure(missing, seconds(5), seconds(2)..seconds(3)).unwrap_err();
    assert!(error.contains("began before the process"), "{error}");
}

#[test]
fn starts_of_processes() {
    assert!(process_start(std::process::id()).unwrap() <= since_boot());
    assert!(process_start(u32::MAX).is_err());
}

fn since_boot() -> Duration {
    weir_load::since_boot(Instant::now()).unwrap()
}

/// A JVM that allocates on request; closing its input ends it.
struct Jvm {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Jvm {
    /// `None` without a JDK.
    fn start(flags: &[&str]) -> Option<Self> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/gc/Churn.java");
        let mut java = Command::new("java");
        java.args(flags).arg(source).stdin(Stdio::piped()).stdout(Stdio::piped());
        let found = |program: &str| Command::new(program).arg("-h").output().is_ok();
        if !found("java") || !found("jcmd") {
            assert!(std::env::var_os("WEIR_REQUIRE_PEERS").is_none(), "java and jcmd are not on the PATH");
            println!("skipped: java and jcmd are not on the PATH");
            return None;
        }
        let mut child = java.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut jvm = Self { stdin: child.stdin.take(), child, lines };
        jvm.says("ready");
        Some(jvm)
    }

    fn says(&mut self, line: &str) {
        assert_eq!(self.lines.next().unwrap().unwrap(), line);
    }

    fn allocates(&mut self, mib: u32) {
        writeln!(self.stdin.as_mut().unwrap(), "{mib}").unwrap();
        self.says("done");
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

fn collected(pid: u32) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    full_collection(pid, directory.path(), &Interrupt::default(), &no_guard())
}

#[test]
fn a_jvm_that_runs() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("gc.log");
    let to_log = format!("-Xlog:gc*:file={}:uptime:filecount=0", log.display());
    let Some(mut jvm) = Jvm::start(&["-XX:+UseSerialGC", "-Xmx96m", &to_log]) else { return };
    let started = process_start(jvm.child.id()).unwrap();
    let from = since_boot();
    jvm.allocates(2000);
    let to = since_boot();
    collected(jvm.child.id()).unwrap();
    let report = measure(&log, started, from..to).unwrap();
    // Much more was allocated than fits, and 20 MiB of it are live.
    assert!(report.pauses >= 5 && report.pause_ms > 0.0, "{report:?}");
    let share = report.throughput_percent.unwrap();
    assert!(share > 0.0 && share < 100.0, "{report:?}");
    assert!(report.after_full_gc_kib.is_some_and(|kib| (20 << 10..90 << 10).contains(&kib)), "{report:?}");
    let quiet =
        measure(&log, started, to + Duration::from_secs(3600)..to + Duration::from_secs(3601)).unwrap();
    assert_eq!((quiet.pauses, quiet.after_full_gc_kib), (0, None));
}

#[test]
fn a_process_that_is_no_jvm_gets_no_signal() {
    let pid = std::process::id();
    assert_eq!(collected(pid), Err(format!("process {pid} is not a JVM")));
    assert!(collected(u32::MAX).unwrap_err().contains("No such file"));
}
