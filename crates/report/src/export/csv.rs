//! Comma-separated values (RFC 4180, with line feeds alone).

use super::Table;

/// A header, and a line for each row.
pub fn render(table: &Table) -> String {
    let mut text = String::new();
    line(&mut text, table.columns.iter().copied());
    for row in &table.rows {
        line(&mut text, row.iter().map(String::as_str));
    }
    text
}

fn line<'a>(text: &mut String, fields: impl Iterator<Item = &'a str>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&quoted(field));
    }
    text.push('\n');
}

/// A field, quoted if necessary.
fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_field_is_quoted() {
        let row = ["plain", "a,b", "say \"no\"", "two\nlines", ""].map(str::to_owned).to_vec();
        let table = Table { title: String::new(), columns: vec!["a", "b", "c", "d", "e"], rows: vec![row] };
        assert_eq!(render(&table), "a,b,c,d,e\nplain,\"a,b\",\"say \"\"no\"\"\",\"two\nlines\",\n");
    }
}
