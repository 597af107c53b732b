//! The sources of a configuration: several files, environment variables, and defaults for routes.

use crate::common::{Client, DEADLINE, Weir, poll_until};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::{TempDir, tempdir};
use weir_http::Method;

const WEB: &str = "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n";
const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

fn files(files: &[(&str, &str)]) -> TempDir {
    let folder = tempdir().unwrap();
    write(folder.path(), files);
    folder
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Runs `weir check` in a directory other than the file's.
fn check(folder: &Path, variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["check", "--explain", "--config"])
        .arg(folder.join("weir.toml"))
        .current_dir("/")
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Regression test: relative paths started at the working directory, which differs between a shell, systemd and CI.
#[test]
fn relative_paths_belong_to_the_directory_of_their_file() {
    let page = "error_pages = { 404 = 'page.html' }\n";
    let folder = files(&[
        ("weir.toml", &format!("include = 'conf.d/*.toml'\n{page}{WEB}")),
        ("page.html", "own"),
        ("conf.d/a.toml", "error_pages.503 = 'other.html'\n[[route]]\nrespond.status = 200\n"),
        ("conf.d/other.html", "included"),
    ]);
    let ended = check(folder.path(), &[]);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    fs::remove_file(folder.path().join("conf.d/other.html")).unwrap();
    let error = text(&check(folder.path(), &[]).stderr);
    let file = folder.path().display();
    let expected = format!(
        "weir: {file}/conf.d/a.toml:1: error_pages.503: cannot read {file}/conf.d/other.html: No such file"
    );
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn files_are_included_as_one_configuration() {
    let service = |name: &str| {
        format!(
            "[service.{name}]\nservers = 'http://127.0.0.1:1'\n[[route]]\nhost = '{name}.example'\nservice = '{name}'\n"
        )
    };
    let main = |include: &str| format!("include = {include}\n{WEB}");
    let (a, b) = (service("a"), service("b"));
    // The files, the exit code, and the message.
    for (main, a, b, code, expected) in [
        (main("'conf.d/*.toml'"), &*a, &*b, 0, "any host /* -> "),
        (main("['conf.d/a.toml', 'conf.d/b.toml']"), &a, &b, 0, "b.example"),
        (main("'conf.d/?.toml'"), &a, &b, 0, "b.example"),
        (main("'none.d/*.toml'"), &a, &b, 0, "weir.toml:1: warning: include: no file matches `"),
        (main("'conf.d/*.conf'"), &a, &b, 0, "weir.toml:1: warning: include: no file matches `"),
        (main("'conf.d/none.toml'"), &a, &b, 2, "conf.d/none.toml: cannot read: No such file"),
        (main("'*/a.toml'"), &a, &b, 2, "weir.toml:1: include: invalid pattern `"),
        (main("5"), &a, &b, 2, "weir.toml:1: include: expected a quoted string"),
        (main("'conf.d/*.toml'"), &a, &a, 2, "conf.d/b.toml:1: service.a: duplicate key: it is set in "),
        (main("'conf.d/*.toml'"), &a, "workers = 1", 2, "conf.d/b.toml:1: workers: duplicate key"),
        (
            main("'conf.d/*.toml'"),
            &a,
            "[listener.web]\nbind = 'a:1'",
            2,
            "conf.d/b.toml:1: listener.web: duplicate key",
        ),
        (
            main("'conf.d/*.toml'"),
            &a,
            "\n\ninclude = 'c'",
            2,
            "conf.d/b.toml:3: include: an included file includes no others",
        ),
        (
            main("'conf.d/*.toml'"),
            &a,
            "\n[[route]]\nservice = 'c'",
            2,
            "conf.d/b.toml:3: route.1.service: unknown service `c`",
        ),
        (main("'conf.d/*.toml'"), &a, "a\n", 2, "conf.d/b.toml:1: "),
        (
            main("'conf.d/*.toml'"),
            &a,
            "\n\nservces = 1",
            2,
            "conf.d/b.toml:3: servces: unknown field `servces`; did you mean `service`?",
        ),
    ] {
        let folder = files(&[
            ("weir.toml", &main),
            ("conf.d/a.toml", a),
            ("conf.d/b.toml", b),
            ("conf.d/.c.toml", "?"),
        ]);
        let ended = check(folder.path(), &[]);
        let said = text(&ended.stdout) + &text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(code), "{main}{b}: {said}");
        let expected = expected.trim_start_matches("any host /* -> ");
        assert!(said.contains(expected), "{main}{b}: no `{expected}` in {said}");
        if expected.contains("duplicate") {
            assert!(
                said.lines().any(|line| line.contains("/b.toml:") && line.matches(".toml:").count() == 2),
                "{said}"
            );
        }
    }
}

#[test]
fn a_reload_sees_included_files() {
    let route = |text: &str| format!("[[route]]\nrespond = {{ status = 200, body = '{text}' }}\n");
    for watch in ["reload = 'watch'\n", ""] {
        let main = format!("{watch}include = 'conf.d/*.toml'\n{WEB}");
        let folder = files(&[("weir.toml", &main), ("conf.d/b.toml", &route("old"))]);
        let weir = Weir::of_file(&folder.path().join("weir.toml"), 1);
        let got = || Client::connect(weir.address(), None).ask(GET).text().to_owned();
        assert_eq!(got(), "old");
        // The first of two equal routes wins, so the response shows that the new file was read.
        for (name, body) in [("conf.d/b.toml", "new"), ("conf.d/a.toml", "first")] {
            write(folder.path(), &[(name, &route(body))]);
            if watch.is_empty() {
                weir.signal(Signal::HUP);
            }
            poll_until(DEADLINE, "it is taken", || got() == body);
        }
    }
}

#[test]
fn values_are_from_the_environment() {
    let variables =
        [("WEIR_TEST_PORT", "8443"), ("WEIR_TEST_QUOTE", "'\n[admin]\n#"), ("WEIR_TEST_EMPTY", "")];
    // A value, the exit code, and the message.
    for (value, code, expected) in [
        ("http://127.0.0.1:${WEIR_TEST_PORT}", 0, "http://127.0.0.1:8443"),
        ("http://127.0.0.1:${WEIR_TEST_NONE:-81}", 0, "http://127.0.0.1:81"),
        ("http://127.0.0.1:${WEIR_TEST_EMPTY:-82}", 0, "http://127.0.0.1:82"),
        ("${WEIR_TEST_NONE:-http://[::1]:83}", 0, "http://[::1]:83"),
        (
            "http://${WEIR_TEST_NONE}:80",
            2,
            "weir.toml:5: service.app.servers: the environment variable `WEIR_TEST_NONE` is not set",
        ),
        ("http://${WEIR_TEST_NONE", 2, "weir.toml:5: service.app.servers: missing `}`"),
        ("http://${WEIR-TEST}:80", 2, "weir.toml:5: service.app.servers: invalid variable `${WEIR-TEST}`"),
        ("${WEIR_TEST_QUOTE}", 2, "weir.toml:5: service.app.servers: "),
        ("$${WEIR_TEST_PORT}", 2, "weir.toml:5: service.app.servers: `${WEIR_TEST_PORT}`"),
    ] {
        let config = format!("{WEB}[service.app]\nservers = '{value}'\n[[route]]\nservice = 'app'\n");
        let folder = files(&[("weir.toml", &config)]);
        let ended = check(folder.path(), &variables);
        let said = text(&ended.stdout) + &text(&ended.stderr);
        assert!(ended.status.code() == Some(code) && said.contains(expected), "{value}: {said}");
        assert!(!said.contains("admin at"), "a value is never more than a value: {said}");
    }
}

#[test]
fn routes_have_defaults() {
    let defaults = "[defaults]\nrate = { requests = 50 }\n[defaults.response_headers]\nset = { Strict-Transport-Security = 'max-age=1', X-A = 'a' }\n\
        remove = ['Server', 'X-B']\n";
    let routes = "[[route]]\npath = '/plain'\nrespond.status = 200\n\
        [[route]]\npath = '/own'\nrespond.status = 200\nresponse_headers.set = { x-a = 'own' }\n\
        [[route]]\npath = '/without'\nrespond.status = 200\nresponse_headers.remove = 'strict-transport-security'\n";
    let folder = files(&[("weir.toml", &format!("{WEB}{defaults}{routes}"))]);
    let explained = text(&check(folder.path(), &[]).stdout);
    assert_eq!(explained.matches("50 requests").count(), 3, "{explained}");
    let weir = Weir::of_file(&folder.path().join("weir.toml"), 1);
    let mut client = Client::connect(weir.address(), None);
    for (path, hsts, x_a) in [
        ("/plain", &["max-age=1"][..], &["a"][..]),
        ("/own", &["max-age=1"], &["own"]),
        ("/without", &[], &["a"]),
    ] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let answer = client.answer(Method::Get);
        assert_eq!(answer.fields("strict-transport-security"), hsts, "{path}: {}", answer.head);
        assert_eq!(answer.fields("x-a"), x_a, "{path}: {}", answer.head);
    }
    for (defaults, expected) in [
        ("host = 'a'", "weir.toml:5: defaults.host: unknown field `host`, expected one of"),
        (
            "response_heders = {}",
            "weir.toml:5: defaults.response_heders: unknown field `response_heders`; did you mean `response_headers`?",
        ),
        ("timeouts.response = 30", "weir.toml:5: defaults.timeouts.response: "),
        ("response_headers.set = { TE = 'a' }", "weir.toml:5: route.0.response_headers.set.TE: `TE` frames"),
        ("rate = { requests = 0 }", "weir.toml:5: route.0.rate.requests: invalid value `0`"),
    ] {
        write(folder.path(), &[("weir.toml", &format!("{WEB}[defaults]\n{defaults}\n{routes}"))]);
        let ended = check(folder.path(), &[]);
        let said = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{defaults}: {said}");
        assert!(said.contains(expected), "{defaults}: no `{expected}` in {said}");
        assert_eq!(said.lines().count(), 1, "one line, one fault: {said}");
    }
}

