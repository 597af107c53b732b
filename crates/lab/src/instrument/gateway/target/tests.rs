//! Descriptions, valid and invalid, and those of this repository.

use super::*;
use crate::found::Folders;
use crate::instrument::gateway::Gateway;
use crate::instrument::gateway::testing::experiment;
use std::fs;
use std::path::Path;

/// The second form's keys, before the tables of [`GATEWAY`].
const SETTINGS: &str = "[settings.pool]
default = 100
values = [50, 100]
about = 'idle connections'
[settings.queue]
default = '{{connections}}'
about = 'waiting clients'
[check]
command = ['{{installed}}/fast', '-t', '{{dir}}', '{{pool}}', '{{queue}}']
[gc]
log = '{{dir}}/gc.log'
";

const GATEWAY: &str = "title = 'T'
about = 'A'
modes = ['h1c-h1c', 'h1-h1']
version = { command = ['echo', 'fast/1.2.3 (x)'], after = 'fast/' }
files = ['a-{{client_side}}.conf']
start = ['true', '-f', '{{dir}}/a-{{client_side}}.conf']
[client_side]
h1 = ['--cert', '{{cert}}']
[upstream_side]
h1 = ['--tls']
[ready]
connect = '127.0.0.1:{{listen_port}}'
timeout_ms = 1000
";

fn values() -> Values {
    let values = Values::default().with("dir", "/d").with("cert", "/c");
    values.with("listen_port", 8080).with("connections", 64)
}

/// The targets of the tests' experiment, of which `fast` has this description.
fn found(description: &str, template: &str) -> Result<Targets, String> {
    found_in(&tempfile::tempdir().expect("a directory"), description, template)
}

fn found_in(directory: &tempfile::TempDir, description: &str, template: &str) -> Result<Targets, String> {
    let direct = "title = 'D'\nabout = 'N'\nmodes = ['h1c']\n";
    for (name, text) in [("direct", direct), ("slow", direct), ("fast", description)] {
        let folder = directory.path().join(name);
        fs::create_dir(&folder).expect("is made");
        fs::write(folder.join("target.toml"), text).expect("is written");
    }
    for side in ["h1c", "h1"] {
        fs::write(directory.path().join(format!("fast/a-{side}.conf")), template).expect("is written");
    }
    let place = directory.path().display().to_string();
    let found = find(&experiment().subjects(), &Folders::targets(Some(directory.path())), &values())
        .map_err(|error| error.to_string().replace(&place, ""));
    if let Ok(targets) = &found
        && let Some(fast) = targets.present.get("fast")
    {
        let prepared = fast.prepare(Mode::H1H1, &values()).expect("renders").expect("a process");
        assert_eq!(prepared.command, ["true", "-f", "/d/a-h1.conf", "--cert", "/c", "--tls"]);
        assert_eq!(prepared.files, [("a-h1.conf".to_owned(), "port 8080".to_owned())]);
        assert_eq!(prepared.ready, "127.0.0.1:8080");
        let cleartext = fast.prepare(Mode::H1cH1c, &values()).expect("renders").expect("a process");
        assert_eq!(cleartext.command, ["true", "-f", "/d/a-h1c.conf"]);
    }
    found
}

fn refused(from: &str, to: &str) -> String {
    assert!(GATEWAY.contains(from));
    found(&GATEWAY.replacen(from, to, 1), "port {{listen_port}}").expect_err("is rejected")
}

#[test]
fn a_target_is_rendered_for_its_mode() {
    let targets = found(GATEWAY, "port {{listen_port}}").expect("are read");
    assert_eq!(targets.present["fast"].version, "1.2.3");
    assert!(targets.present["direct"].description.start.is_empty());
    let two = GATEWAY.replacen("(x)'], after = 'fast/'", "on TLS 4.5)'], after = ['fast/', 'TLS ']", 1);
    let targets = found(&two, "port {{listen_port}}").expect("are read");
    assert_eq!(targets.present["fast"].version, "1.2.3, TLS 4.5");
}

