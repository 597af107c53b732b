//! Two results of `weir load` side by side. Two single runs allow no verdict.

use super::matching::check_different;
use crate::base::error::{ConfigError, LabError, in_words};
use crate::base::leaves::leaves;
use crate::findings::load_result::{has_requests, is_lower_bound, p95_us};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use weir_load::result::{Cost, LoadResult, Role, SCHEMA};
use weir_report::text::{short, wrap};

/// Two results of `weir load`.
#[derive(Clone, Debug, Serialize)]
pub struct Loads {
    /// Schema version.
    pub schema: u32,
    /// Caveats, to read before any number.
    pub labels: Vec<String>,
    /// The experiment that would give a verdict: a shell command, on two lines.
    pub decide: String,
    /// The first: the denominator.
    pub a: Run,
    /// The second: the numerator.
    pub b: Run,
    /// The options that differ.
    pub differences: Vec<Difference>,
    /// The measured figures.
    pub figures: Vec<Figure>,
}

/// One of the two results.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The result's file.
    pub file: PathBuf,
    /// The first URL requested.
    pub url: String,
    /// The result's validity.
    pub validity: String,
    /// The result's limit.
    pub limit: String,
}

/// An option or property with different values in A and B.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its name in the result's `asked`, or in the result.
    pub what: String,
    /// In A.
    pub a: String,
    /// In B.
    pub b: String,
}

/// A quantity of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The name, in words.
    pub what: String,
    /// The value in A; `None` if unknown.
    pub a: Option<Measured>,
    /// The value in B; `None` if unknown.
    pub b: Option<Measured>,
    /// B divided by A; `None` if a value is unknown or a lower bound, or A is zero.
    pub ratio: Option<f64>,
}

/// A value of one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The value; microseconds for a time.
    pub value: f64,
    /// Whether the value is a minimum, as requests timed out or were never sent.
    pub is_lower_bound: bool,
}

/// Compares two files written by `weir load --json`; `None` if neither path is a file, as for the directories of
/// experiments.
///
/// # Errors
/// A file and a directory; one file twice; an unreadable file; a file that is no result of `weir load`.
pub fn loads(a: &Path, b: &Path) -> Result<Option<Loads>, LabError> {
    let is_file = |path: &&Path| path.exists() && !path.is_dir();
    let Some(file) = [a, b].into_iter().find(is_file) else { return Ok(None) };
    if let Some(directory) = [a, b].into_iter().find(|path| path.is_dir()) {
        let message = format!(
            "not comparable with the directory {}: expected two files of `weir load --json`, or two directories of \
             `weir run` or `weir stacks run`",
            directory.display()
        );
        return Err(ConfigError::new(file.display(), message).into());
    }
    check_different(&[a, b])?;
    Ok(Some(Loads::of([a, b], [&read(a)?, &read(b)?])))
}

impl Loads {
    /// The reason given to `--fail-on`.
    pub const UNDECIDED: &str = "two single runs of weir load have no interval";

    fn of(files: [&Path; 2], results: [&LoadResult; 2]) -> Self {
        let run = |index: usize| Run {
            file: files[index].to_owned(),
            url: results[index].url.clone(),
            validity: results[index].validity.clone(),
            limit: results[index].limit.to_string(),
        };
        let (a, b) = (run(0), run(1));
        let differences = differences(results);
        let labels = labels([&a, &b], &differences);
        Self { schema: 1, labels, decide: decide(results[0]), a, b, differences, figures: figures(results) }
    }

    /// Labels and one line for each figure, at most 100 columns wide.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for label in &self.labels {
            wrap(&mut text, label);
        }
        wrap(&mut text, DECIDES);
        let _ = writeln!(text, "{}", self.decide);
        let _ = writeln!(text, "\n  {:<32} {:>14} {:>14} {:>9}", "", "A", "B", "B/A");
        for Figure { what, a, b, ratio } in &self.figures {
            let ratio = ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}"));
            let _ = writeln!(text, "  {what:<32} {:>14} {:>14} {ratio:>9}", shown(*a), shown(*b));
        }
        text
    }
}

