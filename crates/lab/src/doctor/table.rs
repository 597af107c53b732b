//! Findings for people: a screen of 100 columns.

use super::{Finding, Level};
use crate::table::WIDTH;
use std::fmt::Write as _;

/// The width of levels, and of names.
const LEVEL: usize = 6;
const NAME: usize = 13;

/// A table of all findings, the worst first, and below it what can be done.
pub fn table(findings: &[Finding]) -> String {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| finding.level);
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let mut text = format!(
        "{} bad, {} to note, {} good. Nothing was changed.\n\n",
        count(Level::Bad),
        count(Level::Note),
        count(Level::Good)
    );
    for finding in &sorted {
        let head = format!("{:<LEVEL$}{:<NAME$}", word(finding.level), finding.id);
        wrap(&mut text, &head, &finding.value, LEVEL + NAME);
    }
    for finding in
        sorted.iter().filter(|finding| finding.level != Level::Good && finding.value != super::UNKNOWN)
    {
        let head = format!("\n{}: ", finding.id);
        wrap(&mut text, &head, &format!("{} {}", finding.advice, finding.why), 2);
        if let Some(command) = &finding.mend {
            // In one piece, to be copied.
            let _ = writeln!(text, "  $ {command}");
        }
    }
    text
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Bad => "bad",
        Level::Note => "note",
        Level::Good => "good",
    }
}

/// Writes `head` and the words behind it, further lines with an indent.
fn wrap(text: &mut String, head: &str, words: &str, indent: usize) {
    text.push_str(head);
    let mut column = head.trim_start_matches('\n').chars().count();
    let mut is_first = true;
    for word in words.split_whitespace() {
        // What is longer than a line is cut: a name of a cgroup may have hundreds of characters.
        let word: String = word.chars().take(WIDTH - indent).collect();
        let length = word.chars().count();
        if !is_first && column + 1 + length > WIDTH || is_first && column + length > WIDTH {
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        } else if !is_first {
            text.push(' ');
            column += 1;
        }
        text.push_str(&word);
        column += length;
        is_first = false;
    }
    text.push('\n');
}