#[test]
fn a_target_that_cannot_run_is_absent_with_the_reason() {
    let why = |from: &str, to: &str| {
        let targets = found(&GATEWAY.replacen(from, to, 1), "port {{listen_port}}").expect("are read");
        targets.absent["fast"].why.clone()
    };
    assert_eq!(why("files", "requires = 'no-such-program'\nfiles"), "no-such-program is not on the PATH");
    assert_eq!(
        why("files", "requires = ['sh', 'no-such', '/no/such']\nabsent = 'ask Bob'\nfiles"),
        "no-such is not on the PATH, /no/such does not exist; ask Bob"
    );
    let scripted = "requires = '{{installed}}/no'\ninstall = { script = 'i.sh', takes = '1 s' }\nfiles";
    let scripted = why("files", scripted);
    assert!(
        scripted.ends_with("/fast/no does not exist; install it with `weir targets install fast`"),
        "{scripted}"
    );
    // The program of the start command must exist, required or not, unless it is a file of the run.
    assert_eq!(why("start = ['true'", "start = ['no-such-program'"), "no-such-program is not on the PATH");
    assert_eq!(why("start = ['true'", "start = ['/no/such'"), "/no/such does not exist");
    assert!(why("'echo', 'fast/1.2.3 (x)'", "'false'").starts_with("`false` failed"));
    assert_eq!(why("after = 'fast/'", "after = 'slow/'"), "`echo fast/1.2.3 (x)` does not print `slow/`");
}

/// The target `fast` with the second form's keys, in which one text is replaced, and the directory of its templates.
fn settable(from: &str, to: &str) -> Result<(tempfile::TempDir, Target), String> {
    let directory = tempfile::tempdir().expect("a directory");
    let description = format!("{GATEWAY}{}", SETTINGS.replacen(from, to, 1));
    let mut targets = found_in(&directory, &description, "port {{listen_port}}")?;
    Ok((directory, targets.present.remove("fast").expect("is here")))
}

#[test]
fn settings_are_placeholders_with_defaults_of_the_run() {
    let (_directory, fast) = settable("", "").expect("is read");
    assert_eq!(fast.description.settings.keys().collect::<Vec<_>>(), ["pool", "queue"]);
    let checked = |chosen: &[(&str, Value)]| {
        let chosen = chosen.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let values = fast.with_settings(&values(), &chosen).expect("renders");
        let prepared = fast.prepare(Mode::H1H1, &values).expect("renders").expect("a process");
        assert_eq!(prepared.gc_log, Some("/d/gc.log".into()));
        let check = prepared.check.expect("has a check");
        assert!(check[0].ends_with("/fast/fast"), "{check:?}");
        check[1..].join(" ")
    };
    assert_eq!(checked(&[]), "-t /d 100 64");
    assert_eq!(checked(&[("pool", 50.into()), ("queue", "9{{listen_port}}".into())]), "-t /d 50 98080");
}

#[test]
fn an_invalid_setting_names_what_was_expected() {
    let (_directory, fast) = settable("", "").expect("is read");
    assert_eq!(fast.check_setting("pool", &50.into()), Ok(()));
    assert_eq!(fast.check_setting("pool", &51.into()), Err("`51`: expected one of 50, 100".into()));
    let unknown = fast.check_setting("pol", &50.into());
    assert_eq!(unknown, Err("unknown setting `pol` of target `fast`: expected one of pool, queue".into()));
    let plain = found(GATEWAY, "port {{listen_port}}").expect("are read");
    let none = plain.present["fast"].check_setting("pool", &50.into());
    assert_eq!(none, Err("unknown setting `pool`: target `fast` has none".into()));
}

#[test]
fn a_wrong_setting_names_file_line_key_and_what_was_expected() {
    let refused = |from: &str, to: &str| settable(from, to).expect_err("is rejected");
    assert_eq!(
        refused("default = 100", "default = 99"),
        "/fast/target.toml:15: settings.pool.default: `99`: expected one of 50, 100"
    );
    assert_eq!(
        refused("[50, 100]", "[50, '100']"),
        "/fast/target.toml:16: settings.pool.values: `\"100\"` is not of the default's type, integer"
    );
    assert_eq!(
        refused("[settings.pool]", "[settings.cert]"),
        "/fast/target.toml:14: settings.cert: `{{cert}}` is a value of the run; choose another name"
    );
    assert!(refused("settings.pool", "settings.installed").contains(":14: settings.installed: "));
    assert!(
        refused("about", "abuot")
            .starts_with("/fast/target.toml:17: unknown field `abuot`; did you mean `about`?")
    );
    assert_eq!(
        refused("{{connections}}", "{{conections}}").split(": expected").next(),
        Some("/fast/target.toml: settings.queue:1: unknown placeholder `conections`")
    );
    assert!(refused("{{pool}}", "{{pol}}").contains("unknown placeholder `pol`: expected one of "));
    assert!(refused("{{dir}}/gc", "{{dri}}/gc").contains("unknown placeholder `dri`"));
    assert_eq!(
        refused("['{{installed}}/fast', '-t', '{{dir}}', '{{pool}}', '{{queue}}']", "[]"),
        "/fast/target.toml:22: check.command: empty: expected a program"
    );
}

