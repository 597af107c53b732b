//! A strict parser for Prometheus' text format.

use super::named;
use crate::common::{Certificates, Client, Weir};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A family's type, and its samples by name and labels.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    samples: BTreeMap<(String, Labels), f64>,
}

type Labels = Vec<(String, String)>;

/// Parses an exposition. Errors: a line and its fault.
fn parse(text: &str) -> Result<BTreeMap<String, Family>, String> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let (mut described, mut current) = (BTreeSet::new(), String::new());
    if !text.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    for line in text.split_terminator('\n') {
        let wrong = |what: &str| format!("{what}: {line:?}");
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or_else(|| wrong("no help"))?;
            if !is_name(name, true) || help.is_empty() || help.contains('\\') || !described.insert(name) {
                return Err(wrong("a bad or second help"));
            }
            current = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or_else(|| wrong("no type"))?;
            if name != current || !["counter", "gauge", "histogram"].contains(&kind) {
                return Err(wrong("a type without its help, or an unknown one"));
            }
            let family = Family { kind: kind.to_owned(), ..Family::default() };
            if families.insert(name.to_owned(), family).is_some() {
                return Err(wrong("a second type"));
            }
        } else {
            let (name, labels, value) = sample(line).map_err(|what| wrong(&what))?;
            let family = families.get_mut(&current).ok_or_else(|| wrong("no family"))?;
            let suffix = name.strip_prefix(current.as_str()).ok_or_else(|| wrong("outside of its family"))?;
            let fits = match &*family.kind {
                "histogram" => ["_bucket", "_sum", "_count"].contains(&suffix),
                "counter" => suffix.is_empty() && name.ends_with("_total") && value >= 0.0,
                _ => suffix.is_empty() && !name.ends_with("_total"),
            };
            if !fits {
                return Err(wrong("not as its type"));
            }
            if family.samples.insert((name.to_owned(), labels), value).is_some() {
                return Err(wrong("a second time"));
            }
        }
    }
    Ok(families)
}

/// Parses a sample line into name, labels and value.
fn sample(line: &str) -> Result<(&str, Labels, f64), String> {
    let at = line.find(['{', ' ']).ok_or("no value")?;
    let (name, mut rest) = line.split_at(at);
    if !is_name(name, true) {
        return Err("a bad name".to_owned());
    }
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"").ok_or("no label")?;
            let (value, after) = unescape(after)?;
            if !is_name(label, false) || labels.iter().any(|(known, _)| known == label) {
                return Err("a bad or second label".to_owned());
            }
            labels.push((label.to_owned(), value));
            rest = match after.strip_prefix('}') {
                Some(after) => break rest = after,
                None => after.strip_prefix(',').ok_or("no end of the labels")?,
            };
        }
        labels.sort();
    }
    let value = rest.strip_prefix(' ').ok_or("no value")?;
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || b"+-.e".contains(&byte));
    match value.parse() {
        Ok(value) if is_number => Ok((name, labels, value)),
        _ => Err("no number".to_owned()),
    }
}

/// Unescapes a label's value up to its closing quote; also returns the remaining text.
fn unescape(text: &str) -> Result<(String, &str), String> {
    let (mut value, mut parts) = (String::new(), text.char_indices());
    while let Some((at, part)) = parts.next() {
        match part {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => value.push(match parts.next() {
                Some((_, 'n')) => '\n',
                Some((_, part @ ('\\' | '"'))) => part,
                _ => return Err("a bad escape".to_owned()),
            }),
            part => value.push(part),
        }
    }
    Err("no end of a value".to_owned())
}

fn is_name(name: &str, is_metric: bool) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || is_metric && byte == b':';
    !name.is_empty() && name.bytes().all(fits) && !name.as_bytes()[0].is_ascii_digit()
}

impl Family {
    /// Checks that buckets are cumulative and that the last one counts all samples.
    fn check_histogram(&self, name: &str) {
        // Grouped by the labels other than the bound.
        let mut histograms: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
        for ((_, labels), count) in self.samples.iter().filter(|((name, _), _)| name.ends_with("_bucket")) {
            let (bounds, labels): (Labels, Labels) =
                labels.iter().cloned().partition(|(label, _)| label == "le");
            histograms.entry(labels).or_default().push((bounds[0].1.parse().unwrap(), *count));
        }
        for (labels, mut buckets) in histograms {
            buckets.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{name}: {buckets:?}");
            let (bound, all) = buckets.last().unwrap();
            assert!(bound.is_infinite() && *all == self.samples[&(format!("{name}_count"), labels.clone())]);
            assert!(self.samples.contains_key(&(format!("{name}_sum"), labels)));
        }
    }
}

/// The families of a running gateway.
fn scrape(weir: &Weir) -> BTreeMap<String, Family> {
    let answer = weir.ask_admin("GET /metrics");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.fields("content-type"), ["text/plain; version=0.0.4; charset=utf-8"]);
    let families = parse(answer.text()).unwrap_or_else(|why| panic!("{why}"));
    for (name, family) in families.iter().filter(|(_, family)| family.kind == "histogram") {
        family.check_histogram(name);
    }
    families
}

fn value(families: &BTreeMap<String, Family>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let family = families.get(name).unwrap_or_else(|| panic!("no {name}"));
    *family.samples.get(&(name.to_owned(), labels)).unwrap_or_else(|| panic!("{family:#?}"))
}

