//! Findings as text, 100 columns wide.

use crate::finding::{Finding, Level, UNKNOWN};
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// The maximum width, except for commands, which are not wrapped.
const WIDTH: usize = 100;

/// Column widths of levels and names.
const LEVEL: usize = 6;
const NAME: usize = 13;

/// A table of all findings, worst first, followed by advice.
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
    for finding in sorted.iter().filter(|finding| finding.level != Level::Good && finding.value != UNKNOWN) {
        let head = format!("\n{}: ", finding.id);
        wrap(&mut text, &head, &format!("{} {}", finding.advice, finding.why), 2);
        if let Some(command) = &finding.fix {
            // Not wrapped, for copying.
            let _ = writeln!(text, "  $ {command}");
        }
    }
    text
}

/// Prints the bad findings on standard error before a measurement.
pub fn warn(findings: &[Finding]) {
    for finding in findings.iter().filter(|finding| finding.level == Level::Bad) {
        let _ = writeln!(io::stderr(), "doctor: {}: {}. {}", finding.id, finding.value, finding.advice);
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Bad => "bad",
        Level::Note => "note",
        Level::Good => "good",
    }
}

/// Writes `head` and the words after it, with a hanging indent.
fn wrap(text: &mut String, head: &str, words: &str, indent: usize) {
    text.push_str(head);
    let mut column = head.trim_start_matches('\n').chars().count();
    let mut is_first = true;
    for word in words.split_whitespace() {
        // Truncates words longer than a line: a cgroup name may have hundreds of characters.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Subject;

    #[test]
    fn the_worst_is_first_and_commands_are_in_one_piece() {
        let command = "sudo sysctl -w net.core.somaxconn=4096";
        let text = table(&[
            Subject::new("aslr", "A layout is noise.").good("on"),
            Subject::new("time-wait", "Ports run out.").note("not reused", "Turn it on."),
            Subject::new("backlog", "Connections are dropped.")
                .bad("somaxconn 128", "Raise it.")
                .fix(command),
        ]);
        assert!(text.starts_with("1 bad, 1 to note, 1 good. "), "{text}");
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(at("bad   backlog") < at("note  time-wait"), "{text}");
        assert!(at("note  time-wait") < at("good  aslr"), "{text}");
        assert!(text.contains(&format!("\n  $ {command}\n")), "{text}");
        assert!(!text.contains("\naslr:"), "good findings have no advice: {text}");
    }

    #[test]
    fn lines_are_cut_at_the_width() {
        let long = "x".repeat(5000);
        let words = "many words ".repeat(100);
        let text = table(&[Subject::new("cgroup", "why").bad(long, &words)]);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }
}
