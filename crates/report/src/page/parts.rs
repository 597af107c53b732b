//! Shared parts of the sections: headings, side-by-side panels, collapsible parts.

use crate::chart::bars::{self, Bar};
use crate::markup::{details, escape};
use crate::model::{Cell, Group};

/// Maximum panels, or table rows, shown at once; with more, each mode is collapsible.
pub(crate) const AT_ONCE: usize = 12;

/// A chart with its caption: the mode and distinguishing factors.
pub(crate) struct Panel<'a> {
    pub(crate) group: &'a Group,
    pub(crate) words: String,
    pub(crate) chart: String,
}

/// Side-by-side panels; if there are many, by mode, with the first mode open.
pub(crate) fn panels(all: &[Panel<'_>]) -> String {
    if all.len() <= AT_ONCE {
        return panel_grid(&all.iter().collect::<Vec<_>>());
    }
    let mut html = String::new();
    for (index, (mode, of_mode)) in alike(all, |panel| &panel.group.mode).into_iter().enumerate() {
        let words = of_mode[0].group.mode_words;
        html.push_str(&details(
            index == 0,
            &folded(mode, words, of_mode.len(), "panels"),
            &panel_grid(&of_mode),
        ));
    }
    // In print nothing can be expanded.
    format!("<div class=\"unfolded\">\n{html}</div>\n")
}

/// A panel per group with a bar per cell, all on one scale; `titles` are those of the chart and its
/// axis.
pub(crate) fn bar_panels<'a>(
    groups: &[&'a Group],
    titles: impl Fn(&Group) -> [String; 2],
    bar: impl Fn(&'a Group, &'a Cell) -> Bar<'a>,
) -> Vec<Panel<'a>> {
    let bars = |group: &'a Group| group.cells.iter().map(|cell| bar(group, cell)).collect();
    let all: Vec<(&Group, Vec<Bar<'_>>)> = groups.iter().map(|group| (*group, bars(group))).collect();
    let reach = bars::reach(all.iter().flat_map(|(_, bars)| bars));
    let panel = |(group, bars): &(&'a Group, Vec<Bar<'_>>)| {
        let [title, axis] = titles(group);
        Some(Panel { group, words: group.words(), chart: bars::draw(&title, &axis, bars, reach)? })
    };
    all.iter().filter_map(panel).collect()
}

/// The summary line of a collapsible part.
pub(crate) fn folded(mode: &str, words: &str, count: usize, what: &str) -> String {
    format!("<b>{}</b> {} <small>{count} {what}</small>", escape(mode), escape(words))
}

fn panel_grid(panels: &[&Panel<'_>]) -> String {
    grid(panels.iter().map(|Panel { group, words, chart }| {
        let (mode, mode_words) = (escape(&group.mode), escape(group.mode_words));
        let more =
            if words.is_empty() { String::new() } else { format!("<br><small>{}</small>", escape(words)) };
        (format!("<b>{mode}</b> <small>{mode_words}</small>{more}"), chart.as_str())
    }))
}

/// Charts side by side, each under its caption; both are HTML.
pub(crate) fn grid<'a>(charts: impl Iterator<Item = (String, &'a str)>) -> String {
    let figure = |(caption, chart): (String, &str)| {
        format!("<figure><figcaption>{caption}</figcaption>{chart}</figure>\n")
    };
    format!("<div class=\"panels\">\n{}</div>\n", charts.map(figure).collect::<String>())
}

/// Groups items by key, in order of first occurrence.
pub(crate) fn alike<T, K: PartialEq>(
    all: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for one in all {
        let key = key(&one);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(one),
            None => groups.push((key, vec![one])),
        }
    }
    groups
}

/// A section's heading and the note below it; both are HTML.
pub(crate) fn heading(title: &str, note: &str) -> String {
    let note = if note.is_empty() { String::new() } else { format!("<p class=\"note\">{note}</p>\n") };
    format!("<h2>{title}</h2>\n{note}")
}
