//! Messages for beginners' configurations: each names the line and the correction.

use crate::common::{Certificates, Weir};
use std::fs;
use std::process::Command;
use tempfile::tempdir;

const WEB: &str = "[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://127.0.0.1:1'\n";
const ROUTE: &str = "[[route]]\nservice = 'app'\n";

/// Expects `weir check` to reject the file with these words.
#[track_caller]
fn says(config: &str, expected: &[&str]) {
    let folder = tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    fs::write(&file, config).unwrap();
    let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
    assert_eq!(ended.code, Some(2), "{config}: {}", ended.stderr);
    for part in expected {
        assert!(ended.stderr.contains(part), "{config}: no `{part}` in {}", ended.stderr);
    }
}

#[test]
fn other_notations_are_recognized() {
    let yaml = "not YAML: write `key = \"value\"`";
    for (lines, line, expected) in [
        ("servers: http://a:1", 1, yaml),
        ("service:", 1, yaml),
        ("service:\n  app:\n    servers: ['a']", 1, yaml),
        ("workers = 1\nlistener:\n  - bind: a", 2, yaml),
        ("- bind: 0.0.0.0:80", 1, yaml),
        ("listen 80;", 1, "`weir import FILE` translates files of nginx"),
        ("server {", 1, "`weir import FILE` translates files of nginx"),
        ("http {\n  server {", 1, "`weir import FILE` translates files of nginx"),
        ("{ \"workers\": 1 }", 1, "not JSON"),
        ("cores = two", 1, "a text has quotes: write cores = \"two\""),
        ("[listener.web]\nbind = 0.0.0.0:443", 2, "a text has quotes: write bind = \"0.0.0.0:443\""),
        ("[listener.web]\nbind = \u{201c}0.0.0.0:443\u{201d}", 2, "quotes are plain ones"),
        ("frontend web", 1, "expected `key = \"value\"`, or a [table]"),
    ] {
        says(lines, &[&format!("weir.toml:{line}: "), expected]);
    }
}

#[test]
fn brackets_are_explained() {
    for (config, expected) in [
        ("[route]\nservice = 'app'", "route: expected a list, found a table; write two brackets, [[route]]"),
        (
            "[certificate]\nchain = 'a'",
            "certificate: expected a list, found a table; write two brackets, [[certificate]]",
        ),
        ("[[listener]]\nbind = 'a:1'", "write one bracket and a name, [listener.NAME]"),
        ("[[service]]\nservers = 'a:1'", "write one bracket and a name, [service.NAME]"),
        ("[listener]\nbind = 'a:1'", "write [listener.NAME]: each listener has a name of its own"),
        ("[service]\nservers = 'http://a:1'", "write [service.NAME]: each service has a name of its own"),
        ("[[timeouts]]\nidle = '1s'", "write one bracket, [timeouts]"),
        ("[[limits]]\nhead = 1", "write one bracket, [limits]"),
    ] {
        says(config, &["weir.toml:", expected]);
    }
}

#[test]
fn addresses_are_explained() {
    for (bind, expected) in [
        ("'*:443'", "invalid address `*:443`: `*` is no host; 0.0.0.0 stands for all IPv4 addresses"),
        ("'*'", "invalid address `*`: missing port"),
        ("':443'", "invalid address `:443`: missing host"),
        ("'443'", "invalid address `443`: missing host"),
        ("443", "expected a quoted string or a list of them, found 443"),
        ("'0.0.0.0'", "invalid address `0.0.0.0`: missing port"),
        ("'::1'", "invalid address `::1`: an IPv6 address stands in brackets"),
        ("'http://0.0.0.0:80'", "invalid address `http://0.0.0.0:80`: an address has no scheme"),
        ("'0.0.0.0:99999'", "invalid address `0.0.0.0:99999`: invalid port `99999`"),
        ("'0.0.0.0:https'", "invalid address `0.0.0.0:https`: invalid port `https`"),
    ] {
        let expected = format!("weir.toml:2: listener.web.bind: {expected}");
        says(&format!("[listener.web]\nbind = {bind}\n"), &[&expected]);
    }
}

