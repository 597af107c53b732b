//! `weir targets` with the test's own targets: list, install and check.

use crate::common::{Ended, Weir, script};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A fake gateway: a script installs it, and its check needs a readable certificate.
const FAST: &str = "title = 'Fast'
about = 'A gateway of this test.'
modes = ['h1c-h1c', 'h1-h1']
requires = '{{installed}}/bin/fast'
version = { command = ['{{installed}}/bin/fast', '-v'], after = ['fast/', 'TLS '] }
files = ['fast.conf']
start = ['{{installed}}/bin/fast']
[ready]
connect = '127.0.0.1:{{listen_port}}'
timeout_ms = 1000
[install]
script = 'install.sh'
takes = 'no time'
[check]
command = ['sh', '-c', 'grep -q \"CERTIFICATE\" {{cert}} && grep -qx \"port {{listen_port}} pool 100\" fast.conf']
[settings.pool]
default = 100
about = 'idle connections'
";

const SCRIPT: &str = "set -euo pipefail
mkdir -p \"$WEIR_INSTALL/bin\"
echo \"building with $WEIR_JOBS\"
printf '#!/bin/sh\\necho fast/1.2.3 on \\\"TLS 4.5\\\", built\\n' >\"$WEIR_INSTALL/bin/fast\"
chmod +x \"$WEIR_INSTALL/bin/fast\"
";

/// Targets, and the directory for their installation.
struct Targets(TempDir);

impl Targets {
    fn new() -> Self {
        let targets = Self(tempfile::tempdir().unwrap());
        targets.write("fast/target.toml", FAST);
        targets.write("fast/install.sh", SCRIPT);
        targets.write("fast/fast.conf", "port {{listen_port}} pool {{pool}}\n");
        let absent = "requires = 'no-such-program'\nabsent = 'ask its makers'\n";
        targets
            .write("gone/target.toml", &format!("title = 'Gone'\nabout = 'G.'\nmodes = ['h1c']\n{absent}"));
        targets
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join("targets").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn installed(&self, name: &str) -> bool {
        self.0.path().join("installed").join(name).exists()
    }

    /// Runs `weir targets ARGS` on these targets.
    fn weir(&self, args: &[&str]) -> Ended {
        let directory = self.0.path().join("targets");
        let args = [&["targets"], args, &["--directory", directory.to_str().unwrap()]].concat();
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        let ended = weir.args(&args).env("WEIR_TARGETS", self.0.path().join("installed")).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ended { code: ended.status.code(), stdout: text(ended.stdout), stderr: text(ended.stderr) }
    }

    #[track_caller]
    fn good(&self, args: &[&str]) -> String {
        let Ended { code, stdout, stderr } = self.weir(args);
        assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}");
        stdout
    }

    #[track_caller]
    fn bad(&self, args: &[&str], code: i32, parts: &[&str]) {
        let ended = self.weir(args);
        assert_eq!(ended.code, Some(code), "{args:?}: {}{}", ended.stdout, ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "{args:?}: `{part}` is not in: {}", ended.stderr);
        }
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
}

#[test]
fn the_list_has_versions_of_present_targets_and_how_to_get_absent_ones() {
    let targets = Targets::new();
    let before = targets.good(&[]);
    assert!(before.contains("fast  absent\n    A gateway of this test.\n"), "{before}");
    // A temporary directory's path may fill a line.
    let flowing = before.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flowing.contains("bin/fast does not exist; install it with `weir targets install fast`"),
        "{before}"
    );
    assert!(
        flowing.contains("gone absent G. no-such-program is not on the PATH; ask its makers"),
        "{before}"
    );
    assert_eq!(targets.good(&["list"]), before);
    let ended = targets.weir(&["install", "fast", "--jobs", "3"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "fast: present, version 1.2.3, TLS 4.5\n"));
    assert!(
        ended.stderr.contains("takes no time") && ended.stderr.contains("building with 3"),
        "{}",
        ended.stderr
    );
    let after = targets.good(&[]);
    assert!(after.contains("fast  present  1.2.3, TLS 4.5\n"), "{after}");
    assert_eq!(targets.good(&["install", "fast"]), "fast: present, version 1.2.3, TLS 4.5\n");
}

/// Regression test: after a change of the sources, the program built from the old ones was measured without a warning.
#[test]
fn a_target_built_from_other_sources_is_absent() {
    let targets = Targets::new();
    targets.write("fast/install.sh", &format!("{SCRIPT}sha256sum fast.c >\"$WEIR_INSTALL/sources\"\n"));
    targets.write("fast/fast.c", "int main;");
    let installed = targets.good(&["install", "fast"]);
    assert_eq!(installed, "fast: present, version 1.2.3, TLS 4.5\n");
    targets.write("fast/fast.conf", "port {{listen_port}}\n");
    assert!(targets.good(&[]).contains("fast  present"), "no part of what was built");
    targets.write("fast/fast.c", "int main(void);");
    let flowing = targets.good(&[]).split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "was built from other sources; install it with `weir targets install fast`";
    assert!(flowing.contains("fast absent") && flowing.contains(why), "{flowing}");
    assert_eq!(targets.good(&["install", "fast"]), installed);
}

