//! The table of a document: a row for each room, with the rooms that it may use.

/// A row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) room: String,
    pub(crate) may_use: Vec<String>,
}

/// The rows below a heading of the second level, up to the next one.
pub(crate) fn rows(document: &str, heading: &str) -> Vec<Row> {
    let lines = document.lines().skip_while(|line| *line != heading).skip(1);
    lines.take_while(|line| !line.starts_with("## ")).filter_map(row).collect()
}

/// The first cell names the room, the second one the others; the table's own heading has no names.
fn row(line: &str) -> Option<Row> {
    let mut cells = line.strip_prefix('|')?.split('|').map(names);
    let room = cells.next()?.into_iter().next()?;
    Some(Row { room, may_use: cells.next()? })
}

/// The names in backticks.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
