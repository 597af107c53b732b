//! A profile as one HTML file: the table, and the flame graph inside it.

use crate::profile::{CategoryShare, Profile};
use crate::text::hints;
use weir_report::chart::bars::{self, Bar};
use weir_report::chart::palette::Look;
use weir_report::markup::{Column, Table, escape, framed};
use weir_report::page::shell;
use weir_stats::count;

/// The page of a profile; `flame` is its flame graph, `notes` what limits it.
pub fn page(title: &str, headline: &str, profile: &Profile, notes: &[String], flame: &str) -> String {
    let mut body = format!(
        "<header><h1>{}</h1>\n<p class=\"about\">{}, {} samples</p>\n",
        escape(title),
        escape(headline),
        count(profile.samples)
    );
    let notes: Vec<String> = notes.iter().cloned().chain(hints(profile)).collect();
    if !notes.is_empty() {
        let items: String = notes.iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
        body.push_str(&format!("<ul class=\"labels\">{items}</ul>"));
    }
    body.push_str("</header>\n<h2>CPU by category</h2>\n");
    body.push_str(
        "<p class=\"note\">Each sample counts for one category: that of the innermost function that a rule covers. \
         Whiskers and intervals are those of sampling, 95 %.</p>\n",
    );
    body.push_str(&chart(profile));
    body.push_str(&table(profile));
    body.push_str(
        "<h2>Flame graph</h2>\n<p class=\"note\">A function is as wide as its share of samples, and stands on its \
         caller. Click one to zoom in; search at the top right.</p>\n",
    );
    body.push_str(&framed(flame));
    shell(title, &body)
}

fn chart(profile: &Profile) -> String {
    let bar = |one: &'_ CategoryShare| Bar {
        name: one.category.words(),
        look: Look { place: 1, is_again: false },
        value: Some(one.own.share * 100.0),
        interval: Some((one.own.low * 100.0, one.own.high * 100.0)),
        parts: Vec::new(),
        words: format!("{:.1} %", one.own.share * 100.0),
    };
    let bars: Vec<Bar<'_>> = profile.categories.iter().map(bar).collect();
    let reach = bars::reach(&bars);
    let svg = bars::draw("CPU by category", "% of samples", &bars, reach).unwrap_or_default();
    format!("<div class=\"panels\"><figure>{svg}</figure></div>\n")
}

fn table(profile: &Profile) -> String {
    let mut table = Table::new([
        (Column::Key, "category"),
        (Column::Number, "self"),
        (Column::Number, "95 %"),
        (Column::Number, "with callees"),
        (Column::Wide, "functions, by samples"),
        (Column::Wide, "outermost functions"),
    ]);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for one in &profile.categories {
        let functions = |all: &[crate::Contributor]| {
            let name = |one: &crate::Contributor| format!("{} ({})", escape(&one.symbol), count(one.samples));
            all.iter().map(name).collect::<Vec<_>>().join(", ")
        };
        table.row(
            "",
            [
                escape(one.category.words()),
                percent(one.own.share),
                format!("{:.1} to {:.1}", one.own.low * 100.0, one.own.high * 100.0),
                percent(one.inclusive.share),
                functions(&one.functions),
                functions(&one.outermost),
            ],
        );
    }
    table.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flame;
    use crate::rules::Rules;
    use crate::stacks::Stacks;

    #[test]
    fn a_page_is_one_file_and_escapes_names() {
        let stacks = Stacks::from_folded("main;<b>evil</b> 1\nmain;memcpy 99\n").expect("parses");
        let profile = Profile::new(&stacks, &Rules::built_in());
        let flame = flame::graph("f", &stacks).expect("is drawn");
        let page = page("t <i>", "headline", &profile, &["A note.".into()], &flame);
        assert!(page.starts_with("<!doctype html>") && page.contains("<li>A note.</li>"));
        assert!(!page.contains("<b>evil") && page.contains("&lt;b&gt;evil") && page.contains("t &lt;i&gt;"));
        assert!(!page.contains("src=\"") && !page.contains("href=\"http"), "self-contained");
    }
}