/// Regression test: a quote or newline in the path of a socket or certificate made the whole scrape invalid.
#[test]
fn all_of_it_is_valid_whatever_names_and_paths_are() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a\"b\\c\nd{e=\"f\"} ü");
    fs::create_dir(&odd).unwrap();
    let certificates = Certificates::new();
    for (from, to) in [(&certificates.cert, "chain.pem"), (&certificates.key, "key.pem")] {
        fs::copy(from, odd.join(to)).unwrap();
    }
    fs::write(odd.join("secrets"), format!("{}\n", "ab".repeat(32))).unwrap();
    let quoted = |name: &str| serde_json::to_string(odd.join(name).to_str().unwrap()).unwrap();
    let socket = odd.join("s").display().to_string();
    let server = serde_json::to_string(&format!("unix:{socket}")).unwrap();
    let config = format!(
        "workers = 2\n[listener.web]\nbind = '127.0.0.1:0'\ntls.ticket_secrets = {}\n\
         [[certificate]]\nchain = {}\nkey = {}\n[service.app]\nservers = {server}\n\
         [[route]]\nservice = 'app'\n[admin]\nbind = '127.0.0.1:0'\n",
        quoted("secrets"),
        quoted("chain.pem"),
        quoted("key.pem")
    );
    let weir = Weir::configured(&config, 1);
    let mut client = Client::connect(weir.address(), Some(certificates.session()));
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").status, 502);
    let families = scrape(&weir);
    let of_service = [("class", "5xx"), ("service", "app")];
    assert_eq!(
        families["weir_service_response_seconds"].samples[&(
            "weir_service_response_seconds_count".to_owned(),
            of_service.map(|(a, b)| (a.to_owned(), b.to_owned())).into()
        )],
        1.0
    );
    let of_server = [("server", &*format!("unix:{socket}")), ("service", "app")];
    assert_eq!(value(&families, "weir_server_up", &of_server), 1.0);
    let file = |name: &str| odd.join(name).to_str().unwrap().to_owned();
    assert!(value(&families, "weir_certificate_not_after_seconds", &[("file", &file("chain.pem"))]) > 1e9);
    assert_eq!(value(&families, "weir_ticket_secrets_stale", &[("file", &file("secrets"))]), 0.0);
}

#[test]
fn the_process_and_its_program_are_described() {
    let weir = Weir::configured("[listener.web]\nbind = '127.0.0.1:0'\n[admin]\nbind = '127.0.0.1:0'\n", 1);
    let families = scrape(&weir);
    let of = |name: &str| value(&families, name, &[]);
    assert!(of("process_resident_memory_bytes") > 1e6);
    assert!(of("process_virtual_memory_bytes") >= of("process_resident_memory_bytes"));
    assert!((3.0..of("process_max_fds")).contains(&of("process_open_fds")));
    assert!(of("process_cpu_seconds_total") >= 0.0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!((now - 3600.0..now + 1.0).contains(&of("process_start_time_seconds")));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(value(&families, "weir_build_info", &[("version", version)]), 1.0);
}

#[test]
fn bytes_are_counted_of_connections_that_go_on_and_of_those_that_have_ended() {
    let upstream = named("a");
    let config = format!(
        "workers = 2\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n\
         [admin]\nbind = '127.0.0.1:0'\n",
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    let body = "x".repeat(100_000);
    let request = format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut expected = [0, 0];
    for persists in [true, false, true] {
        let mut client = Client::connect(weir.address(), None);
        let answer = client.ask(&request);
        expected[0] += request.len();
        expected[1] += answer.head.len() + answer.raw_body.len();
        let families = scrape(&weir);
        let of = |name: &str, with: &str| value(&families, name, &[("with", with)]) as usize;
        assert_eq!(of("weir_received_bytes_total", "client"), expected[0]);
        assert_eq!(of("weir_sent_bytes_total", "client"), expected[1]);
        // The heads differ.
        let near = |found: usize, expected: usize| found.abs_diff(expected) < 2000;
        assert!(near(of("weir_sent_bytes_total", "server"), expected[0]));
        assert!(near(of("weir_received_bytes_total", "server"), expected[1]));
        if persists {
            std::mem::forget(client);
        }
    }
}

#[test]
fn the_parser_refuses_what_prometheus_refuses() {
    let family = "# HELP a_total Help.\n# TYPE a_total counter\n";
    assert!(parse(&format!("{family}a_total{{b=\"c\\\"\\n\\\\\"}} 1\na_total 2\n")).is_ok());
    for wrong in [
        "a_total{b=\"c\"d\"} 1\n",
        "a_total{b=\"c\nd\"} 1\n",
        "a_total{b=\"\\x\"} 1\n",
        "a_total{b=\"c} 1\n",
        "a_total{b=c} 1\n",
        "a_total{1b=\"c\"} 1\n",
        "a_total{b=\"c\",b=\"c\"} 1\n",
        "a_total{b=\"c\",} 1\n",
        "a_total{} 1\n",
        "a_total one\n",
        "a_total\n",
        "a_total 1",
        "b_total 1\n",
        "a_total -1\n",
        "a_total 1\na_total 2\n",
        "a_total 1 \n",
        "\n",
        "# HELP a_total Again.\n",
        "# TYPE a_total counter\n",
        "# TYPE b counter\n",
        "# HELP b Help.\n# TYPE b text\n",
        "# HELP b Help.\n# TYPE b counter\nb 1\n",
        "# A remark.\n",
    ] {
        assert!(parse(&format!("{family}{wrong}")).is_err(), "{wrong:?}");
    }
}
