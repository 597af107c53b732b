//! The documented commands: from the code blocks of README and docs, and after `Examples:` in each `--help`.

use crate::common::Weir;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A command as pasted, with its comment, its continuation lines and its here-document.
pub(super) struct Shown(pub(super) String);

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The page with commands that depend on each other; tests/tutorial.rs runs them.
const IN_ORDER: &str = "TUTORIAL.md";

/// All commands, by source.
pub(super) fn all() -> Vec<(String, Vec<Shown>)> {
    let of_pages =
        pages().into_iter().filter(|(name, _)| name != IN_ORDER).map(|(name, text)| (name, of_page(&text)));
    let of_helps = helps().into_iter().map(|(name, text)| (format!("{name} --help"), of_help(&text)));
    of_pages.chain(of_helps).filter(|(_, commands)| !commands.is_empty()).collect()
}

/// The text of each `--help`, by command.
pub(super) fn helps() -> BTreeMap<String, String> {
    let mut helps = BTreeMap::new();
    let mut waiting = vec![vec!["weir".to_owned()]];
    while let Some(path) = waiting.pop() {
        let words: Vec<&str> = path[1..].iter().map(String::as_str).chain(["--help"]).collect();
        let ended = Weir::run(&words);
        assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
        let subcommands = ended.stdout.lines().skip_while(|line| *line != "Commands:").skip(1);
        for line in subcommands.take_while(|line| line.starts_with("  ")) {
            let name = line.strip_prefix("  ").filter(|line| !line.starts_with(' '));
            if let Some(name) = name.and_then(|line| line.split(' ').next()).filter(|name| *name != "help") {
                waiting.push([path.clone(), vec![name.to_owned()]].concat());
            }
        }
        helps.insert(path.join(" "), ended.stdout);
    }
    helps
}

/// The inline code of README and docs that starts like a Weir command, by file.
pub(super) fn mentions() -> Vec<(String, String)> {
    let mut mentions = Vec::new();
    for (name, text) in pages() {
        let text: Vec<&str> =
            split_blocks(&text).into_iter().filter(|(is_block, _)| !is_block).map(|(_, line)| line).collect();
        let text = text.join("\n");
        let spans = text.split('`').skip(1).step_by(2).filter(|span| span.starts_with("weir "));
        mentions
            .extend(spans.map(|span| (name.clone(), span.split_whitespace().collect::<Vec<_>>().join(" "))));
    }
    mentions
}

fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> = vec![root.join("README.md")];
    for folder in ["docs", "docs/gateway"] {
        let entries = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    pages.sort();
    let name = |path: &Path| {
        let inside = path.strip_prefix(&root).unwrap();
        inside.strip_prefix("docs").unwrap_or(inside).to_str().unwrap().to_owned()
    };
    pages.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// Each line, and whether it is in a code block.
fn split_blocks(text: &str) -> Vec<(bool, &str)> {
    let mut is_block = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        match line.trim_start().starts_with("```") {
            true => is_block = !is_block,
            false => lines.push((is_block, line)),
        }
    }
    lines
}

/// `sh` blocks and, in other blocks, the lines after a prompt.
fn of_page(text: &str) -> Vec<Shown> {
    let mut kind = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), kind) {
            (Some(_), Some(_)) => kind = None,
            (Some(of), None) => kind = Some(of),
            (None, Some("sh")) => lines.push(line),
            (None, Some(_)) => lines.extend(line.strip_prefix("$ ")),
            (None, None) => {}
        }
    }
    commands(&lines)
}

fn of_help(text: &str) -> Vec<Shown> {
    let lines = text.lines().skip_while(|line| !matches!(*line, "Examples:" | "Example:")).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| line.starts_with("  ")).map(|line| &line[2..]).collect();
    commands(&lines)
}

/// Lines with their continuations: after a backslash, or up to the end of a here-document.
fn commands(lines: &[&str]) -> Vec<Shown> {
    let mut commands: Vec<String> = Vec::new();
    let mut lines = lines.iter();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut command = (*line).to_owned();
        let end = line.split_once("<<'").and_then(|(_, rest)| rest.split_once('\'')).map(|(end, _)| end);
        while command.ends_with('\\')
            || command.trim_end().ends_with('|')
            || end.is_some_and(|end| !command.ends_with(&format!("\n{end}")))
        {
            let Some(line) = lines.next() else { break };
            command = format!("{command}\n{line}");
        }
        commands.push(command);
    }
    commands.into_iter().map(Shown).collect()
}

#[test]
fn commands_are_parsed_like_a_shell_does() {
    let page = "a\n```sh\nweir a \\\n  b  # why\n# a comment\nmkdir x && cat > y <<'EOF'\nz = 1\nEOF\n\nweir c\n```\n\
        ```text\n$ weir d\nsaid\n```\n```toml\nweir = 1\n```\n";
    let read: Vec<String> = of_page(page).iter().map(ToString::to_string).collect();
    assert_eq!(read, ["weir a \\\n  b  # why", "mkdir x && cat > y <<'EOF'\nz = 1\nEOF", "weir c", "weir d"]);
    let help = "Usage\n\nExamples:\n  # Why:\n  weir a\n  weir b \\\n    c\n\nMore.\n";
    let read: Vec<String> = of_help(help).iter().map(ToString::to_string).collect();
    assert_eq!(read, ["weir a", "weir b \\\n  c"]);
}