/// A value as shown in tables.
pub(crate) fn shown(measured: Option<Measured>) -> String {
    let Some(Measured { value, is_lower_bound }) = measured else { return "-".into() };
    let bound = if is_lower_bound { ">=" } else { "" };
    // A count has no fraction.
    let value = if value == 0.0 { "0".into() } else { short(value) };
    format!("{bound}{value}")
}

fn read(file: &Path) -> Result<LoadResult, LabError> {
    let stored = |message: String| LabError::Stored { path: file.to_owned(), message };
    let bytes = fs::read(file).map_err(LabError::file(file, "cannot read"))?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| stored("invalid JSON".into()))?;
    if value.get("cells").is_some() {
        return Err(stored("a file of an experiment's result; pass its directory".into()));
    }
    match value.get("schema").and_then(Value::as_u64) {
        Some(schema) if schema == u64::from(SCHEMA) => {}
        Some(other) => {
            return Err(stored(format!(
                "schema: invalid value `{other}`: expected {SCHEMA}, the version this program reads"
            )));
        }
        None => return Err(stored("missing key `schema`; pass a file written by `weir load --json`".into())),
    }
    serde_json::from_value(value).map_err(|error| stored(in_words(&error.to_string())))
}

fn labels(runs: [&Run; 2], differences: &[Difference]) -> Vec<String> {
    let mut labels = Vec::new();
    for (name, run) in ["A", "B"].iter().zip(runs) {
        if let Some(reasons) = run.validity.strip_prefix("invalid: ") {
            labels.push(format!("{name} is invalid, so do not compare it with a valid run: {reasons}"));
        }
    }
    for (name, Run { file, url, limit, .. }) in ["A", "B"].iter().zip(runs) {
        labels.push(format!("{name}: {}, {url}, limit {limit}", file.display()));
    }
    labels.push(
        "No verdict: these are two single runs at different times, without a confidence interval. On a shared machine, \
         noise alone makes two runs of one program differ by 10 % and more, in CPU per request too."
            .into(),
    );
    labels.extend(
        differences.iter().map(|Difference { what, a, b }| format!("Differs: {what}: {a} in A, {b} in B.")),
    );
    if differences.is_empty() {
        labels.push("Both ran with the same options.".into());
    }
    labels
}

const DECIDES: &str = "For a verdict, run one experiment with both in every block: describe each version in \
    targets/NAME/target.toml, then:";

fn decide(first: &LoadResult) -> String {
    let mode = if first.url.starts_with("https") { "h1-h1c" } else { "h1c-h1c" };
    let connections = first.asked.connections;
    format!(
        "  weir run quickstart --set 'target=[\"before\",\"after\"]' \\\n      \
         --set 'baseline=[\"before\"]' --set aa=before --set mode={mode} --set connections={connections} --blocks 12"
    )
}

/// Windows of one length differ by the time it takes to close them.
const WINDOW_TOLERANCE: f64 = 0.1;

fn differences(results: [&LoadResult; 2]) -> Vec<Difference> {
    let [mut a, mut b] = results.map(asked);
    if results[0].asked.tls_versions.is_empty() != results[1].asked.tls_versions.is_empty() {
        // One line, on what was negotiated, is enough.
        for of in [&mut a, &mut b] {
            of.retain(|name, _| !OFFERED.contains(&name.as_str()));
        }
    }
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value = |of: &BTreeMap<String, String>, name: &String| words(of.get(name).map_or("", String::as_str));
    let differing = names.into_iter().filter(|name| a.get(*name) != b.get(*name));
    let mut found: Vec<Difference> = differing
        .map(|name| Difference { what: name.clone(), a: value(&a, name), b: value(&b, name) })
        .collect();
    let [first, second] = results.map(|result| result.window_s);
    if (first / second - 1.0).abs() > WINDOW_TOLERANCE {
        let seconds = |window: f64| format!("{window:.2} s");
        found.push(Difference { what: "window".into(), a: seconds(first), b: seconds(second) });
    }
    found
}

/// The options without a value in a cleartext run.
const OFFERED: [&str; 6] = ["tls_versions", "suites", "groups", "signatures", "alpn", "verified"];