/// Regression test: the estimate of a plan was wrong for targets that take seconds to start and to stop.
#[test]
fn a_target_may_declare_the_overhead_of_its_runs() {
    let slow = format!("{GATEWAY}overhead_ms = 6000\n");
    let targets = found(&slow, "port {{listen_port}}").expect("are read");
    assert_eq!(targets.present["fast"].overhead_ms(), Some(6000));
    assert_eq!(targets.present["direct"].overhead_ms(), None);
    let mut experiment = experiment();
    experiment.set_factor("mode", vec!["h1c".into(), "h1c-h1c".into()]);
    let plan = crate::instrument::gateway::testing::plan(experiment, &targets, &crate::RunOptions::default())
        .expect("plans");
    assert_eq!(plan.overheads_ms, [("fast".to_owned(), 6000)].into());
    let wrong = found(&format!("{GATEWAY}overhead_ms = -1\n"), "port {{listen_port}}");
    let wrong = wrong.expect_err("is rejected");
    assert!(wrong.starts_with("/fast/target.toml:14: expected a whole number from 0, found -1"), "{wrong}");
}

#[test]
fn two_targets_may_share_a_template_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("is made");
        fs::write(path, text).expect("is written");
    };
    let plain = "title = 'D'\nabout = 'N'\nmodes = ['h1c']\n";
    write("direct/target.toml", plain);
    write("slow/target.toml", plain);
    write("fast/target.toml", &GATEWAY.replacen("files", "templates = ['../first', '../shared']\nfiles", 1));
    write("fast/a-h1.conf", "own");
    write("shared/a-h1.conf", "not read");
    write("first/a-h1c.conf", "first");
    write("shared/a-h1c.conf", "not read either");
    let targets = find(&experiment().subjects(), &Folders::targets(Some(directory.path())), &values())
        .expect("are read");
    let file = |mode| {
        let prepared = targets.present["fast"].prepare(mode, &values()).expect("renders").expect("a process");
        prepared.files[0].1.clone()
    };
    assert_eq!((file(Mode::H1H1).as_str(), file(Mode::H1cH1c).as_str()), ("own", "first"));
}

/// With another configuration of a program that another target installs.
#[test]
fn a_target_may_run_the_installation_of_another() {
    let directory = tempfile::tempdir().expect("a directory");
    let folder = directory.path().join("fast-real");
    std::fs::create_dir(&folder).expect("is made");
    let text =
        "title = 'T'\nabout = 'A'\nmodes = ['h1c']\ninstalled = 'fast'\nrequires = '{{installed}}/fast'\n";
    std::fs::write(folder.join("target.toml"), text).expect("is written");
    let (target, absent) = super::find::look(directory.path(), "fast-real", &values()).expect("is read");
    assert!(target.installed.ends_with("fast"));
    let why = absent.expect("is absent");
    assert!(why.contains("/fast/fast does not exist; install it with `weir targets install fast`"), "{why}");
}

#[test]
fn a_wrong_description_names_file_line_and_what_was_expected() {
    assert!(
        refused("about", "abuot")
            .starts_with("/fast/target.toml:2: unknown field `abuot`; did you mean `about`?")
    );
    for (value, message) in
        [("5", "a string or a list of strings, found 5"), ("[5]", "a quoted string, found 5")]
    {
        let error = refused("files", &format!("requires = {value}\nfiles"));
        assert_eq!(error, format!("/fast/target.toml:5: expected {message}"));
    }
    assert!(refused("'h1-h1'", "'h1-h9'").starts_with("/fast/target.toml:3: unknown variant `h1-h9`"));
    assert_eq!(
        refused("'h1-h1'", "'h1'"),
        "/fast/target.toml:3: modes: `h1` has no gateway, but `start` is set"
    );
    assert!(
        refused("{{cert}}", "{{crt}}")
            .starts_with("/fast/target.toml: unknown placeholder `crt`: expected one of cert")
    );
    assert!(
        refused("a-{{client_side}}.conf']\nstart", "b.conf']\nstart")
            .contains("files: /fast/b.conf: No such file")
    );
    let template = found(GATEWAY, "x\n{{prot}}").expect_err("is rejected");
    assert!(template.starts_with("/fast/a-h1c.conf:2: unknown placeholder `prot`"), "{template}");
}

#[test]
fn an_unknown_target_names_the_known_ones() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(directory.path().join("slow")).expect("is made");
    std::fs::write(directory.path().join("slow/target.toml"), "").expect("is written");
    let error = find(&experiment().subjects(), &Folders::targets(Some(directory.path())), &values())
        .expect_err("is rejected")
        .to_string();
    assert!(
        error.starts_with("target: unknown name `direct`, not in ")
            && error.contains(": expected one of slow"),
        "{error}"
    );
}

