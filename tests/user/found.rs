//! Experiments, targets and engines are found from any directory: local, next to the program, or built in.

use crate::common::Ended;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// An installed program, `PREFIX/bin/weir`, its own cache, and an empty working directory.
struct Installed(tempfile::TempDir);

/// The user's own gateway, a relay with its own title.
const MINE: &str = r#"title = "Mine"
about = "My gateway, as I run it."
modes = ["h1c-h1c"]
start = ["{{weir}}", "relay", "--workers", "1", "--listen", "http://127.0.0.1:{{listen_port}}", "--to", "http://{{upstream_address}}:{{upstream_port}}"]
ready = { connect = "{{listen_address}}:{{listen_port}}", timeout_ms = 20000 }
"#;

impl Installed {
    fn new() -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_weir"));
        let installed = Self(tempfile::tempdir().unwrap());
        let bin = installed.path("prefix/bin");
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir(installed.path("here")).unwrap();
        let link = bin.join("weir");
        fs::hard_link(program, &link).or_else(|_| fs::copy(program, link).map(drop)).unwrap();
        installed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs the program in the working directory.
    fn run(&self, args: &[&str]) -> Ended {
        let mut weir = Command::new(self.path("prefix/bin/weir"));
        weir.args(args).current_dir(self.path("here")).stdin(Stdio::null());
        weir.env("XDG_CACHE_HOME", self.path("cache")).env_remove("WEIR_TARGETS").env_remove("WEIR_ENGINES");
        let ended = weir.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended { code: ended.status.code(), stdout: text(ended.stdout), stderr: text(ended.stderr) }
    }

    /// Runs the program, which must exit with 0, and returns its output.
    #[track_caller]
    fn well(&self, args: &[&str]) -> String {
        let Ended { code, stdout, stderr } = self.run(args);
        assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}");
        stdout
    }

    /// The unpacked directories, named by their contents.
    fn unpacked(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("cache/weir/built-in")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
    }
}

#[test]
fn an_experiment_is_found_by_its_name_from_an_empty_directory() {
    let weir = Installed::new();
    assert!(weir.unpacked().is_empty());
    let plans = ["quickstart", "quickstart.toml", "experiments/quickstart.toml"].map(|name| {
        weir.well(&["plan", name, "--set", "target=[\"direct\",\"weir\"]", "--set", "baseline=[\"weir\"]"])
    });
    assert!(plans[0].starts_with("quickstart: What does a request through a gateway cost"), "{}", plans[0]);
    assert!(plans.iter().all(|plan| *plan == plans[0]));
    let unpacked = weir.unpacked();
    assert_eq!(unpacked.len(), 1, "{unpacked:?}");
    let from = format!("    from {}", unpacked[0].join("targets/weir").display());
    assert!(plans[0].contains(&from), "{}", plans[0]);
    assert!(weir.well(&["stacks", "plan", "avx512", "--quick"]).contains("avx512"));
    assert!(weir.well(&["stacks", "list"]).contains("rustls-0.23-ring"));
}

