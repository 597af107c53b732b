//! `weir cost`: its five lines agree with its loads, and with `weir probe` and `weir load` on the same server.

use crate::common::load::{adds_up, ensure, load_well, undisturbed};
use crate::common::{Certificates, DEADLINE, Ended, Weir};
use crate::servers::Server;
use serde_json::Value;
use tempfile::NamedTempFile;
use weir_load::figures::time;
use weir_load::result::LoadResult;

const CONNECTIONS: &str = "2";

/// A test server, over TLS and in cleartext.
fn origin_of_both() -> Weir {
    let listen = ["--listen", "https://127.0.0.1:0", "--listen", "http://127.0.0.1:0"];
    Weir::start(&[&["origin", "--workers", "1"][..], &listen].concat())
}

#[test]
fn an_origin_with_its_cleartext_url() {
    let origin = origin_of_both();
    let (url, pid) = (format!("{}/bytes/1000", origin.urls[0]), origin.pid().to_string());
    let report = Report::of(&[&url, "-k", "--plain", &origin.urls[1], "--pid", &pid]);
    report.agrees(&url);
    assert_eq!(
        report.json["cleartext"]["given"],
        format!("{}/bytes/1000", origin.urls[1]),
        "the path is the URL's"
    );
    assert!(report.lines[0].starts_with("1. TLS 1.3, x25519, aes128-gcm-sha256, ecdsa p256 key; resumes ("));
    assert!(
        report.lines[3].contains("; cleartext ") && report.lines[3].contains(": CPU x "),
        "{}",
        report.lines[3]
    );
    assert!(!report.text.contains("missing") && !report.text.contains("Not compared"), "{}", report.text);
    assert!(report.stderr.contains("round 5 of 5"), "{}", report.stderr);
    let resumed: u64 =
        report.rounds("new-resumed").iter().map(|r| r.handshakes.resumed["resume-1.3-psk"]).sum();
    let counted = origin.stop().stdout;
    let (_, counted) = counted.rsplit_once(" full ").unwrap();
    let counted: u64 = counted.split_once(" resumed").unwrap().0.parse().unwrap();
    assert!(counted >= resumed, "the origin counted {counted} resumptions of {resumed}");
}

#[test]
fn missing_cleartext_and_process_are_noted() {
    let certificates = Certificates::new();
    let origin = crate::common::origin(true, &certificates);
    let url = format!("{}/bytes/10", origin.urls[0]);
    let report = Report::of(&[&url, "--cacert", certificates.ca.to_str().unwrap()]);
    report.agrees(&url);
    assert!(
        report
            .text
            .contains("Not compared with cleartext: the cleartext port is unknown; pass --plain http://")
    );
    assert!(report.text.contains("CPU is missing: run this on the server's machine with --pid PID"));
    assert!(report.lines[1..4].iter().all(|line| !line.contains("CPU") && !line.contains("cleartext")));
    assert!(report.lines[4].ends_with("of the time."), "{}", report.lines[4]);
    assert_eq!(report.json["phases"].as_array().unwrap().len(), 3);
}

#[test]
fn a_go_service() {
    peer(Server::go);
}

#[test]
fn a_node_service() {
    peer(Server::node);
}

#[test]
fn a_python_service() {
    peer(Server::python);
}

/// One process over TLS, one in cleartext.
fn peer(start: fn(Option<&Certificates>) -> Option<Server>) {
    let certificates = Certificates::new();
    let (Some(tls), Some(cleartext)) = (start(Some(&certificates)), start(None)) else { return };
    let url = format!("https://{}/bytes/1000", tls.address(true));
    let plain = format!("http://{}", cleartext.address(false));
    let [ca, tls_pid, cleartext_pid] =
        [certificates.ca.display().to_string(), tls.pid().to_string(), cleartext.pid().to_string()];
    let pids = ["--pid", &tls_pid, "--pid", &cleartext_pid];
    let report = Report::of(&[&[&*url, "--cacert", &ca, "--plain", &plain], &pids[..]].concat());
    report.agrees(&url);
    assert!(report.lines[2].starts_with("3. A resumed one takes "), "{}", report.lines[2]);
    assert!(report.lines[3].contains(": CPU x "), "{}", report.lines[3]);
}

#[test]
fn a_server_without_resumption_gets_advice() {
    let origin = Weir::start(&[
        "origin",
        "--listen",
        "https://127.0.0.1:0",
        "--workers",
        "1",
        "--tls",
        "1.3",
        "--tickets",
        "0",
    ]);
    let report = Report::of(&[&origin.urls[0], "-k"]);
    assert!(report.lines[0].ends_with("; never resumes."), "{}", report.lines[0]);
    assert_eq!(report.lines[2], "3. Never resumed: the server issues no tickets. Enable session tickets.");
}