/// The experiments of this repository are valid, and so are their targets, rendered for each of their modes, present
/// or not.
#[test]
fn the_experiments_and_targets_of_this_repository_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let folders = Folders::targets(Some(&folder.join("../targets")));
    let files = std::fs::read_dir(folder).expect("is there").map(|entry| entry.expect("is read").path());
    let files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files
        .into_iter()
        .filter(|file| !fs::read_to_string(file).expect("is read").contains("instrument = \"stacks\""))
    {
        let options = crate::RunOptions { file: file.clone(), ..crate::RunOptions::default() };
        let (experiment, _) =
            crate::experiment::reader::load::<Gateway>(&options).expect("the experiment is right");
        let tls = experiment.any_conditions().expect("are read").tls;
        let values = crate::instrument::gateway::sample_values(Path::new("no-such-program"), &tls);
        let names = experiment.subjects();
        let targets = find(&names, &folders, &values).expect("the targets are right");
        assert_eq!(targets.present.len() + targets.absent.len(), names.len());
        for name in names {
            match name.as_str() {
                "direct" => assert!(targets.present.contains_key(&name)),
                "weir" | "floor" => assert!(targets.absent.contains_key(&name)),
                _ => {}
            }
        }
    }
}

/// The rendered files of each target of this repository in each of its modes, for a run's directory with a space.
fn prepared_in_this_repository() -> Vec<(String, Prepared)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets");
    let mut values = crate::instrument::gateway::sample_values(Path::new("no-such-program"), &Tls::default());
    for name in ["dir", "cert", "key", "identity", "ca"] {
        values = values.with(name, format!("/my results/{name}"));
    }
    let names = Folders::targets(Some(&directory)).names().expect("are listed");
    let targets = names.iter().map(|name| find::look(&directory, name, &values).expect("is right").0);
    let prepared = |target: Target| {
        let prepare = |mode: &Mode| target.prepare(*mode, &values).expect("renders");
        let prepared: Vec<Prepared> = target.description.modes.iter().filter_map(prepare).collect();
        prepared.into_iter().map(move |prepared| (target.name.clone(), prepared))
    };
    targets.flat_map(prepared).collect()
}

/// Regression test: with `--out 'my results'` nginx, HAProxy and Caddy read a path up to the space, and all their runs
/// were invalid.
#[test]
fn a_path_may_have_a_space_in_it() {
    for (name, prepared) in prepared_in_this_repository() {
        for (file, text) in &prepared.files {
            let before = text.match_indices("/my results/").map(|(at, _)| &text[..at]);
            for before in before {
                assert!(before.ends_with('"'), "{name}: {file}: {before}");
            }
        }
    }
}

/// Regression test: a shell built the program first and so started minutes before the JVM, which put the collector's
/// log at the wrong time; and only the newest part of a long log was left.
#[test]
fn a_collectors_log_is_whole_and_counts_from_the_start_of_the_process() {
    let logs = |word: &&String| word.starts_with("-Xlog:gc");
    let mut found = 0;
    for (name, prepared) in prepared_in_this_repository() {
        if let Some(log) = prepared.command.iter().find(logs) {
            assert_eq!(prepared.command[0], "java", "{name}");
            assert!(log.ends_with(":uptime:filecount=0"), "{name}: {log}");
            found += 1;
        }
    }
    assert_eq!(found, 11, "two targets, in four modes and in seven");
}

/// Regression test: nginx on several cores had one socket, whose backlog the first worker took whole, and no cores of
/// their own for the workers; more than 4096 users per worker got no connection, and bodies went through files.
#[test]
fn nginx_and_haproxy_are_configured_for_the_run() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../targets");
    let values = crate::instrument::gateway::sample_values(Path::new("no-such-program"), &Tls::default());
    let values = values.with_size(9000, 100_000, &[1, 3]);
    let text = |name: &str| {
        let target = find::look(&directory, name, &values).expect("is right").0;
        let prepared = target.prepare(Mode::H1H1c, &values).expect("renders").expect("a process");
        prepared.files.into_iter().map(|(_, text)| text).collect::<String>()
    };
    for (names, words) in [
        (
            ["nginx", "nginx-current"],
            ["auto 1010;", "worker_connections 18512;", "client_body_buffer_size 112500;", " reuseport;"]
                .as_slice(),
        ),
        (["haproxy", "haproxy-current"], &["cpu-map auto:1/1-2 1 3\n", "maxconn 9256\n"]),
    ] {
        for (name, word) in names.into_iter().flat_map(|name| words.iter().map(move |word| (name, word))) {
            assert!(text(name).contains(word), "{name}: {word}");
        }
    }
}
