//! Checks `deploy/prometheus` and `deploy/grafana`: queries use only metrics, labels and label values that exist, and
//! docs/OPERATING.md describes each alert.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const ALERTS: &str = include_str!("../../../deploy/prometheus/alerts.yaml");
const DASHBOARD: &str = include_str!("../../../deploy/grafana/weir.json");
/// The source of the metrics' names: other tests compare its table with the metrics page.
const METRICS: &str = include_str!("../../../docs/gateway/monitoring.md");
const OPERATING: &str = include_str!("../../../docs/OPERATING.md");
const PAGE: &str = include_str!("../testdata/metrics.txt");

/// Labels that Prometheus itself adds to each sample.
const ADDED: [&str; 2] = ["job", "instance"];
/// Labels whose values are names from the configuration.
const NAMES: [&str; 6] = ["service", "server", "route", "listener", "file", "line"];
/// Functions and operators in the queries, which are not names of metrics.
const WORDS: [&str; 8] = ["sum", "rate", "increase", "histogram_quantile", "time", "and", "or", "offset"];

/// Each metric's kind and labels.
fn metrics() -> BTreeMap<&'static str, (&'static str, Vec<&'static str>)> {
    let rows = METRICS.lines().filter_map(|line| line.strip_prefix("| `"));
    let parsed = rows.filter_map(|row| {
        let (name, rest) = row.split_once("` | ")?;
        let (kind, rest) = rest.split_once(" | ")?;
        let (labels, _) = rest.split_once(" | ")?;
        let is_kind = ["counter", "gauge", "histogram"].contains(&kind);
        is_kind.then(|| (name, (kind, labels.split(", ").map(|label| label.trim_matches('`')).collect())))
    });
    parsed.collect()
}

/// The names and expressions of the alerts. An expression is on the line of its key, or on indented lines after it.
fn alerts() -> Vec<(&'static str, String)> {
    let mut alerts = Vec::new();
    for alert in ALERTS.split("- alert: ").skip(1) {
        let (name, rest) = alert.split_once('\n').unwrap();
        let (_, expr) = rest.split_once("expr: ").unwrap();
        let (first, below) = expr.split_once('\n').unwrap();
        let expr = match first {
            ">-" => {
                let lines = below.lines().take_while(|line| line.starts_with("          "));
                lines.map(str::trim).collect::<Vec<_>>().join(" ")
            }
            first => first.to_owned(),
        };
        alerts.push((name, expr));
    }
    alerts
}

/// All queries of the dashboard: those of its panels, and those of its variables.
fn dashboard_queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get("expr").and_then(Value::as_str).map(str::to_owned));
            if let Some(definition) = object.get("definition").and_then(Value::as_str) {
                let query = definition.strip_prefix("label_values(").and_then(|rest| rest.rsplit_once(", "));
                found.push(query.expect(definition).0.to_owned());
            }
            object.values().for_each(|value| dashboard_queries(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| dashboard_queries(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A metric in a query, with the conditions on its labels: label, operator, value.
type Selector<'a> = (&'a str, Vec<(&'a str, &'a str, &'a str)>);

/// The selectors of a query, and the labels that it groups by.
fn parse(query: &str) -> (Vec<Selector<'_>>, Vec<&str>) {
    let (mut selectors, mut labels) = (Vec::new(), Vec::new());
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end.max(first.len_utf8()));
        rest = after;
        if first == '[' {
            // A range such as `[5m]` names no metric.
            rest = rest.split_once(']').expect("an end of a duration").1;
        } else if first.is_ascii_alphabetic() {
            let next = rest.trim_start();
            if ["by", "ignoring", "on"].contains(&word) {
                let (list, after) = next.strip_prefix('(').unwrap().split_once(')').unwrap();
                labels.extend(list.split(", "));
                rest = after;
            } else if !WORDS.contains(&word) {
                let (conditions, after) = match rest.strip_prefix('{') {
                    Some(inner) => inner.split_once('}').unwrap(),
                    None => ("", rest),
                };
                rest = after;
                selectors.push((word, conditions.split_terminator(',').map(condition).collect()));
            }
        }
    }
    (selectors, labels)
}

fn condition(text: &str) -> (&str, &str, &str) {
    let (label, value) = text.split_once('"').expect(text);
    let at = label.find(['=', '!']).expect(text);
    let (label, operator) = label.split_at(at);
    (label, operator, value.strip_suffix('"').expect(text))
}

/// The metric that a sample of this name belongs to; `None` if the name is unknown.
fn family<'a>(name: &'a str, all: &BTreeMap<&str, (&str, Vec<&str>)>) -> Option<&'a str> {
    match all.get(name) {
        // A histogram's samples have suffixes: `_bucket`, `_sum` and `_count`.
        Some((kind, _)) => (*kind != "histogram").then_some(name),
        None => {
            let family =
                ["_bucket", "_sum", "_count"].into_iter().find_map(|part| name.strip_suffix(part))?;
            all.get(family).filter(|(kind, _)| *kind == "histogram").map(|_| family)
        }
    }
}