/// Regression test: a start hung before it listened, until a process read the FIFO.
#[test]
fn a_log_that_is_no_file_is_opened_without_waiting() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["fifo", "read"] {
        assert!(Command::new("mkfifo").arg(path(name)).status().unwrap().success());
    }
    let _socket = UnixListener::bind(path("socket")).unwrap();
    fs::create_dir(path("directory")).unwrap();
    let config = path("weir.toml");
    let write_log = |log: &str| {
        fs::write(&config, format!("{WEB}[[route]]\nrespond.status = 200\n[log]\naccess = '{log}'\n"))
            .unwrap();
    };
    for (log, why) in [
        ("fifo", "it is a FIFO that no process reads: start its reader first"),
        ("socket", "it is a socket: expected a file"),
        ("directory", "it is a directory: expected a file"),
        ("none/log", "No such file"),
        ("weir.toml/log", "Not a directory"),
    ] {
        write_log(log);
        let ended = Weir::run(&["serve", "--config", config.to_str().unwrap()]);
        let expected = format!("weir.toml:7: log.access: {}: {why}", path(log).display());
        assert!(ended.code == Some(2) && ended.stderr.contains(&expected), "{log}: {}", ended.stderr);
    }
    write_log("/dev/null");
    Weir::of_file(&config, 1).stop();
    // With a reader, the FIFO is an ordinary log.
    write_log("read");
    let mut reader = Command::new("cat").arg(path("read")).stdout(Stdio::piped()).spawn().unwrap();
    // The reader has opened the FIFO once a writer can; it reads until the last writer closes.
    let nonblocking = OFlags::WRONLY | OFlags::NONBLOCK;
    let mut held = None;
    poll_until(DEADLINE, "its reader", || {
        held = rustix::fs::open(path("read"), nonblocking, Mode::empty()).ok();
        held.is_some()
    });
    let weir = Weir::of_file(&config, 1);
    drop(held);
    assert_eq!(Client::connect(weir.address(), None).ask(GET).status, 200);
    weir.stop();
    let mut lines = String::new();
    reader.stdout.take().unwrap().read_to_string(&mut lines).unwrap();
    reader.wait().unwrap();
    assert!(lines.contains("\"status\":200"), "{lines}");
}
