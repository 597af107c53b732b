//! Tables in GitHub-flavoured Markdown.

use super::Table;
use std::fmt::Write as _;

/// A heading, notices, and a table with its own heading for each of `tables` that has rows.
pub fn render(title: &str, labels: &[String], tables: &[Table]) -> String {
    let mut text = format!("# {}\n", escaped(title));
    for label in labels {
        let _ = write!(text, "\n- {}", escaped(label));
    }
    text.push('\n');
    for Table { title, columns, rows } in tables.iter().filter(|table| !table.rows.is_empty()) {
        let _ = writeln!(text, "\n## {}\n", escaped(title));
        row(&mut text, columns.iter().copied());
        row(&mut text, columns.iter().map(|_| "---"));
        for fields in rows {
            row(&mut text, fields.iter().map(String::as_str));
        }
    }
    text
}

fn row<'a>(text: &mut String, fields: impl Iterator<Item = &'a str>) {
    text.push('|');
    for field in fields {
        let _ = write!(text, " {} |", escaped(field));
    }
    text.push('\n');
}

/// Escapes text for a table cell.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_its_fields_apart() {
        let rows = vec![vec!["a|b".to_owned(), "<b>\nx_y".to_owned()]];
        let tables = [
            Table { title: "T".into(), columns: vec!["one", "two"], rows },
            Table { title: "Empty".into(), columns: vec!["one"], rows: vec![] },
        ];
        let expected = "# N\n\n- L\n\n## T\n\n| one | two |\n| --- | --- |\n| a\\|b | &lt;b> x\\_y |\n";
        assert_eq!(render("N", &["L".into()], &tables), expected);
    }
}