#[test]
fn durations_are_explained() {
    for (value, expected) in [
        ("30", "invalid duration `30`: expected more than 0 with a unit"),
        ("30", "did you mean \"30s\"?"),
        ("'30'", "did you mean \"30s\"?"),
        ("2.5", "did you mean \"2.5s\"?"),
        ("'5m'", "did you mean \"5min\"?"),
        ("'10 sec'", "did you mean \"10s\"?"),
        ("'1h30min'", "invalid duration `1h30min`: expected"),
        ("true", "invalid duration `true`: expected"),
    ] {
        let config = format!("{WEB}{ROUTE}timeouts.response = {value}\n");
        says(&config, &["weir.toml:7: route.0.timeouts.response: ", expected]);
    }
}

#[test]
fn keys_in_the_wrong_place_and_mistyped_ones_are_explained() {
    for (lines, expected) in [
        (
            "workers = 2",
            "weir.toml:7: route.0.workers: unknown field `workers` here; `workers` is a key of the top level: write it before the first [table]",
        ),
        ("reload = 'watch'", "`reload` is a key of the top level: write it before the first [table]"),
        (
            "client_fields = []",
            "`client_fields` is a key of the top level: write it before the first [table]",
        ),
        ("include = 'a'", "`include` is a key of the top level: write it before the first [table]"),
        ("cores = '0'", "`cores` is a key of the top level: write it before the first [table]"),
        (
            "[service.app.limits.timeouts]",
            "`timeouts` is a table of the top level: write [timeouts] on a line of its own",
        ),
        ("[service.app.log]", "`log` is a table of the top level: write [log] on a line of its own"),
        ("[service.app.route]", "`route` is a table of the top level: write [[route]] on a line of its own"),
        ("servce = 'app'", "weir.toml:7: route.0.servce: unknown field `servce`; did you mean `service`?"),
        ("hots = 'a'", "unknown field `hots`; did you mean `host`?"),
        ("maxbody = 1", "unknown field `maxbody`; did you mean `max_body`?"),
        ("strip-prefix = '/a'", "unknown field `strip-prefix`; did you mean `strip_prefix`?"),
        ("retry = 'alway'", "`never`; did you mean `always`?"),
        ("backend = 'app'", "unknown field `backend`, expected one of `name`, `host`"),
        ("[services.b]", "unknown field `services`; did you mean `service`?"),
        ("[timeout]", "unknown field `timeout`; did you mean `timeouts`?"),
    ] {
        says(&format!("{WEB}{ROUTE}{lines}\n"), &[expected]);
    }
}

/// A wrong key does not hide other wrong keys.
#[test]
fn all_keys_that_are_wrong_are_reported() {
    let config = format!(
        "workres = 1\n{WEB}limits.hed = 1\n{ROUTE}hots = 'a'\n[[route]]\nservice = 'ap'\ntimeouts.response = 5\n[[route]]\nhost = 'b:1'\nrespond.status = 200\n"
    );
    let folder = tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    fs::write(&file, config).unwrap();
    let stderr = Weir::run(&["check", "--config", file.to_str().unwrap()]).stderr;
    let expected = [
        ":1: workres: ",
        ":6: service.app.limits.hed: ",
        ":9: route.0.hots: ",
        ":12: route.1.timeouts.response: ",
        ":14: route.2.host.0: ",
    ];
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!(lines.len(), expected.len(), "{stderr}");
    for (line, part) in lines.iter().zip(expected) {
        assert!(line.contains(part), "no `{part}` in {line}");
    }
}