#[test]
fn a_check_names_the_mode_that_the_target_rejects() {
    let targets = Targets::new();
    targets.bad(&["check", "fast"], 1, &["1 check failed"]);
    assert!(targets.good(&["check"]).contains("fast  absent: "));
    targets.good(&["install", "fast"]);
    assert_eq!(targets.good(&["check", "fast"]), "fast  h1c-h1c  accepted\nfast  h1-h1    accepted\n");
    let refusing = FAST.replace("'sh', '-c', '", "'sh', '-c', 'echo {{client_side}} is bad >&2; false; ");
    let refusing = refusing.replace("false; grep", "false && grep");
    targets.write("fast/target.toml", &refusing);
    let ended = targets.weir(&["check"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stdout.contains("fast  h1-h1    rejected: h1 is bad\n"), "{}", ended.stdout);
    assert!(ended.stderr.contains("2 checks failed"), "{}", ended.stderr);
}

#[test]
fn a_failed_install_reports_the_reason() {
    let targets = Targets::new();
    targets.bad(
        &["install", "fats"],
        2,
        &["target: unknown name `fats`, not in ", ": expected one of fast, gone"],
    );
    targets.bad(&["install", "gone"], 2, &["gone: it has no install script", "ask its makers"]);
    targets.bad(&["install"], 2, &["<NAME>"]);
    targets.bad(&["install", "fast", "--jobs", "0"], 2, &["--jobs"]);
    targets.write("fast/install.sh", "echo no compiler is here >&2; exit 7");
    targets.bad(&["install", "fast"], 1, &["no compiler is here", "install.sh failed: exit status: 7"]);
    targets.write("fast/install.sh", "true");
    targets.bad(&["install", "fast"], 1, &["succeeded, but ", "bin/fast does not exist"]);
    assert!(!targets.installed("fast/bin"));
    targets.write("fast/target.toml", &FAST.replace("install.sh", "no.sh"));
    targets.bad(&["install", "fast"], 2, &["fast/target.toml: install.script: ", "no.sh does not exist"]);
}

#[test]
fn an_invalid_description_is_a_row_and_an_exit_code() {
    let targets = Targets::new();
    targets.write("fast/target.toml", &FAST.replace("default = 100", "default = 1.5"));
    let ended = targets.weir(&[]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("invalid description: fast"), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("fast  invalid\n") && ended.stdout.contains("gone  absent\n"),
        "{}",
        ended.stdout
    );
    let flowing = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = ":17: settings.pool.default: `1.5` is a float: expected an integer or a string";
    assert!(flowing.contains(message), "{}", ended.stdout);
    let nowhere = Weir::run(&["targets", "--directory", "/no/such"]);
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.stderr.contains("/no/such: no target found: expected "), "{}", nowhere.stderr);
}

/// The study's proxy cannot set the number of tickets that its experiment varies. So it takes part only in the cells
/// with its own number, with both of its TLS libraries, and in those of TLS 1.2. Until it is built, the plan says how
/// to build it.
#[test]
fn the_proxy_of_the_ticket_study_is_in_its_experiment() {
    let experiment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/tickets-wire.toml");
    let programs = tempfile::tempdir().unwrap();
    let plan = || {
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.arg("plan").arg(&experiment);
        let ended = weir.env("PATH", programs.path()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(ended.status.success(), "{}", text(&ended.stderr));
        text(&ended.stdout)
    };
    let of = |plan: &str, name: &str| -> Vec<String> {
        let cells = plan.lines().filter_map(|line| line.split_whitespace().nth(1));
        let is_of = |cell: &&str| cell.starts_with("handshake-") && cell.ends_with(&format!(".{name}"));
        cells.filter(is_of).map(str::to_owned).collect()
    };
    let without = plan();
    let flowing = without.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "target g3tiles: absent",
        "target g3tiles-rustls: absent",
        "capnproto",
        "cargo build --release -p g3tiles",
    ] {
        assert!(flowing.contains(words), "no `{words}` in {flowing}");
    }
    assert!(of(&without, "g3tiles").is_empty(), "{without}");
    script(&programs.path().join("g3tiles"), "echo g3tiles 0.3.9");
    let with = plan();
    for name in ["g3tiles", "g3tiles-rustls"] {
        let cells = of(&with, name);
        let (modern, older): (Vec<&String>, Vec<&String>) =
            cells.iter().partition(|cell| cell.contains("tls.version=1.3"));
        // A full and a resumed cell each.
        assert_eq!((modern.len(), older.len()), (2, 2), "{cells:?}");
        assert!(modern.iter().all(|cell| cell.contains("tls.tickets=2.")), "{cells:?}");
        let words = format!("not run: {name} with 0, 1, 4 tickets in TLS 1.3: it sends only 2");
        assert!(with.contains(&words), "{with}");
    }
}

/// The targets of this repository: all descriptions are valid, and present targets accept their configurations.
#[test]
fn the_targets_of_this_repository_accept_their_configurations() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets");
    let directory = directory.to_str().unwrap();
    let list = Weir::run(&["targets", "--directory", directory]);
    assert_eq!(list.code, Some(0), "{}{}", list.stdout, list.stderr);
    assert!(list.stdout.contains("weir ") && list.stdout.contains("nginx-current"), "{}", list.stdout);
    let wide = |line: &&str| line.chars().count() > 100 && line.split_whitespace().count() > 1;
    assert_eq!(list.stdout.lines().find(wide), None, "{}", list.stdout);
    let checked = Weir::run(&["targets", "check", "--directory", directory]);
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
}
