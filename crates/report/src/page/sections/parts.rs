//! What the sections share: headings, panels side by side, folded parts.

use crate::markup::{details, escape};
use crate::model::Group;

/// So many panels, or rows of a table, are shown at once; where there are more, each mode can be folded away.
pub(crate) const AT_ONCE: usize = 12;

/// A chart with its caption: the mode, and what else tells it from its neighbours.
pub(crate) struct Panel<'a> {
    pub(crate) group: &'a Group,
    pub(crate) words: String,
    pub(crate) chart: String,
}

/// Panels side by side; where there are many, by mode, the first mode open.
pub(crate) fn panels(all: &[Panel<'_>]) -> String {
    if all.len() <= AT_ONCE {
        return grid(&all.iter().collect::<Vec<_>>());
    }
    let mut html = String::new();
    for (index, mode) in in_order(all.iter().map(|panel| panel.group.mode.as_str())).into_iter().enumerate() {
        let of_mode: Vec<&Panel<'_>> = all.iter().filter(|panel| panel.group.mode == mode).collect();
        let words = of_mode[0].group.mode_words;
        html.push_str(&details(index == 0, &folded(mode, words, of_mode.len(), "panels"), &grid(&of_mode)));
    }
    // On paper nothing can be unfolded.
    format!("<div class=\"unfolded\">\n{html}</div>\n")
}

/// The line of a part that can be folded away.
pub(crate) fn folded(mode: &str, words: &str, count: usize, what: &str) -> String {
    format!("<b>{}</b> {} <small>{count} {what}</small>", escape(mode), escape(words))
}

fn grid(panels: &[&Panel<'_>]) -> String {
    let figure = |panel: &&Panel<'_>| {
        let Panel { group, words, chart } = panel;
        let (mode, mode_words) = (escape(&group.mode), escape(group.mode_words));
        let more =
            if words.is_empty() { String::new() } else { format!("<br><small>{}</small>", escape(words)) };
        format!(
            "<figure><figcaption><b>{mode}</b> <small>{mode_words}</small>{more}</figcaption>{chart}</figure>\n"
        )
    };
    format!("<div class=\"panels\">\n{}</div>\n", panels.iter().map(figure).collect::<String>())
}

/// Each once, in the order of their first.
pub(crate) fn in_order<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for one in all {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}

/// A section's heading and the note below it; both are HTML.
pub(crate) fn heading(title: &str, note: &str) -> String {
    let note = if note.is_empty() { String::new() } else { format!("<p class=\"note\">{note}</p>\n") };
    format!("<h2>{title}</h2>\n{note}")
}