/// The faults of a query.
fn faults(query: &str) -> Vec<String> {
    let all = metrics();
    let (selectors, grouped) = parse(query);
    let mut faults = Vec::new();
    let mut labels_of_all: BTreeSet<&str> = ADDED.into();
    for (name, conditions) in selectors {
        let Some(family) = family(name, &all) else {
            faults.push(format!("there is no {name}"));
            continue;
        };
        let labels = &all[family].1;
        labels_of_all.extend(labels);
        for (label, operator, value) in conditions {
            if !labels.contains(&label) {
                if !ADDED.contains(&label) {
                    faults.push(format!("{family} has no label {label}"));
                }
                continue;
            }
            let is_recorded = PAGE.contains(&format!("# TYPE {family} "));
            if value.contains('$') || NAMES.contains(&label) || !is_recorded {
                continue;
            }
            let values: Vec<_> =
                if operator.contains('~') { value.split('|').collect() } else { vec![value] };
            for value in values {
                let has =
                    |line: &str| line.starts_with(name) && line.contains(&format!("{label}=\"{value}\""));
                if !PAGE.lines().any(has) {
                    faults.push(format!("{family} has no {label} {value}"));
                }
            }
        }
    }
    let unknown = grouped.into_iter().filter(|label| !labels_of_all.contains(label));
    faults.extend(unknown.map(|label| format!("no metric of the query has the label {label}")));
    faults
}

#[test]
fn queries_are_about_metrics_that_exist() {
    let mut queries: Vec<_> = alerts().into_iter().map(|(_, expr)| expr).collect();
    assert_eq!(queries.len(), ALERTS.matches("expr:").count());
    let of_alerts = queries.len();
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    dashboard_queries(&dashboard, &mut queries);
    assert!(of_alerts > 20 && queries.len() > of_alerts + 40, "{} queries", queries.len());
    for query in queries {
        assert!(!parse(&query).0.is_empty(), "no metric in {query}");
        assert_eq!(faults(&query), [""; 0], "{query}");
    }
}

#[test]
fn wrong_queries_are_found() {
    for (query, fault) in [
        ("rate(weir_request_total[5m]) > 0", "there is no weir_request_total"),
        ("summ(weir_requests_total)", "there is no summ"),
        ("weir_request_seconds", "there is no weir_request_seconds"),
        ("weir_requests_total_count", "there is no weir_requests_total_count"),
        ("sum by (class) (weir_requests_total)", "no metric of the query has the label class"),
        ("weir_server_up{host=\"a\"}", "weir_server_up has no label host"),
        ("weir_responses_total{class=\"6xx\"}", "weir_responses_total has no class 6xx"),
        ("weir_descriptors{kind=~\"clients|client\"}", "weir_descriptors has no kind client"),
    ] {
        assert_eq!(faults(query), [fault], "{query}");
    }
    assert_eq!(faults("1 + rate(weir_request_seconds_sum{job=\"a\"}[5m] offset 1d)"), [""; 0]);
}

/// The table in docs/OPERATING.md lists all alerts in the order of deploy/prometheus/alerts.yaml. A row may describe
/// several alerts.
#[test]
fn alerts_are_documented() {
    let (_, section) = OPERATING.split_once("\n## Alerts\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let names = cells.flat_map(|(names, _)| names.split(", ")).map(|name| name.trim_matches('`'));
    let documented: Vec<_> = names.filter(|name| name.starts_with("Weir")).collect();
    let alerts: Vec<_> = alerts().into_iter().map(|(name, _)| name).collect();
    assert_eq!(documented, alerts);
}

#[test]
fn alerts_have_a_severity_and_a_next_step() {
    for alert in ALERTS.split("- alert: ").skip(1) {
        let severity = alert.split_once("severity: ").unwrap().1.lines().next().unwrap();
        assert!(["critical", "warning", "info"].contains(&severity), "{alert}");
        let summary = alert.split_once("summary: ").unwrap().1.lines().next().unwrap();
        // A summary states the problem and then the next step.
        assert!(summary.contains(". ") || summary.contains("; "), "{summary}");
    }
}
