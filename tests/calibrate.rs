//! `weir calibrate` as a user runs it: its output, not its speed.

use crate::common::{DEADLINE, Weir, poll_until};
use serde_json::Value;
use std::fs;

fn rates(cell: &Value) -> [f64; 3] {
    ["min", "median", "max"].map(|name| cell["per_worker"][name].as_f64().unwrap())
}

#[test]
fn a_quick_calibration_has_every_cell() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("below/ceilings.json");
    let ended =
        Weir::run(&["calibrate", "--quick", "-d", "300ms", "--json", "-", "--out", out.to_str().unwrap()]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    assert_eq!(fs::read_to_string(&out).unwrap(), ended.stdout, "the file and standard output are equal");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((report["schema"].as_u64(), report["repeats"].as_u64()), (Some(1), Some(3)));
    assert_eq!(report["window_s"].as_f64(), Some(0.3));
    assert!(report["machine"]["cores"].as_u64() >= Some(1) && report["weir"].is_string());
    assert!(report["measured"].as_str().unwrap().ends_with("GMT"));

    let (cells, failed) = (report["cells"].as_array().unwrap(), report["failed"].as_array().unwrap());
    assert_eq!(failed, &[] as &[Value]);
    let names: Vec<&str> = cells.iter().map(|cell| cell["cell"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "cleartext-keep-alive-0",
            "cleartext-keep-alive-1024",
            "cleartext-keep-alive-65536",
            "tls-1.3-keep-alive-0",
            "tls-1.3-keep-alive-1024",
            "tls-1.3-keep-alive-65536",
            "tls-1.3-new-full",
            "tls-1.3-new-resumed",
            "tls-1.2-new-resumed",
        ]
    );
    for cell in cells {
        let [min, median, max] = rates(cell);
        assert!(0.0 < min && min <= median && median <= max, "{cell}");
        assert!(cell["cpu_us"]["median"].as_f64() > Some(0.0), "{cell}");
        let limit = cell["limit"].as_str().unwrap();
        assert!(["load", "gateway", "shared cores", "neither"].contains(&limit), "{cell}");
        assert!(limit == "load" || cell["extrapolated"] == true, "{cell}");
    }
}

#[test]
fn errors_name_the_flag() {
    for (args, parts) in [
        (&["--cores", "999"][..], &["--cores: core 999 is not available", "expected any of"][..]),
        (&["--server-cores", "999"], &["--server-cores: core 999"]),
        (&["-d", "0s"], &["-d: invalid value `0ns`: expected 1ms to 1h"]),
        (&["--json", "file"], &["--json", "file", "possible values: -"]),
    ] {
        let ended = Weir::run(&[&["calibrate", "--quick"], args].concat());
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(parts.iter().all(|part| ended.stderr.contains(part)), "{args:?}: {}", ended.stderr);
    }
    let ended = Weir::run(&["calibrate", "--quick", "-d", "1ms", "--out", "/proc/nothing/here"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("--out: cannot write /proc/nothing/here"), "{}", ended.stderr);
}

/// The processes started by `pid` and not reaped.
fn children(pid: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn an_interrupted_calibration_leaves_no_server_behind() {
    let weir = Weir::spawn(&["calibrate", "--quick", "-d", "300ms"]);
    poll_until(DEADLINE, "the null servers run", || children(weir.pid()).len() == 3);
    let servers = children(weir.pid());
    let ended = weir.stop();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), "weir: interrupted: nothing stored\n"));
    for pid in servers {
        assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "{pid} still runs");
    }
}
