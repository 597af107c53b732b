//! A probe's findings, from its JSON.

use crate::common::{Ended, Weir};
use serde_json::Value;

/// Runs `weir probe --json -`, which must write only JSON to standard output.
pub(crate) fn report(server: &str, flags: &[&str]) -> Value {
    let Ended { code, stdout, stderr } = Weir::run(&[&["probe", server, "--json", "-"], flags].concat());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    println!("{report:#}");
    report
}

pub(crate) fn version_of<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["versions"].as_array().unwrap().iter().find(|version| version["version"] == name).unwrap()
}

pub(crate) fn offered(report: &Value) -> Vec<&str> {
    let versions = report["versions"].as_array().unwrap().iter();
    versions.filter(|v| v["offered"] == true).map(|v| v["version"].as_str().unwrap()).collect()
}

pub(crate) fn suites<'a>(report: &'a Value, version: &str) -> Vec<&'a str> {
    let suites = version_of(report, version)["suites"].as_array().unwrap().iter();
    suites.map(|suite| suite["name"].as_str().unwrap()).collect()
}

pub(crate) fn iana<'a>(report: &'a Value, version: &str) -> Vec<&'a str> {
    let suites = version_of(report, version)["suites"].as_array().unwrap().iter();
    suites.map(|suite| suite["iana"].as_str().unwrap()).collect()
}

pub(crate) fn list(values: &Value) -> Vec<String> {
    values.as_array().unwrap().iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}

pub(crate) fn sorted(values: &Value) -> Vec<String> {
    let mut list = list(values);
    list.sort();
    list
}

fn resumption<'a>(report: &'a Value, kind: &str) -> &'a Value {
    report["resumptions"].as_array().unwrap().iter().find(|tried| tried["kind"] == kind).unwrap()
}

/// Resumed connections and attempts.
pub(crate) fn resumed(report: &Value, kind: &str) -> (u64, u64) {
    let tried = resumption(report, kind);
    assert_eq!(tried["failed"], 0);
    (tried["resumed"].as_u64().unwrap(), tried["tries"].as_u64().unwrap())
}

pub(crate) fn not_tried<'a>(report: &'a Value, kind: &str) -> &'a str {
    resumption(report, kind)["not_tried"].as_str().unwrap()
}

pub(crate) fn advises(report: &Value, what: &str) -> bool {
    list(&report["advice"]).iter().any(|line| line.contains(what))
}
