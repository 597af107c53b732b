//! Advice on a server's offers from a probe alone: a line per finding.

use crate::fact::Facts;
use crate::finding::findings;
use crate::product::Product;
use crate::rule::Rules;
use std::iter::once;
use weir_probe::Report;

/// A probe's report should fit one screen: a change that typically saves a smaller share of CPU time gets no line.
const WORTH_A_LINE: f64 = 0.08;

/// The costs of a server's offers, by the rules that need only a probe, most valuable first.
pub fn costs(report: &Report) -> Vec<String> {
    let mut all = Facts::default();
    all.add_probe(report);
    // The facts contain only the best kind of resumption in one version, but each kind may fail.
    let each = report.resumptions.iter().map(|tried| {
        let mut facts = Facts::default();
        facts.add_resumption(tried);
        facts
    });
    lines(once(all).chain(each))
}

/// The findings of each set of facts, without duplicates.
fn lines(sets: impl Iterator<Item = Facts>) -> Vec<String> {
    let mut rules = Rules::built_in();
    rules.0.retain(|rule| rule.typical >= WORTH_A_LINE);
    let mut lines = Vec::new();
    for finding in sets.flat_map(|facts| findings(&rules, &facts, Product::Generic, None)) {
        let line = format!("{}: {}", finding.saw, finding.why);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_probe::Resumed;

    #[test]
    fn each_kind_of_resumption_has_a_line_and_small_gains_have_none() {
        let tried = |kind, resumed, failed| {
            let mut facts = Facts::default();
            facts.add_resumption(&Resumed { kind, tries: 10, resumed, failed, not_tried: None });
            facts
        };
        let mut all = tried("resume-1.3-psk", 4, 1);
        all.add("tls.tickets", 5.0, "test");
        let kinds =
            [("resume-1.3-psk", 4, 1), ("resume-1.2-ticket", 9, 1), ("resume-1.2-id", 0, 0), ("none", 0, 10)];
        let lines = lines(once(all).chain(kinds.map(|(kind, resumed, failed)| tried(kind, resumed, failed))));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("resume-1.3-psk 4 of 9: workers or hosts do not share"), "{lines:?}");
        assert!(lines[1].contains("resume-1.2-id 0 of 10: the server does not accept"), "{lines:?}");
    }
}