/// The options and the negotiated TLS parameters, by name.
fn asked(result: &LoadResult) -> BTreeMap<String, String> {
    let mut asked = leaves(&result.asked);
    asked.insert("url".into(), result.url.clone());
    asked.insert("weir".into(), result.weir.clone());
    let negotiated: BTreeSet<String> = result
        .handshakes
        .negotiated
        .iter()
        .map(|one| format!("{} {} {}", one.version, one.suite, one.group.as_deref().unwrap_or("-")))
        .collect();
    asked.insert("negotiated".into(), negotiated.into_iter().collect::<Vec<_>>().join(", "));
    asked
}

/// A JSON value as plain text.
fn words(json: &str) -> String {
    match json.trim_matches(['[', ']']).replace('"', "").replace(',', ", ") {
        none if none.is_empty() || none == "null" => "none".into(),
        words => words,
    }
}

fn figures(results: [&LoadResult; 2]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut add = |what: &str, read: &dyn Fn(&LoadResult) -> Option<Measured>| {
        let [a, b] = results.map(read);
        // A figure that both lack gets no line.
        if a.is_some() || b.is_some() {
            figures.push(Figure { what: what.into(), a, b, ratio: ratio(a, b) });
        }
    };
    let with_requests = |load: &LoadResult, value: f64| has_requests(load).then(|| exactly(value));
    add("requests per second", &|load| with_requests(load, load.requests_per_second));
    add("handshakes per second", &|load| {
        (load.handshakes.in_window > 0).then(|| exactly(load.handshakes.per_second))
    });
    for (side, cost) in SIDES {
        add(&format!("{side} CPU per request, us"), &|load| {
            cost(load)?.cpu_us_per_request.filter(|_| has_requests(load)).map(exactly)
        });
        add(&format!("{side} CPU per handshake, us"), &|load| cost(load)?.cpu_us_per_handshake.map(exactly));
    }
    let percentile = |load: &LoadResult, us: Option<f64>| {
        us.map(|value| Measured { value, is_lower_bound: is_lower_bound(&load.response, us) })
    };
    add("response p50, us", &|load| percentile(load, load.response.p50_us));
    add("response p95, us", &|load| percentile(load, p95_us(&load.response)));
    add("response p99, us", &|load| percentile(load, load.response.p99_us));
    add("errors", &|load| Some(exactly(load.errors.values().sum::<u64>() as f64)));
    add("errors, % of completed", &|load| Some(exactly(load.error_ratio * 100.0)));
    figures
}