#[test]
fn paths_take_no_regular_expressions() {
    for path in ["~ ^/a", "^/api", "/a|/b", "/[0-9]+", "/a\\\\.php", "= /a", "/(a|b)", "/a/**"] {
        says(
            &format!("{WEB}{ROUTE}path = \"{path}\"\n"),
            &["weir.toml:7: route.0.path: ", "a path takes no regular expressions"],
        );
    }
    for (path, meant) in [("/a/.*", "/a/*"), ("/.*", "/*"), ("/a/b$", "/a/b")] {
        let folder = tempdir().unwrap();
        let file = folder.path().join("weir.toml");
        fs::write(&file, format!("{WEB}{ROUTE}path = '{path}'\n")).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
        let expected = format!("weir.toml:7: warning: route.0.path.0: `{path}` is no regular expression");
        assert!(ended.stdout.contains(&expected), "{path}: {} {}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains(&format!("write `{meant}` if that is meant")), "{}", ended.stdout);
    }
}

/// Regression test: all of these errors named the line of the listener's `tls`.
#[test]
fn a_file_at_fault_is_named_by_the_key_that_names_it() {
    let own = Certificates::new();
    let other = Certificates::new();
    let folder = tempdir().unwrap();
    let broken = folder.path().join("broken.pem");
    fs::write(&broken, "no certificate").unwrap();
    let (chain, key, broken) = (own.cert.display(), own.key.display(), broken.display());
    let good = format!("[[certificate]]\nchain = '{chain}'\nkey = '{key}'\n");
    let tls = "[listener.web]\nbind = '127.0.0.1:0'\ntls = {}\n";
    for (config, expected) in [
        (
            format!("{tls}{good}[[certificate]]\nchain = '{broken}'\nkey = '{key}'\n"),
            "weir.toml:8: certificate.1.chain: ",
        ),
        (
            format!("{tls}{good}[[certificate]]\nchain = '{chain}'\nkey = '{broken}'\n"),
            "weir.toml:9: certificate.1.key: ",
        ),
        (
            format!("{tls}[[certificate]]\nchain = '/none'\nkey = '{key}'\n"),
            "weir.toml:5: certificate.0.chain: ",
        ),
        (
            format!("{tls}[[certificate]]\nchain = '{chain}'\nkey = '{}'\n", other.key.display()),
            ": certificate.0.",
        ),
        (
            format!("{}{good}", tls.replace("{}", &format!("{{ client_ca = '{broken}' }}"))),
            "weir.toml:3: listener.web.tls.client_ca: ",
        ),
        (
            format!("{WEB}[service.b]\nservers = 'https://127.0.0.1:1'\ntls.ca = '{broken}'\n"),
            "weir.toml:7: service.b.tls.ca: ",
        ),
        (
            format!(
                "{WEB}[service.b]\nservers = 'https://127.0.0.1:1'\ntls.certificate = '{chain}'\ntls.key = '{broken}'\n"
            ),
            "weir.toml:8: service.b.tls.key: ",
        ),
    ] {
        says(&config, &[expected]);
    }
}

/// A certificate without extensions, as `openssl x509 -req` issues it.
#[test]
fn a_certificate_of_version_1_is_named_as_such() {
    let folder = tempdir().unwrap();
    let openssl = |args: &str| {
        let ended =
            Command::new("openssl").args(args.split(' ')).current_dir(folder.path()).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    };
    openssl(
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=a -keyout key.pem -out request.pem",
    );
    openssl("x509 -req -in request.pem -signkey key.pem -days 9 -out chain.pem");
    let is_version_1 = Command::new("openssl")
        .args(["x509", "-in", "chain.pem", "-noout", "-text"])
        .current_dir(folder.path())
        .output()
        .is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("Version: 1 "));
    assert!(is_version_1, "this openssl adds extensions by itself");
    let config = "[listener.web]\nbind = '127.0.0.1:0'\ntls = {}\n[[certificate]]\nchain = 'chain.pem'\nkey = 'key.pem'\n";
    let file = folder.path().join("weir.toml");
    fs::write(&file, config).unwrap();
    let stderr = Weir::run(&["check", "--config", file.to_str().unwrap()]).stderr;
    assert!(stderr.contains("weir.toml:5: certificate.0.chain: "), "{stderr}");
    assert!(
        stderr.contains("it is X.509 version 1, which no TLS client accepts; issue it with extensions"),
        "{stderr}"
    );
}

