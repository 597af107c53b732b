//! A profile as text, at most 100 columns wide.

use crate::category::Category;
use crate::difference::Difference;
use crate::profile::{CategoryShare, Contributor, Profile};
use crate::stacks::UNRESOLVED;
use crate::symbol::unprefixed;
use weir_report::text::{WIDTH, columns, cut, flow};
use weir_stats::count;

/// The functions named per category.
const NAMED: usize = 3;

/// A larger share of unknown functions gets a hint.
const MUCH_UNKNOWN: f64 = 0.05;

/// The table of categories below a headline, such as `weir (PID 4711): 0.99 cores for 10.0 s`.
pub fn text(headline: &str, profile: &Profile) -> String {
    let mut text = String::new();
    flow(&mut text, &format!("{headline}, {} samples", count(profile.samples)), 0, 2);
    text.push('\n');
    let head = ["category", "self", "with callees", "95 % of self", "mostly"].map(str::to_owned);
    let mut lines = vec![head];
    let room = WIDTH - 25 - 4 - " 100.0 % with callees [100.0, 100.0]".len();
    lines.extend(profile.categories.iter().map(|one| line(one, room)));
    columns(&mut text, &lines);
    for hint in hints(profile) {
        text.push('\n');
        flow(&mut text, &hint, 0, 2);
    }
    text
}

/// The table of changes below a headline; `unit` is that of the totals, such as `%` or `us`.
pub fn text_of_difference(headline: &str, difference: &Difference, unit: &str) -> String {
    let mut text = String::new();
    flow(&mut text, headline, 0, 2);
    text.push('\n');
    let [before, after] = difference.totals;
    let mut lines = vec![
        [
            "category".to_owned(),
            format!("before {unit}"),
            format!("after {unit}"),
            "change".into(),
            "95 %".into(),
        ],
        ["all".to_owned(), figure(before), figure(after), signed(after - before), String::new()],
    ];
    lines.extend(difference.changes.iter().map(|one| {
        [
            one.category.words().to_owned(),
            figure(one.before),
            figure(one.after),
            signed(one.change),
            format!("[{}, {}]", signed(one.low), signed(one.high)),
        ]
    }));
    columns(&mut text, &lines);
    text
}

/// What limits a profile, and the next step.
pub fn hints(profile: &Profile) -> Vec<String> {
    let Some(unknown) = profile.categories.iter().find(|one| one.category == Category::Unknown) else {
        return Vec::new();
    };
    let Some(most) = unknown.functions.first().filter(|_| unknown.own.share > MUCH_UNKNOWN) else {
        return Vec::new();
    };
    let share = format!("{:.0} % is unknown", unknown.own.share * 100.0);
    vec![match (most.symbol.as_str(), most.module.as_str()) {
        (UNRESOLVED, "") => format!(
            "{share}, mostly code that was compiled at run time: start Node.js with --perf-basic-prof; a JVM needs \
             `jcmd PID Compiler.perfmap` before the profile is read."
        ),
        (UNRESOLVED, module) => format!(
            "{share}, mostly in {module}, which has no symbols: install its debug package, or profile a build that is \
             not stripped."
        ),
        (symbol, _) => format!("{share}, mostly {symbol} and the like: no rule covers them."),
    }]
}

fn line(one: &CategoryShare, room: usize) -> [String; 5] {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let interval = format!("[{:.1}, {:.1}]", one.own.low * 100.0, one.own.high * 100.0);
    let shown = if one.functions.is_empty() { &one.outermost } else { &one.functions };
    [
        one.category.words().to_owned(),
        percent(one.own.share),
        percent(one.inclusive.share),
        interval,
        cut(&names(shown), room).to_owned(),
    ]
}

/// The first functions, without the prefixes of vendored libraries.
fn names(functions: &[Contributor]) -> String {
    let name = |one: &Contributor| match one.symbol.as_str() {
        UNRESOLVED if !one.module.is_empty() => one.module.clone(),
        symbol => unprefixed(symbol).to_owned(),
    };
    let mut names: Vec<String> = Vec::new();
    for name in functions.iter().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.truncate(NAMED);
    names.join(", ")
}

fn figure(value: f64) -> String {
    format!("{value:.1}")
}

fn signed(value: f64) -> String {
    format!("{value:+.1}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use crate::stacks::Stacks;

    fn profile(folded: &str) -> Profile {
        Profile::new(&Stacks::from_folded(folded).expect("parses"), &Rules::built_in())
    }

    #[test]
    fn a_table_has_every_category_and_fits_a_terminal() {
        let long = "x".repeat(300);
        let profile = profile(&format!("main;SSL_read;aws_lc_0_39_1_x25519_{long} 60\nmain;memcpy 40\n"));
        let text = text("weir (PID 1): 1.00 cores for 10.0 s", &profile);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(
            text.contains("key exchange") && text.contains(" 60.0 % ") && text.contains(" x25519_xxx"),
            "{text}"
        );
        assert!(text.starts_with("weir (PID 1): 1.00 cores for 10.0 s, 100 samples\n\n"), "{text}");
    }

    #[test]
    fn unknown_code_gets_the_next_step() {
        let hint = |folded: &str| hints(&profile(folded)).pop().unwrap_or_default();
        assert!(hint("main;[unknown] 1\n").contains("--perf-basic-prof"));
        assert!(hint("main;[unknown] [libfoo.so.1] 1\n").contains("libfoo.so.1, which has no symbols"));
        assert!(hint("main;frobnicate 1\n").contains("no rule covers them"));
        assert_eq!(hint("main;memcpy 99\nmain;frobnicate 1\n"), "");
    }

    #[test]
    fn a_difference_has_signs() {
        let (before, after) = (profile("main;memcpy 1\n"), profile("main;memcpy 1\nmain;malloc 1\n"));
        let text = text_of_difference("a to b", &Difference::new(&before, &after, [100.0, 100.0]), "%");
        assert!(text.contains("-50.0") && text.contains("+50.0"), "{text}");
    }
}