#[test]
fn wrong_responses_are_no_evidence_and_the_rest_is_reported() {
    let origin = Weir::start(&["origin", "--listen", "https://127.0.0.1:0", "--workers", "1"]);
    let url = format!("{}/none", origin.urls[0]);
    let ended = Weir::run(&["cost", &url, "-k", "-d", "250ms"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("\n1. TLS 1.3, x25519,") && ended.stdout.contains("\n5. "),
        "{}",
        ended.stdout
    );
    for case in ["new-resumed", "new-full", "kept-tls"] {
        let line =
            ended.stderr.lines().find(|line| line.contains(&format!("not measured: {case}, round 1 of 5")));
        assert!(line.is_some_and(|line| line.ends_with("status 404")), "{case}: {}", ended.stderr);
    }
}

#[test]
fn invalid_requests_are_rejected_with_the_next_step() {
    let origin = origin_of_both();
    let (tls, plain) = (&*origin.urls[0], &*origin.urls[1]);
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let (closed_tls, closed_plain) = (format!("https://{closed}/"), format!("http://{closed}/"));
    let cleartext_as_tls = plain.replace("http:", "https:");
    for (args, code, message) in [
        (&[&*closed_tls][..], 1, "check that the server runs, that host and port are correct"),
        (&[tls, "-k", "--plain", &closed_plain], 1, "connection refused; start the server"),
        (&[&cleartext_as_tls], 1, "it responds with plain HTTP; check the port"),
        (&[tls], 1, "trust its CA with --cacert FILE, or skip verification with -k"),
        (&[plain], 2, "weir cost https://HOST:PORT/PATH --plain http://127.0.0.1"),
        (&[tls, "--plain", tls], 2, "--plain: invalid value `https://127.0.0.1"),
        (&[tls, "--cacert", "/none"], 2, "--cacert: cannot read /none"),
        (&[tls, "-k", "--pid", "2147483647"], 2, "--pid: invalid value `2147483647`"),
        (&[tls, "-k", "-d", "1ms"], 2, "expected 250ms to 1h"),
    ] {
        let Ended { code: ended, stdout, stderr } = Weir::run(&[&["cost"], args].concat());
        assert_eq!((ended, &*stdout), (Some(code), ""), "{args:?}: {stderr}");
        assert!(stderr.contains(message), "{args:?}: {stderr}");
    }
}

/// Whether loads are invalid only because the time was too short.
fn needs_more_time(ended: &Ended) -> bool {
    let is_short = |line: &str| {
        ["too few for a median; measure longer with -d ", "no correct response within the window"]
            .iter()
            .any(|reason| line.contains(reason))
    };
    let mut missing = ended.stderr.lines().filter(|line| line.contains("not measured: ")).peekable();
    missing.peek().is_some() && missing.all(is_short)
}

/// Whether a round has too few responses, or too few handshakes of its kind, for the median on which the report is
/// based.
fn lacks_median(json: &str) -> bool {
    let json: Value = serde_json::from_str(json).unwrap_or_default();
    let lacks = |case: &Value, round: &Value| {
        let is_of_its_kind = |kind: &str| match case.as_str().unwrap() {
            "new-full" => kind == "full",
            "new-resumed" => kind != "full",
            _ => false,
        };
        let handshakes = round["handshake"].as_object().unwrap().iter();
        let mut of_its_kind = handshakes.filter(|(kind, _)| is_of_its_kind(kind));
        round["response"]["p50_us"].is_null() || of_its_kind.any(|(_, times)| times["p50_us"].is_null())
    };
    json["phases"].as_array().into_iter().flatten().any(|phase| {
        phase["outcome"] == "measured"
            && phase["rounds"].as_array().unwrap().iter().any(|round| lacks(&phase["case"], round))
    })
}

/// The report of one run.
struct Report {
    text: String,
    lines: Vec<String>,
    stderr: String,
    json: Value,
}

impl Report {
    /// The report of a successful run. On a busy machine a service may get few requests, but the median needs twenty in
    /// each of five rounds: then the run is repeated with twice the time.
    fn of(args: &[&str]) -> Self {
        let file = NamedTempFile::new().unwrap();
        let own = ["-c", CONNECTIONS, "--json", file.path().to_str().unwrap()];
        let (mut seconds, mut last) = (1, None);
        undisturbed("cost of TLS", || {
            let duration = format!("{seconds}s");
            seconds *= 2;
            let ended =
                Weir::run_within(10 * DEADLINE, &[&["cost"], args, &own[..], &["-d", &duration]].concat());
            let json = std::fs::read_to_string(file.path()).unwrap_or_default();
            let too_few = needs_more_time(&ended) || lacks_median(&json);
            last = Some((ended, json));
            ensure(!too_few, || format!("too few responses in {duration}"))
        });
        let (ended, json) = last.unwrap();
        assert_eq!(ended.code, Some(0), "{args:?}: {}{}", ended.stderr, ended.stdout);
        let json: Value = serde_json::from_str(&json).unwrap();
        let lines: Vec<String> = ended.stdout.lines().skip(1).take(5).map(str::to_owned).collect();
        for (at, line) in lines.iter().enumerate() {
            assert!(line.starts_with(&format!("{}. ", at + 1)) && line.chars().count() <= 100, "{line}");
            assert_eq!(line[3..], *json["lines"][at].as_str().unwrap());
        }
        let estimates = ended.stdout.matches("estimate").count();
        assert_eq!(estimates, 1, "{}", ended.stdout);
        Self { text: ended.stdout, lines, stderr: ended.stderr, json }
    }

    /// The stored results of a case, in the format of `weir load`.
    fn rounds(&self, case: &str) -> Vec<LoadResult> {
        let phase = self.json["phases"].as_array().unwrap().iter().find(|phase| phase["case"] == case);
        let Some(phase) = phase else { return Vec::new() };
        let rounds: Vec<LoadResult> = serde_json::from_value(phase["rounds"].clone()).unwrap();
        assert_eq!((rounds.len(), &phase["outcome"]), (5, &Value::from("measured")), "{case}");
        for result in &rounds {
            adds_up(result);
            assert_eq!(result.validity, "valid", "{case}");
        }
        rounds
    }

    /// The median of five rounds.
    fn median(&self, case: &str, figure: impl Fn(&LoadResult) -> f64) -> Option<f64> {
        let mut values: Vec<f64> = self.rounds(case).iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        values.get(2).copied()
    }

    /// Checks the printed figures against the stored results, and the facts against the other commands.
    fn agrees(&self, url: &str) {
        let p50 = |result: &LoadResult| result.response.p50_us.unwrap();
        let cpu = |result: &LoadResult| -> f64 {
            result.servers.iter().map(|server| server.cost.cpu_us_per_request.unwrap()).sum()
        };
        let has = |at: usize, figure: Option<f64>| {
            let (line, figure) = (&self.lines[at], time(figure.unwrap()));
            assert!(line.contains(&figure), "{figure} is not in {line}");
        };
        let full = |result: &LoadResult| result.handshake["full"].p50_us.unwrap();
        has(1, self.median("new-full", full));
        has(1, self.median("new-full", p50));
        has(3, self.median("kept-tls", p50));
        let resumed = |result: &LoadResult| {
            let (_, resumed) = result.handshake.iter().find(|(kind, _)| *kind != "full").unwrap();
            resumed.p50_us.unwrap()
        };
        has(2, self.median("new-resumed", resumed));
        let with_plain = !self.rounds("new-cleartext").is_empty();
        if with_plain {
            has(1, self.median("new-cleartext", p50));
            has(3, self.median("kept-cleartext", p50));
            has(3, self.median("kept-tls", cpu));
            has(3, self.median("kept-cleartext", cpu));
            let both = self.rounds("new-full").into_iter().zip(self.rounds("new-cleartext"));
            let mut added: Vec<f64> = both.map(|(tls, cleartext)| cpu(&tls) - cpu(&cleartext)).collect();
            added.sort_by(f64::total_cmp);
            has(1, Some(added[2]));
        }
        self.handshakes_are_of_their_kind();

        let negotiated = &self.json["findings"]["negotiated"];
        let probed = &self.json["probe"]["negotiated"];
        let fact = |name: &str| negotiated[name].as_str().unwrap();
        for name in ["version", "suite", "group"] {
            assert_eq!(negotiated[name], probed[name], "{name}");
            assert!(self.lines[0].contains(fact(name)), "{}", self.lines[0]);
        }
        let own = ["-k", "--new-connection", "-c", CONNECTIONS, "-d", "200ms", "--warmup", "0s"];
        let loaded =
            load_well(&[&[url, "--tls", fact("version"), "--group", fact("group")], &own[..]].concat());
        for seen in &loaded.handshakes.negotiated {
            let seen = (&*seen.version, &*seen.suite, seen.group.as_deref());
            assert_eq!(seen, (fact("version"), fact("suite"), Some(fact("group"))));
        }
    }

    fn handshakes_are_of_their_kind(&self) {
        let connections: u64 = CONNECTIONS.parse().unwrap();
        for result in self.rounds("new-full") {
            let handshakes = &result.handshakes;
            assert!(handshakes.resumed.is_empty() && handshakes.full >= result.requests, "{handshakes:?}");
            assert!(handshakes.negotiated.iter().all(|seen| seen.kind == "full"), "{handshakes:?}");
        }
        for result in self.rounds("new-resumed") {
            let handshakes = &result.handshakes;
            let resumed: u64 = handshakes.resumed.values().sum();
            assert!(resumed > 0 && resumed == handshakes.offered, "{handshakes:?}");
            assert_eq!((handshakes.declined, handshakes.had_nothing), (0, 0));
            if result.asked.resume_percent == 100.0 {
                assert_eq!(handshakes.resumed_in_window, handshakes.in_window);
                assert_eq!(handshakes.full, handshakes.primed, "only those for the first sessions");
            } else {
                assert!(self.text.contains("brings no new ticket"), "{}", self.text);
            }
        }
        for result in self.rounds("kept-tls") {
            assert_eq!((result.handshakes.full, result.handshakes.in_window), (connections, 0));
            assert_eq!(result.connections_opened, connections);
        }
        for result in [self.rounds("new-cleartext"), self.rounds("kept-cleartext")].concat() {
            assert!(result.handshakes.negotiated.is_empty() && result.url.starts_with("http://"));
        }
    }
}
