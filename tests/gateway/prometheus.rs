//! A real Prometheus scrapes the gateway, and evaluates the alerts and the queries of the dashboard.

use super::{get, named};
use crate::common::{Client, DEADLINE, Weir, peer, poll_until};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const ALERTS: &str = include_str!("../../deploy/prometheus/alerts.yaml");
const DASHBOARD: &str = include_str!("../../deploy/grafana/weir.json");

/// A running Prometheus; dropping it kills it.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts Prometheus with the alerts and this target; `None` if it is not installed.
    fn start(target: SocketAddr) -> Option<Self> {
        let program = peer("prometheus")?;
        let folder = tempfile::tempdir().unwrap();
        let alerts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus/alerts.yaml");
        let config = format!(
            "global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  evaluation_interval: 200ms\nrule_files:\n  - {}\n\
             scrape_configs:\n  - job_name: weir\n    static_configs:\n      - targets: ['{target}']\n",
            alerts.display()
        );
        let (file, log) = (folder.path().join("prometheus.yml"), folder.path().join("log"));
        fs::write(&file, config).unwrap();
        let mut command = Command::new(program);
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg("--web.listen-address=127.0.0.1:0");
        let stderr = fs::File::create(&log).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        let mut address = None;
        poll_until(DEADLINE, "Prometheus is ready", || {
            let text = fs::read_to_string(&log).unwrap();
            assert!(child.try_wait().unwrap().is_none(), "Prometheus exited: {text}");
            let line = text.lines().find_map(|line| line.split_once("msg=\"Listening on\" address="));
            address = line.and_then(|(_, address)| address.trim().parse().ok());
            address.is_some() && text.contains("Server is ready")
        });
        Some(Self { child, address: address.unwrap(), _folder: folder })
    }

    /// The `data` of the response to an API request.
    ///
    /// # Panics
    /// If the response is an error.
    fn ask(&self, path: &str) -> Value {
        let request = format!("GET /api/v1/{path} HTTP/1.1\r\nHost: prometheus\r\n\r\n");
        let answer = Client::connect(self.address, None).ask(request);
        let mut response: Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(answer.status == 200 && response["status"] == "success", "{path}: {}", answer.text());
        response["data"].take()
    }

    /// The current samples for a query.
    fn query(&self, query: &str) -> Vec<Value> {
        let encode = |byte: u8| match byte {
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        };
        let encoded: String = query.bytes().map(encode).collect();
        match self.ask(&format!("query?query={encoded}"))["result"].take() {
            Value::Array(samples) => samples,
            other => panic!("{query}: {other}"),
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // An error means that the process has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A gateway with a service and a named route, and the address of its metrics.
fn gateway(upstream: SocketAddr) -> (Weir, SocketAddr) {
    let config = format!(
        "workers = 2\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{upstream}'\n\
         [[route]]\nname = 'all'\nservice = 'app'\n[metrics]\nbind = '127.0.0.1:0'\n"
    );
    let weir = Weir::configured(&config, 1);
    let stdout = weir.stdout();
    let metrics = stdout.lines().find_map(|line| line.strip_prefix("metrics on http://")).unwrap();
    let metrics = metrics.parse().unwrap();
    (weir, metrics)
}

/// Each query of the dashboard's panels, over all jobs, instances and services.
fn dashboard_queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries = targets.map(|target| target["expr"].as_str().unwrap().to_owned());
    let variables = [("$__rate_interval", "1m"), ("$job", ".*"), ("$instance", ".*"), ("$service", ".*")];
    queries
        .map(|query| variables.iter().fold(query, |query, (name, value)| query.replace(name, value)))
        .collect()
}

#[test]
fn prometheus_scrapes_the_gateway_and_evaluates_the_alerts() {
    let upstream = named("a");
    let (weir, metrics) = gateway(upstream.address);
    let Some(prometheus) = Prometheus::start(metrics) else { return };
    // `rate` needs two scrapes of a series.
    let quantile = |metric: &str, label: &str| {
        format!("histogram_quantile(0.99, sum by (le, {label}) (rate({metric}_bucket[1m]))) > 0")
    };
    for (metric, label, name) in
        [("weir_service_response_seconds", "service", "app"), ("weir_route_response_seconds", "route", "all")]
    {
        poll_until(DEADLINE, metric, || {
            assert_eq!(get(&weir, "h", "/").status, 200);
            let samples = prometheus.query(&quantile(metric, label));
            samples.iter().any(|sample| sample["metric"][label] == name)
        });
        let count = format!("{metric}_count{{class=\"2xx\",{label}=\"{name}\"}} > 0");
        assert_eq!(prometheus.query(&count).len(), 1, "{count}");
    }
    assert_eq!(prometheus.query("up{job=\"weir\"} == 1").len(), 1);
    let rules = || match prometheus.ask("rules")["groups"][0]["rules"].take() {
        Value::Array(rules) => rules,
        other => panic!("no rules: {other}"),
    };
    poll_until(DEADLINE, "all alerts are evaluated", || {
        rules().iter().all(|rule| rule["health"] != "unknown")
    });
    let rules = rules();
    assert_eq!(rules.len(), ALERTS.matches("- alert: ").count());
    for rule in rules {
        assert_eq!((&rule["health"], &rule["lastError"]), (&"ok".into(), &Value::Null), "{rule}");
    }
    let queries = dashboard_queries();
    assert!(queries.len() > 40, "{queries:?}");
    for query in &queries {
        assert!(!query.contains('$'), "an unknown variable: {query}");
        prometheus.query(query);
    }
    let of_requests = queries.iter().find(|query| query.contains("weir_responses_total")).unwrap();
    assert!(!prometheus.query(of_requests).is_empty(), "{of_requests}");
}
