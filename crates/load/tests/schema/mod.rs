//! The engine's actual output against docs/load-result.schema.json and docs/RESULT.md.

mod histograms;

use histograms::hdr_v2;
use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;
use weir_load::result::{
    Asked, BusyThread, ByVersion, Ceiling, Cost, Counters, EngineCost, GrpcFigures, Handshakes, Http2Figures,
    Latency, LoadResult, Negotiated, Pacer, PeerSettings, PhaseTime, SCHEMA, Second, ServerCost, Step,
    Tickets, Unsent, VersionFigures, VersionSecond, WorkerCost,
};
use weir_load::{ErrorClass, Metric, Options, PerConnection, Schedule, run};
use weir_origin::{Origin, Settings};

const SCHEMA_TEXT: &str = include_str!("../../../../docs/load-result.schema.json");
const PAGE: &str = include_str!("../../../../docs/RESULT.md");

fn schema() -> Value {
    serde_json::from_str(SCHEMA_TEXT).unwrap()
}

fn validator() -> Validator {
    jsonschema::draft202012::new(&schema()).unwrap()
}

/// Where a value violates the schema, and why.
fn faults(validator: &Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[track_caller]
fn assert_fits(value: &Value) {
    assert_eq!(faults(&validator(), value), Vec::<String>::new(), "{value:#}");
}

#[test]
fn the_schema_itself_is_valid() {
    assert!(jsonschema::draft202012::meta::is_valid(&schema()));
    assert_eq!(schema()["properties"]["schema"]["const"], json!(SCHEMA));
}

/// Runs the engine against a test server in this process, with the options changed by `change`, over TLS or not.
fn measured(tls: bool, change: impl FnOnce(&mut Options)) -> Value {
    let listen = if tls { "https://127.0.0.1:0" } else { "http://127.0.0.1:0" }.parse().unwrap();
    let settings = Settings { listen: vec![listen], workers: Some(1), ..Settings::default() };
    let origin = Origin::bind(&settings).unwrap();
    let url = format!("{}/bytes/100", origin.endpoints().next().unwrap());
    let mut options = Options::new(url.parse().unwrap());
    options.tls.ca = origin.ca_file();
    options.connections = 4;
    options.phases.warmup = Duration::from_millis(20);
    options.phases.window = Duration::from_millis(200);
    change(&mut options);
    let handle = origin.handle();
    let thread = thread::spawn(move || origin.run().unwrap());
    let result = run(&options, &std::sync::mpsc::channel().1, |_| {}).unwrap();
    handle.drain();
    thread.join().unwrap();
    assert!(result.response.count > 0 || !result.errors.is_empty(), "{result:?}");
    serde_json::to_value(result).unwrap()
}

#[test]
fn a_closed_loop_fits() {
    assert_fits(&measured(false, |_| {}));
}

#[test]
fn an_open_loop_fits() {
    let result = measured(false, |options| {
        options.schedule = Schedule::constant(500.0, options.phases.window);
    });
    assert!(result["pacer"]["planned"].as_u64().unwrap() > 0, "{result:#}");
    assert_fits(&result);
}

#[test]
fn both_versions_fit() {
    let result = measured(true, |options| {
        (options.http, options.workers, options.streams) = ("1=1,2=1".parse().unwrap(), 2, 3);
    });
    assert_eq!(result["asked"]["http"], "1.1=1,2=1");
    assert!(result["by_version"]["http2"]["requests"].as_u64().unwrap() > 0, "{result:#}");
    assert_fits(&result);
}

#[test]
fn new_tls_connections_fit() {
    let result = measured(true, |options| {
        options.policy.per_connection = PerConnection::Requests { least: 1, most: 1 };
        options.policy.resume = 100.0;
    });
    assert!(result["handshakes"]["negotiated"].as_array().unwrap().len() > 1, "{result:#}");
    assert_fits(&result);
}

#[test]
fn errors_fit() {
    let result = measured(false, |options| options.requests[0].expect.status = Some(404));
    assert!(result["errors"]["status"].as_u64().unwrap() > 0, "{result:#}");
    assert_fits(&result);
}

fn latency() -> Latency {
    let times: Vec<u64> = (1..=20_000).map(|n| n * 1000).collect();
    Latency {
        count: 20_000,
        mean_us: 10_000.5,
        sd_us: 5773.5,
        p50_us: Some(10_000.0),
        p90_us: Some(18_000.0),
        p95_us: Some(19_000.0),
        p99_us: Some(19_800.0),
        p999_us: Some(19_980.0),
        max_us: 20_000.0,
        censored: 3,
        censored_from_us: Some(19_998.0),
        hdr_v2: hdr_v2(&times),
    }
}

fn cost() -> Cost {
    Cost {
        cpu_us: 1.9e6,
        cpu_us_per_request: Some(95.0),
        cpu_us_per_handshake: Some(95.0),
        utilisation: 0.95,
        cores: 2,
    }
}

fn counters() -> Counters {
    Counters {
        rss_end_kib: Some(1),
        voluntary_switches: Some(1),
        involuntary_switches: Some(1),
        minor_faults: Some(1),
        major_faults: Some(1),
        open_files: Some(1),
    }
}

fn version_second() -> VersionSecond {
    VersionSecond { requests: 2, errors: 1, p50_us: Some(61.0), p99_us: Some(120.0) }
}

fn version() -> VersionFigures {
    VersionFigures {
        connections: 3,
        workers: 1,
        requests: 2,
        errors: [("reset".to_string(), 1)].into(),
        response: latency(),
        alpn: [("h2".to_string(), 3), ("none".to_string(), 1)].into(),
        ..VersionFigures::default()
    }
}

/// Every field has a value, and every list and map an entry.
fn full() -> LoadResult {
    let text = str::to_string;
    let kinds = ["resume-1.2-id", "resume-1.2-ticket", "resume-1.3-psk"];
    LoadResult {
        schema: SCHEMA,
        weir: text("0.1.0"),
        url: text("https://[::1]:8443/"),
        asked: Asked {
            connections: 64,
            http: text("2"),
            streams: 8,
            stream_window: Some(65_536),
            messages: Some(1),
            expect_messages: Some(2),
            workers: 2,
            cores: vec![1, 3],
            rate: Some(1000.0),
            arrivals: Some(text("poisson")),
            think_us: 1.5,
            seed: u64::MAX,
            error_budget_percent: 0.1,
            mix: 2,
            requests_per_connection: text("5-10"),
            resume_percent: 30.0,
            close: text("rst"),
            sources: vec![text("127.0.0.2")],
            tls_versions: vec![text("1.2"), text("1.3")],
            suites: vec![text("aes128-gcm-sha256")],
            groups: vec![text("x25519")],
            signatures: vec![text("ecdsa-p256-sha256")],
            alpn: vec![text("http/1.1")],
            verified: true,
        },
        partial: true,
        phases: ["opening", "warm-up", "settle", "window", "drain"]
            .map(|name| PhaseTime { name: text(name), seconds: 1.0 })
            .into(),
        window_s: 1.0,
        window_boot_s: Some(12_345.5),
        requests: 20_000,
        requests_per_second: 20_000.0,
        bytes_received: 1,
        bytes_sent: 1,
        errors: ErrorClass::ALL.map(|(_, name)| (text(name), 1)).into(),
        error_examples: ErrorClass::ALL.map(|(_, name)| (text(name), text("words"))).into(),
        error_ratio: 0.01,
        unsent: Unsent { count: 3, oldest_us: 2e6, mean_us: 1e6 },
        answered_in_all: 20_001,
        response: latency(),
        service: latency(),
        first_byte: latency(),
        connect: latency(),
        handshake: kinds.iter().chain(&["full"]).map(|kind| (text(kind), latency())).collect(),
        steps: vec![Step { rate: 1000.0, from_s: 0.0, to_s: 1.0, planned: 1000, response: latency() }],
        seconds: vec![Second {
            p50_us: Some(61.0),
            p95_us: Some(110.0),
            p99_us: Some(120.0),
            by_version: Some(ByVersion { http1: version_second(), http2: version_second() }),
            ..Second::default()
        }],
        connections_opened: 2,
        connections_opened_in_window: 1,
        handshakes: Handshakes {
            resumed: kinds.map(|kind| (text(kind), 1)).into(),
            tickets: [(text("full"), Tickets { least: 1, most: 2 })].into(),
            negotiated: vec![Negotiated {
                version: text("1.3"),
                suite: text("aes128-gcm-sha256"),
                group: Some(text("x25519")),
                signature: Some(text("ecdsa-p256-sha256")),
                kind: text("full"),
                hello_retry: true,
                alpn: Some(text("http/1.1")),
                chain_certificates: Some(2),
                chain_bytes: Some(1234),
                count: 1,
            }],
            ..Handshakes::default()
        },
        engine: EngineCost {
            cost: cost(),
            rss_peak_kib: Some(1),
            counters: counters(),
            workers: vec![WorkerCost { core: Some(1), cpu_us: 1.0, utilisation: 0.5 }],
            loop_lag_p99_us: 1.0,
            loop_lag_max_us: 2.0,
        },
        servers: vec![ServerCost {
            source: text("process 4711"),
            cost: cost(),
            rss_peak_kib: Some(1),
            counters: counters(),
            busiest_thread: Some(BusyThread { name: text("node"), utilisation: 0.98 }),
            ..ServerCost::default()
        }],
        by_version: Some(ByVersion { http1: version(), http2: version() }),
        http2: Some(Http2Figures {
            resets: [(text("cancel"), 1)].into(),
            goaways: [(text("no_error"), 1)].into(),
            stream_wait: latency(),
            window_wait: latency(),
            wire_wait: latency(),
            settings: vec![PeerSettings {
                max_concurrent_streams: Some(100),
                max_frame_size: 16_384,
                max_header_list_size: Some(65_536),
                count: 2,
                ..PeerSettings::default()
            }],
            ..Http2Figures::default()
        }),
        grpc: Some(GrpcFigures {
            messages_sent: 1,
            statuses: [(text("OK"), 1)].into(),
            ..GrpcFigures::default()
        }),
        pacer: Some(Pacer { planned: 3, sent: 2, achieved_ratio: 0.9, lag_p99_us: 1.0, lag_max_us: 2.0 }),
        ceiling: Some(Ceiling { cell: text("keep-alive"), per_worker: 90_000.0, share: 0.1 }),
        warnings: vec![text("the rate fell")],
        validity: text("invalid: pacer (..)"),
        ..LoadResult::default()
    }
}

/// The pointers of all values below `value`, itself included.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_string());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| pointers(value, &format!("{at}/{name}"), found));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| pointers(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

fn all_pointers(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    pointers(value, "", &mut found);
    found
}

#[test]
fn a_result_with_all_its_parts_fits() {
    let result = serde_json::to_value(full()).unwrap();
    for pointer in all_pointers(&result) {
        let value = result.pointer(&pointer).unwrap();
        let empty = value.is_null() || value == &json!([]) || value == &json!({}) || value == &json!("");
        assert!(!empty, "{pointer} is not filled");
    }
    assert_fits(&result);
}

#[test]
fn an_extra_or_missing_field_is_rejected_at_any_depth() {
    let validator = validator();
    let result = serde_json::to_value(full()).unwrap();
    let maps = [
        "/errors",
        "/by_version/http1/errors",
        "/by_version/http1/alpn",
        "/by_version/http2/errors",
        "/by_version/http2/alpn",
        "/error_examples",
        "/handshake",
        "/handshakes/resumed",
        "/handshakes/tickets",
        "/http2/resets",
        "/http2/goaways",
        "/grpc/statuses",
    ];
    let mut checked = 0;
    for pointer in all_pointers(&result) {
        let Some(fields) = result.pointer(&pointer).and_then(Value::as_object) else { continue };
        let mut more = result.clone();
        more.pointer_mut(&pointer).unwrap()["surprise"] = json!(1);
        assert!(!validator.is_valid(&more), "{pointer}/surprise");
        for name in fields.keys().filter(|_| !maps.contains(&pointer.as_str())) {
            let mut less = result.clone();
            less.pointer_mut(&pointer).unwrap().as_object_mut().unwrap().remove(name);
            assert!(!validator.is_valid(&less), "without {pointer}/{name}");
            checked += 1;
        }
    }
    assert!(checked > 150, "{checked}");
}

#[test]
fn impossible_values_are_rejected_with_their_place() {
    let validator = validator();
    let result = serde_json::to_value(full()).unwrap();
    for (pointer, value) in [
        ("/schema", json!(1)),
        ("/url", json!("")),
        ("/window_s", json!(null)),
        ("/requests", json!(1.5)),
        ("/requests", json!(-1)),
        ("/errors/status", json!(0)),
        ("/error_ratio", json!(1.1)),
        ("/response/p99_us", json!("1 ms")),
        ("/response/mean_us", json!(null)),
        ("/response/hdr_v2", json!("HISTFAAAA-_")),
        ("/handshake/full/count", json!(-1)),
        ("/asked/rate", json!(0)),
        ("/asked/arrivals", json!("uniform")),
        ("/asked/requests_per_connection", json!("0")),
        ("/asked/close", json!("")),
        ("/asked/resume_percent", json!(101)),
        ("/asked/error_budget_percent", json!(-1)),
        ("/phases/0/name", json!("measuring")),
        ("/steps/0/rate", json!(0)),
        ("/seconds/0/p50_us", json!(-1)),
        ("/handshakes/negotiated/0/version", json!("TLSv1.3")),
        ("/handshakes/negotiated/0/kind", json!("psk")),
        ("/handshakes/resumed/resume-1.3-psk", json!(-1)),
        ("/handshakes/tickets/full/least", json!(-1)),
        ("/asked/http", json!("3")),
        ("/asked/http", json!("1.1=0,2=1")),
        ("/by_version/http1/connections", json!(0)),
        ("/by_version/http2/alpn/h2", json!(0)),
        ("/by_version/http2/errors/reset", json!(0)),
        ("/seconds/0/by_version/http2/p99_us", json!(-1)),
        ("/asked/streams", json!(0)),
        ("/seconds/0/refused", json!(-1)),
        ("/http2/resets/cancel", json!(0)),
        ("/http2/settings/0/max_frame_size", json!(1)),
        ("/http2/refused", json!(0.5)),
        ("/asked/messages", json!(-1)),
        ("/grpc/messages_sent", json!(0.5)),
        ("/grpc/statuses/OK", json!(0)),
        ("/engine/workers/0/core", json!(-1)),
        ("/servers/0/role", json!("server")),
        ("/servers/0/cpu_us", json!("1")),
        ("/servers/0/open_files", json!(-1)),
        ("/engine/minor_faults", json!(0.5)),
        ("/window_boot_s", json!(-1)),
        ("/pacer/achieved_ratio", json!(1.01)),
        ("/limit", json!("client")),
        ("/validity", json!("invalid")),
    ] {
        let mut wrong = result.clone();
        *wrong.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        let faults = faults(&validator, &wrong);
        // A nullable part is rejected as a whole.
        let whole = ["/pacer", "/http2", "/grpc", "/by_version", "/seconds/0/by_version"]
            .into_iter()
            .find(|part| pointer.starts_with(part))
            .unwrap_or(pointer);
        assert!(faults.iter().any(|fault| fault.starts_with(whole)), "{pointer}: {faults:?}");
    }
}

/// All optional parts are null in a small closed loop in cleartext.
#[test]
fn a_result_without_its_optional_parts_fits() {
    let few = Latency { count: 1, mean_us: 1.0, max_us: 1.0, ..Latency::default() };
    let result = LoadResult {
        asked: Asked { rate: None, arrivals: None, ..full().asked },
        response: few,
        pacer: None,
        by_version: None,
        http2: None,
        grpc: None,
        ceiling: None,
        steps: vec![],
        servers: vec![ServerCost { source: "command date".into(), ..ServerCost::default() }],
        window_boot_s: None,
        errors: [].into(),
        engine: EngineCost {
            cost: Cost { cpu_us_per_request: None, cpu_us_per_handshake: None, ..cost() },
            workers: vec![WorkerCost::default()],
            ..EngineCost::default()
        },
        validity: "valid".into(),
        ..full()
    };
    assert_fits(&serde_json::to_value(result).unwrap());
}

#[test]
fn the_schema_has_the_engines_error_classes() {
    let known: Vec<&str> = ErrorClass::ALL.map(|(_, name)| name).into();
    assert_eq!(schema()["$defs"]["ErrorClass"]["enum"], json!(known));
}

/// The names of all fields in the schema, at any depth.
fn field_names<'a>(schema: &'a Value, found: &mut BTreeSet<&'a str>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        found.extend(properties.keys().map(String::as_str));
    }
    match schema {
        Value::Object(members) => members.values().for_each(|member| field_names(member, found)),
        Value::Array(items) => items.iter().for_each(|item| field_names(item, found)),
        _ => {}
    }
}

#[test]
fn the_page_names_every_field_error_class_and_metric() {
    let schema = schema();
    let mut names = BTreeSet::new();
    field_names(&schema, &mut names);
    assert!(names.contains("censored_from_us") && names.len() > 100, "{names:?}");
    names.extend(ErrorClass::ALL.map(|(_, name)| name));
    names.extend(Metric::ALL.map(Metric::name));
    let missing: Vec<_> = names.iter().filter(|name| !PAGE.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/RESULT.md lacks {missing:?}");
    let header = weir_load::csv::seconds(&LoadResult::default());
    assert!(PAGE.contains(&header), "docs/RESULT.md lacks the CSV's header {header}");
}

#[test]
fn every_field_has_a_description() {
    let schema = schema();
    let in_definitions = schema["$defs"].as_object().unwrap().values();
    for object in std::iter::once(&schema).chain(in_definitions) {
        for (name, field) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let words = field["description"].as_str().unwrap_or_default();
            assert!(words.ends_with('.'), "{name}: {words}");
            let in_unit = !name.ends_with("_us") || words.ends_with("Microseconds.");
            assert!(in_unit, "{name}: {words}");
        }
    }
}