/// Each side, and its CPU cost.
type Side = (&'static str, fn(&LoadResult) -> Option<&Cost>);

const SIDES: [Side; 3] = [
    ("gateway", |load| of_role(load, Role::Gateway)),
    ("origin", |load| of_role(load, Role::Origin)),
    ("load", |load| Some(&load.engine.cost)),
];

fn of_role(load: &LoadResult, role: Role) -> Option<&Cost> {
    load.servers.iter().find(|server| server.role == role).map(|server| &server.cost)
}

fn exactly(value: f64) -> Measured {
    Measured { value, is_lower_bound: false }
}

fn ratio(a: Option<Measured>, b: Option<Measured>) -> Option<f64> {
    let (a, b) = (a?, b?);
    (!a.is_lower_bound && !b.is_lower_bound && a.value > 0.0).then(|| b.value / a.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::gateway::testing::load_result;
    use weir_load::result::Negotiated;

    fn both(change: impl FnOnce(&mut LoadResult, &mut LoadResult)) -> Loads {
        let (mut a, mut b) = (load_result(), load_result());
        change(&mut a, &mut b);
        Loads::of([Path::new("a.json"), Path::new("b.json")], [&a, &b])
    }

    fn figure<'a>(loads: &'a Loads, what: &str) -> &'a Figure {
        let found = loads.figures.iter().find(|figure| figure.what == what);
        found.unwrap_or_else(|| panic!("no {what} in {:?}", loads.figures))
    }

    #[test]
    fn ratios_are_shown_without_a_verdict() {
        let loads = both(|a, b| {
            (a.requests_per_second, b.requests_per_second) = (20_000.0, 19_000.0);
            (a.response.p99_us, b.response.p99_us) = (Some(200.0), None);
            a.response.p95_us = Some(100.0);
            b.response.p95_us = Some(150.0);
        });
        assert_eq!(figure(&loads, "requests per second").ratio, Some(0.95));
        assert_eq!(figure(&loads, "response p95, us").ratio, Some(1.5));
        assert_eq!(figure(&loads, "response p99, us").ratio, None);
        assert_eq!(figure(&loads, "errors").ratio, None, "nothing over nothing");
        let text = loads.text();
        for part in ["No verdict", "10 %", "weir run quickstart ", "Both ran with the same options.", "0.950"]
        {
            assert!(text.contains(part), "no `{part}` in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn each_differing_option_is_named() {
        let loads = both(|a, b| {
            a.url = "http://127.0.0.1:1/x".into();
            b.url = "https://127.0.0.1:1/y".into();
            b.asked.connections = 7;
            b.asked.rate = Some(100.0);
            b.asked.groups = vec!["x25519".into(), "p-256".into()];
            b.window_s = a.window_s * 2.0;
        });
        let named: Vec<&str> = loads.differences.iter().map(|one| one.what.as_str()).collect();
        for name in ["url", "connections", "rate", "groups", "window"] {
            assert!(named.contains(&name), "no {name} in {named:?}");
        }
        let text = loads.text();
        assert!(text.contains("Differs: groups: none in A, x25519, p-256 in B."), "{text}");
        assert!(text.contains("http://127.0.0.1:1/x in A, https://127.0.0.1:1/y in B"), "{text}");
        assert!(!text.contains("the same options"), "{text}");
    }

    #[test]
    fn cleartext_beside_tls_is_one_difference_and_not_one_for_each_list() {
        let loads = both(|a, b| {
            a.asked.tls_versions.clear();
            a.handshakes.negotiated.clear();
            b.asked.tls_versions = vec!["1.3".into()];
            b.asked.suites = vec!["aes128-gcm-sha256".into()];
            let (version, suite) = ("1.3".to_owned(), "aes128-gcm-sha256".to_owned());
            b.handshakes.negotiated = vec![Negotiated { version, suite, ..Negotiated::default() }];
        });
        let named: Vec<&str> = loads.differences.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(named, ["negotiated"]);
    }

    #[test]
    fn an_invalid_result_is_named_first() {
        let loads = both(|_, b| b.validity = "invalid: errors (20 status)".into());
        assert!(
            loads
                .text()
                .starts_with("B is invalid, so do not compare it with a valid run: errors (20 status)\n")
        );
    }

    #[test]
    fn a_lower_bound_has_no_ratio() {
        let loads = both(|a, _| {
            (a.response.p99_us, a.response.censored, a.response.censored_from_us) = (Some(2e6), 9, Some(1e6));
        });
        let p99 = figure(&loads, "response p99, us");
        assert_eq!((shown(p99.a).as_str(), p99.ratio), (">=2000000", None));
    }

    #[test]
    fn what_is_no_pair_of_results_is_rejected_in_words() {
        let folder = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).expect("is written");
            file
        };
        let good = serde_json::to_value(load_result()).expect("serialises");
        let file = write("good.json", &good.to_string());
        let mut wrong = good.clone();
        wrong["requests"] = "many".into();
        let mut old = good;
        old["schema"] = 1.into();
        let nothing = folder.path().join("nothing.json");
        for (other, why) in [
            (folder.path().to_owned(), "not comparable with the directory"),
            (file.clone(), "good.json"),
            (nothing.clone(), "No such file"),
            (write("binary", "\u{0}\u{1}"), "invalid JSON"),
            (write("summary.json", "{\"schema\": 1, \"cells\": []}"), "pass its directory"),
            (write("other.json", "{}"), "missing key `schema`"),
            (write("old.json", &old.to_string()), "schema: invalid value `1`: expected 2"),
            (write("wrong.json", &wrong.to_string()), "expected a whole number"),
        ] {
            let error = loads(&file, &other).expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(loads(folder.path(), &nothing).expect("is not ours").is_none());
    }
}