/// Each warning has its line and a correction.
#[test]
fn what_is_rarely_meant_is_a_warning() {
    let own = Certificates::new();
    let certificate =
        format!("[[certificate]]\nchain = '{}'\nkey = '{}'\n", own.cert.display(), own.key.display());
    let folder = tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    for (config, expected) in [
        (
            certificate.as_str(),
            Some(
                "7: warning: certificate.0: no listener has TLS, so no client gets this certificate; add `tls = {}`",
            ),
        ),
        (
            "[listener.b]\nbind = '127.0.0.2:0'\ntrusted_proxies = '0.0.0.0/0'\n",
            Some("9: warning: listener.b.trusted_proxies: these networks are the whole IPv4 internet"),
        ),
        (
            "[listener.b]\nbind = '127.0.0.2:0'\ntrusted_proxies = ['0.0.0.0/1', '128.0.0.0/1']\n",
            Some("9: warning: listener.b.trusted_proxies: "),
        ),
        (
            "[listener.b]\nbind = '127.0.0.2:0'\nproxy_protocol = '2000::/3'\n",
            Some("9: warning: listener.b.proxy_protocol: these networks are the whole IPv6 internet"),
        ),
        (
            "[service.b]\nservers = 'https://127.0.0.1:1'\ntls.insecure = true\n",
            Some("9: warning: service.b.tls.insecure: "),
        ),
        ("[listener.b]\nbind = '127.0.0.2:0'\ntrusted_proxies = '10.0.0.0/8'\n", None),
    ] {
        fs::write(&file, format!("{WEB}{ROUTE}{config}")).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
        assert_eq!(ended.code, Some(0), "{config}: {}", ended.stderr);
        let warnings: Vec<_> = ended.stdout.lines().filter(|line| line.contains(": warning: ")).collect();
        let is_said = |expected| {
            warnings.iter().any(|line| line.contains(&format!("weir.toml:{expected}")) && line.contains("; "))
        };
        assert!(expected.is_none_or(is_said), "{config}: {warnings:?}");
        assert_eq!(
            warnings.iter().any(|line| line.contains("listener.b")),
            expected.is_some_and(|said| said.contains("listener.b"))
        );
    }
}

/// Certificate dates follow the system clock, which `faketime` sets for one process.
#[test]
fn dates_of_certificates_are_looked_at() {
    let own = Certificates::new();
    let folder = tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let (chain, key) = (own.cert.display(), own.key.display());
    fs::write(&file, format!("[listener.web]\nbind = '127.0.0.1:0'\ntls = {{}}\n[[certificate]]\nchain = '{chain}'\nkey = '{key}'\n[[route]]\nrespond.status = 200\n")).unwrap();
    for (now, expected) in [
        ("1990-01-01", Some(format!("certificate.0.chain: {chain} is not valid before "))),
        ("2060-01-01", Some(format!("certificate.0.chain: {chain} expired on "))),
        ("2030-01-01", None),
    ] {
        let weir = env!("CARGO_BIN_EXE_weir");
        let ended =
            Command::new("faketime").args([now, weir, "check", "--config"]).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.status.code(), Some(0), "{now}: {said}");
        match expected {
            Some(expected) => {
                assert!(said.contains(&format!("weir.toml:5: warning: {expected}")), "{now}: {said}");
            }
            None => assert!(!said.contains("certificate.0.chain"), "{now}: {said}"),
        }
    }
}

#[test]
fn a_start_without_flags_names_all_of_them() {
    for flags in [
        &["serve"][..],
        &["serve", "--listen", "http://127.0.0.1:0"],
        &["serve", "--to", "http://127.0.0.1:1"],
        &["serve", "--workers", "1"],
        &["serve", "--max-body", "5"],
    ] {
        let ended = Weir::run(flags);
        let expected = "weir: missing --config FILE, or --listen URL and --to URL";
        assert!(ended.code == Some(2) && ended.stderr.starts_with(expected), "{flags:?}: {}", ended.stderr);
    }
}
