//! HTML: escaping, numbers, tables, collapsible parts.

use crate::text::NONE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;

/// Escapes text for HTML and XML elements and quoted attributes. Drops characters that XML forbids.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' => escaped.push(character),
            other if other.is_control() => {}
            other => escaped.push(other),
        }
    }
    escaped
}

/// The kind of a column, which determines its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Names the row: stays visible when the table scrolls sideways.
    Key,
    /// Text without line breaks.
    Text,
    /// Sentences.
    Wide,
    /// Figures.
    Number,
}

/// A table builder. Heads and cells are HTML; columns without any value are omitted.
#[derive(Clone, Debug)]
pub struct Table {
    head: Vec<(Column, String)>,
    rows: Vec<(&'static str, Vec<String>)>,
}

impl Table {
    /// A table without rows, and the titles of its columns.
    pub fn new<T: Into<String>>(head: impl IntoIterator<Item = (Column, T)>) -> Self {
        let head = head.into_iter().map(|(column, title)| (column, title.into())).collect();
        Self { head, rows: Vec::new() }
    }

    /// Adds a row of as many cells as there are columns; `class` may be empty.
    pub fn row(&mut self, class: &'static str, cells: impl IntoIterator<Item = String>) {
        self.rows.push((class, cells.into_iter().collect()));
    }

    /// The whole table as HTML.
    pub fn finish(self) -> String {
        let has_value = |index: usize| {
            self.rows
                .iter()
                .any(|(_, cells)| cells.get(index).is_some_and(|cell| !cell.is_empty() && cell != NONE))
        };
        let shown: Vec<usize> = (0..self.head.len()).filter(|index| has_value(*index)).collect();
        let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
        for &index in &shown {
            let (column, title) = &self.head[index];
            let _ = write!(html, "<th{}>{title}</th>", class(*column));
        }
        html.push_str("</tr></thead><tbody>\n");
        for (row, cells) in &self.rows {
            match row.is_empty() {
                true => html.push_str("<tr>"),
                false => html.push_str(&format!("<tr class=\"{row}\">")),
            }
            for &index in &shown {
                let column = self.head[index].0;
                let cell = cells.get(index).map_or(NONE, String::as_str);
                let tag = if column == Column::Key { "th" } else { "td" };
                let scope = if column == Column::Key { " scope=\"row\"" } else { "" };
                let _ = write!(html, "<{tag}{scope}{}>{cell}</{tag}>", class(column));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
        html
    }
}

fn class(column: Column) -> &'static str {
    match column {
        Column::Key => " class=\"key\"",
        Column::Text => " class=\"t\"",
        Column::Wide => " class=\"t wide\"",
        Column::Number => "",
    }
}

/// An SVG document with styles and scripts of its own, which stay inside.
pub fn framed(svg: &str) -> String {
    let data = STANDARD.encode(svg);
    format!(
        "<object class=\"flame\" type=\"image/svg+xml\" data=\"data:image/svg+xml;base64,{data}\"></object>\n"
    )
}

/// A collapsible part; `summary` and `body` are HTML.
pub fn details(is_open: bool, summary: &str, body: &str) -> String {
    let open = if is_open { " open" } else { "" };
    format!("<details{open}><summary>{summary}</summary>\n{body}</details>\n")
}

/// Arguments as a shell command line.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a String>) -> String {
    words.into_iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// An argument quoted for a shell.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_control_characters_are_left_out() {
        assert_eq!(escape("<a href=\"x\">&'\u{1b}[1m\u{0}\n"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;[1m\n");
    }

    #[test]
    fn a_column_without_a_value_is_left_out() {
        let head = [(Column::Key, "name"), (Column::Number, "none"), (Column::Number, "some")];
        let mut table = Table::new(head);
        table.row("", ["a".into(), NONE.into(), "1".into()]);
        table.row("first", ["b".into(), String::new(), NONE.into()]);
        let html = table.finish();
        assert!(!html.contains(">none<") && html.contains("<th>some</th>"), "{html}");
        assert!(
            html.contains("<tr class=\"first\"><th scope=\"row\" class=\"key\">b</th><td>-</td></tr>"),
            "{html}"
        );
    }

    #[test]
    fn words_for_a_shell() {
        assert_eq!(["a=b", "", "it's"].map(quote), ["a=b", "''", "'it'\\''s'"]);
    }
}
