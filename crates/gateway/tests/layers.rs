//! The layers of the gateway: which of its modules may use which others. The table lists every use outside of tests.
//! Before you add one, make sure that the dependency is needed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A module, and the paths of the crate that it may use.
const MAY_USE: [(&str, &[&str]); 17] = [
    ("hash", &[]),
    ("keys", &[]),
    // A macro: `config` and `observe` each expand its list with a macro of their own.
    ("log_fields", &[]),
    ("network", &[]),
    ("text", &[]),
    ("variables", &[]),
    ("resolve", &[]),
    ("route", &["heads::imitations", "network", "text", "variables"]),
    (
        "config",
        &[
            "hash",
            "heads::imitations",
            "heads::set_cookie",
            "log_fields",
            "network",
            "resolve",
            "route",
            "variables",
        ],
    ),
    ("reason", &["config"]),
    ("limits", &["config", "network"]),
    ("deadlines", &["config", "drain", "plan", "reason"]),
    ("observe", &["config", "grpc", "limits", "log_fields", "mirror", "reason", "text", "variables"]),
    ("health", &["config", "grpc", "limits", "observe"]),
    ("admin", &["config", "heads::own", "observe", "process", "worker"]),
    // `process` uses only the function of `admin` that starts its threads.
    ("process", &["admin", "config", "health", "limits", "observe", "resolve", "worker"]),
    ("harness", &["config", "health", "keys", "limits", "observe", "worker"]),
];

/// Modules without an entry in the table must not use these.
const ABOVE_THEM: [&str; 4] = ["admin", "harness", "process", "resolve"];

#[test]
fn modules_use_those_of_the_table_alone() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut faults = Vec::new();
    let mut found = BTreeSet::new();
    for file in files(&src) {
        let module = module_of(file.strip_prefix(&src).unwrap());
        let allowed = MAY_USE.iter().find(|(name, _)| *name == module).map(|(_, allowed)| allowed);
        let text = fs::read_to_string(&file).unwrap();
        for used in used_by(&text).filter(|used| !is_within(used, &module)) {
            let entry = allowed.and_then(|allowed| allowed.iter().find(|entry| is_within(used, entry)));
            found.extend(entry.map(|entry| (module.clone(), *entry)));
            let is_fault = match allowed {
                Some(_) => entry.is_none(),
                None => ABOVE_THEM.iter().any(|above| is_within(used, above)),
            };
            if is_fault {
                faults.push(format!("{} uses `{used}`", file.display()));
            }
        }
    }
    let all = MAY_USE.iter().flat_map(|(module, allowed)| allowed.iter().map(move |entry| (*module, *entry)));
    for (module, entry) in all.filter(|(module, entry)| !found.contains(&((*module).to_owned(), *entry))) {
        faults.push(format!("`{module}` does not use `{entry}` any more: take it out of the table"));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// All source files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let below = entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    below.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// The top-level module of a file.
fn module_of(path: &Path) -> String {
    let first = path.iter().next().unwrap().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The paths after `crate::`, without those in comments and tests.
fn used_by(text: &str) -> impl Iterator<Item = &str> {
    let (code, _) = text.split_once("#[cfg(test)]\nmod tests").unwrap_or((text, ""));
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| line.split("crate::").skip(1)).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && !"_:".contains(c)).unwrap_or(rest.len());
        rest[..end].trim_end_matches(':')
    })
}

/// Whether a path is this module or below it.
fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}