#[test]
fn unknown_names_are_reported_with_the_known_ones() {
    let weir = Installed::new();
    for command in [&["run", "quickstrat"][..], &["plan", "quickstrat"], &["stacks", "run", "quickstrat"]] {
        let ended = weir.run(command);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        let wanted = "weir: quickstrat: no such experiment: looked for quickstrat, experiments/quickstrat.toml; built-in: advise, avx512,";
        assert!(ended.stderr.starts_with(wanted), "{}", ended.stderr);
    }
    for command in
        [&["targets", "install", "nginz"], &["targets", "check", "nginz"], &["stacks", "build", "nginz"]]
    {
        let ended = weir.run(command);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        let parts = [": unknown name `nginz`, not in built-in ", ": expected one of ", "e"];
        assert!(parts.iter().all(|part| ended.stderr.contains(part)), "{}", ended.stderr);
    }
    assert!(weir.unpacked().is_empty(), "nothing was unpacked");
    let help = weir.well(&["run", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("built-in one: advise, avx512, ") && help.contains(" quickstart, "), "{help}");
}

#[test]
fn the_users_own_files_take_precedence_over_the_installed_ones() {
    let weir = Installed::new();
    weir.write("here/targets/mine/target.toml", MINE);
    weir.write("here/targets/floor/target.toml", &MINE.replace("Mine", "My floor"));
    weir.write("prefix/share/weir/targets/theirs/target.toml", &MINE.replace("Mine", "Theirs"));
    weir.write("prefix/share/weir/targets/mine/target.toml", &MINE.replace("Mine", "Not read"));
    let list = weir.well(&["targets"]);
    assert!(list.contains("\nfrom targets: floor, mine\n"), "{list}");
    assert!(list.contains("share/weir/targets: theirs\n") && list.contains(", nginx,"), "{list}");
    let set = "target=[\"mine\",\"floor\",\"theirs\",\"weir\"]";
    let only = ["--set", set, "--set", "mode=h1c-h1c", "--set", "baseline=[\"weir\"]"];
    let plan = weir.well(&[&["plan", "quickstart"], &only[..]].concat());
    for title in ["target mine: Mine", "target floor: My floor", "target theirs: Theirs"] {
        assert!(plan.contains(title), "{title}: {plan}");
    }
    // The user's own file, elsewhere, with a target next to it.
    let quickstart = fs::read_to_string(weir.unpacked()[0].join("experiments/quickstart.toml")).unwrap();
    weir.write("elsewhere/experiments/mine.toml", &quickstart);
    weir.write("elsewhere/targets/mine/target.toml", &MINE.replace("Mine", "Beside the file"));
    let plan = weir.well(&[&["plan", "../elsewhere/experiments/mine.toml"], &only[..]].concat());
    for title in ["target mine: Beside the file", "target floor: My floor", "target theirs: Theirs"] {
        assert!(plan.contains(title), "{title}: {plan}");
    }
    weir.write("prefix/share/weir/experiments/theirs.toml", &quickstart);
    weir.well(&[&["plan", "theirs"], &only[..]].concat());
    let ended = weir.run(&["plan", "quickstart", "--set", "targets_directory=no-such"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(
        ended.stderr.starts_with("weir: --set targets_directory=no-such: no-such: no such directory"),
        "{}",
        ended.stderr
    );
}

/// From an empty directory to a result, which names its sources and can be reported again and continued.
#[test]
fn the_users_own_gateway_next_to_the_built_in_ones() {
    let weir = Installed::new();
    weir.write("here/targets/mine/target.toml", MINE);
    let words = [
        "quickstart",
        "--quick",
        // Needed on a busy machine.
        "--allow-invalid",
        "--set",
        "target=[\"mine\",\"floor\"]",
        "--set",
        "baseline=[\"floor\"]",
        "--set",
        "mode=h1c-h1c",
        "--set",
        "load_model=saturated",
        "--set",
        "connections=4",
    ];
    let text = weir.well(&[&["run", "--out", "out"], &words[..]].concat());
    assert!(text.contains("mine"), "{text}");
    let machine: Value =
        serde_json::from_str(&fs::read_to_string(weir.path("here/out/machine.json")).unwrap()).unwrap();
    let folder = |name: &str| PathBuf::from(machine["folders"][name].as_str().unwrap());
    assert_eq!(folder("mine"), weir.path("here/targets/mine").canonicalize().unwrap());
    assert_eq!(folder("floor"), weir.unpacked()[0].join("targets/floor"));
    let plan: Value =
        serde_json::from_str(&fs::read_to_string(weir.path("here/out/plan.json")).unwrap()).unwrap();
    assert_eq!(plan["file"], "quickstart");
    weir.well(&["report", "out"]);
    // Equal contents in another directory count as the same.
    fs::remove_dir_all(weir.path("cache")).unwrap();
    let run = fs::read_dir(weir.path("here/out/runs")).unwrap().map(|entry| entry.unwrap().path());
    let run = run.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with('b')).min().unwrap();
    fs::remove_file(&run).unwrap();
    weir.well(&[&["run", "--continue", "out"], &words[..]].concat());
    assert!(run.is_file());
    weir.write("here/targets/mine/target.toml", &MINE.replace("as I run it", "otherwise"));
    let ended = weir.run(&[&["run", "--continue", "out"], &words[..]].concat());
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("another build, description or content of `mine`"), "{}", ended.stderr);
}

#[test]
fn programs_that_start_together_unpack_it_once() {
    let weir = Installed::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| weir.well(&["plan", "gateways", "--set", "target=direct", "--set", "mode=h1c"]));
        }
    });
    assert_eq!(weir.unpacked().len(), 1);
}
