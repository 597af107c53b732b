//! JUnit XML for CI systems.

use std::fmt::Write as _;
use weir_stats::verdict::Verdict;

/// One test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The kind of case; appended to the suite's name.
    pub class: &'static str,
    /// Its name, unique in its class.
    pub name: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its text, whatever the outcome.
    pub says: String,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Passed.
    Passed,
    /// Failed, with the reason.
    Failed(String),
    /// It could not be checked.
    Error(String),
    /// Undecided, with the reason.
    Skipped(String),
}

impl Outcome {
    /// For a comparison: undecided is skipped.
    pub fn of(verdict: Verdict, is_failure: bool, words: &str) -> Self {
        match verdict {
            _ if is_failure => Self::Failed(words.into()),
            Verdict::Undecided => Self::Skipped(words.into()),
            Verdict::Different | Verdict::Equivalent => Self::Passed,
        }
    }
}

/// One suite of cases.
pub fn render(suite: &str, cases: &[Case]) -> String {
    let count = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    let failures = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let errors = count(|outcome| matches!(outcome, Outcome::Error(_)));
    let tests = cases.len();
    let counts =
        format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"");
    let suite = escaped(suite);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{suite}\" {counts}>\n  \
         <testsuite name=\"{suite}\" {counts}>\n"
    );
    for Case { class, name, outcome, says } in cases {
        let _ = writeln!(text, "    <testcase classname=\"{suite}.{class}\" name=\"{}\">", escaped(name));
        let _ = match outcome {
            Outcome::Passed => Ok(()),
            Outcome::Failed(why) => writeln!(text, "      <failure message=\"{}\"/>", escaped(why)),
            Outcome::Error(why) => writeln!(text, "      <error message=\"{}\"/>", escaped(why)),
            Outcome::Skipped(why) => writeln!(text, "      <skipped message=\"{}\"/>", escaped(why)),
        };
        if !says.is_empty() {
            let _ = writeln!(text, "      <system-out>{}</system-out>", escaped(says));
        }
        text.push_str("    </testcase>\n");
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

/// Text for an attribute or between tags; characters invalid in XML 1.0 become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_escapes() {
        let case = |name: &str, outcome| Case { class: "c", name: name.into(), outcome, says: String::new() };
        let cases = [
            case("a", Outcome::Passed),
            case("b \"<&>\"\u{1}", Outcome::Failed("x\ny".into())),
            Case { says: "1 < 2".into(), ..case("c", Outcome::Skipped("why".into())) },
        ];
        let text = render("s", &cases);
        assert!(
            text.contains("<testsuite name=\"s\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\">"),
            "{text}"
        );
        assert!(text.contains("name=\"b &quot;&lt;&amp;&gt;&quot;\u{fffd}\""), "{text}");
        assert!(text.contains("<failure message=\"x&#10;y\"/>"), "{text}");
        assert!(text.contains("<system-out>1 &lt; 2</system-out>"), "{text}");
    }
}
