//! Shell completions and manual pages, which are generated from the flags.

use crate::common::{Ended, Weir, peer};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

#[track_caller]
fn good(args: &[&str]) -> String {
    let Ended { code, stdout, stderr } = Weir::run(args);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "weir {args:?}");
    stdout
}

/// The long flags that `--help` lists.
fn long_flags(help: &str) -> BTreeSet<&str> {
    let named = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    named.filter_map(|line| line.split([' ', ',', '[']).find(|word| word.starts_with("--"))).collect()
}

#[test]
fn every_shell_gets_a_script_that_knows_every_flag_of_load() {
    let help = good(&["load", "--help"]);
    let flags = long_flags(&help);
    assert!(flags.contains("--requests-per-connection") && flags.len() > 20, "{flags:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = good(&["completions", shell]);
        for flag in &flags {
            assert!(script.contains(flag.trim_start_matches("--")), "{shell}: {flag}");
        }
    }
    let Ended { code, stderr, .. } = Weir::run(&["completions", "tcsh"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("tcsh") && stderr.contains("bash, elvish, fish, powershell, zsh"), "{stderr}");
}

#[test]
fn bash_completes_subcommands_and_flags() {
    let Some(bash) = peer("bash") else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("weir.bash");
    fs::write(&file, good(&["completions", "bash"])).unwrap();
    let checked = Command::new(&bash).arg("-n").arg(&file).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    for (words, expected) in [
        ("weir lo", "load"),
        ("weir load --requests-", "--requests-per-connection"),
        ("weir man --d", "--dir"),
    ] {
        assert_eq!(completed(&bash, &file, words), [expected], "{words}");
    }
}

/// Bash's completions after these words: calls the function as bash does on a tab.
fn completed(bash: &Path, script: &Path, words: &str) -> Vec<String> {
    let code = r#"source "$1"
        COMP_WORDS=($2) COMP_LINE=$2 COMP_POINT=${#2} COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _weir weir "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let shell = Command::new(bash).args(["-c", code, "bash"]).arg(script).arg(words).output().unwrap();
    assert!(shell.status.success(), "{shell:?}");
    String::from_utf8(shell.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_page_of_load_has_every_long_flag_and_the_examples() {
    let page = good(&["man", "load"]);
    assert!(page.contains(".TH weir-load 1"), "{page}");
    let help = good(&["load", "--help"]);
    for flag in long_flags(&help) {
        // A literal hyphen is escaped with a backslash (groff_char(7)).
        let typed = flag.replace('-', r"\-");
        assert!(page.contains(&format!(r"\fB{typed}\fR")), "{flag}");
    }
    let examples = page.split_once(".SH EXAMPLES\n.nf\n").expect("examples are unfilled").1;
    assert!(examples.starts_with("weir load http://127.0.0.1:8080/bytes/1000\n"), "{examples}");
    let codes = page.split_once(".SH \"EXIT STATUS\"\n.nf\n").expect("exit codes are unfilled").1;
    assert!(codes.starts_with("0  measured\n"), "{codes}");
}

#[test]
fn a_directory_gets_a_page_for_each_subcommand_and_for_theirs() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    good(&["man", "--dir", pages.to_str().unwrap()]);
    let written: BTreeSet<String> = fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut expected = BTreeSet::from(["weir.1".to_owned()]);
    for name in commands(&[]) {
        let below = commands(&[&name]);
        expected.extend(below.iter().map(|below| format!("weir-{name}-{below}.1")));
        expected.insert(format!("weir-{name}.1"));
    }
    assert!(expected.contains("weir-targets-install.1") && expected.contains("weir-stacks-run.1"));
    assert_eq!(written, expected);
    // Every named page exists, and every page is named.
    let mut named = BTreeSet::from(["weir.1".to_owned()]);
    for page in &written {
        let text = fs::read_to_string(pages.join(page)).unwrap().replace(r"\-", "-");
        let names = text.lines().filter_map(|line| line.strip_suffix("(1)"));
        named.extend(names.map(|name| format!("{name}.1")));
    }
    assert_eq!(named, written);
    assert_eq!(fs::read_to_string(pages.join("weir-load.1")).unwrap(), good(&["man", "load"]));
    let install = fs::read_to_string(pages.join("weir-targets-install.1")).unwrap();
    assert!(install.contains(".TH weir-targets-install 1"), "{install}");
    assert_eq!(install, good(&["man", "targets", "install"]));
    assert_eq!(install, good(&["man", "targets-install"]));
}

/// The subcommands that `weir WORDS --help` lists.
fn commands(words: &[&str]) -> Vec<String> {
    let help = good(&[words, &["--help"]].concat());
    let Some((_, listed)) = help.split_once("Commands:\n") else { return Vec::new() };
    let listed = listed.split_once("\n\n").unwrap().0;
    // Continued descriptions are indented further.
    let names =
        listed.lines().filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn signals_and_headers_of_the_gateway_are_notes_after_its_examples() {
    let page = good(&["man", "serve"]);
    let notes = page.split_once(".SH NOTES\n").expect("notes").1;
    assert!(notes.contains("SIGHUP") && notes.contains(r"X\-Forwarded\-For"), "{notes}");
    assert!(page.split_once(".SH EXAMPLES\n").is_some_and(|(_, rest)| rest.starts_with(".nf\nweir serve")));
}

#[test]
fn the_error_for_a_missing_page_names_the_existing_ones() {
    let Ended { code, stderr, .. } = Weir::run(&["man", "laod"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("unknown subcommand `laod`: expected one of ") && stderr.contains(", load, "),
        "{stderr}"
    );
    let Ended { code, stderr, .. } = Weir::run(&["man", "targets", "instal"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("unknown subcommand `targets instal`: expected one of ")
            && stderr.contains(", targets-install, "),
        "{stderr}"
    );
    let Ended { code, stderr, .. } = Weir::run(&["man", "--dir", "/proc/no/such"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("--dir: cannot write /proc/no/such: "), "{stderr}");
}
