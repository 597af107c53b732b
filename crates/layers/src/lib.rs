//! The rooms of a crate, for tests: its top-level modules, and which of them may use which others, as a table in a
//! document says. An import that the table does not allow is a difference, and so is a row that no import needs.

mod code;
mod imports;
mod modules;
mod table;

use modules::Module;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use table::Row;

/// Compares the imports below `source`, the directory of a crate's `lib.rs`, with the table below `heading` in a
/// document. Returns their differences, a line each. Test code is not compared.
///
/// # Errors
/// A source file that cannot be read.
pub fn differences(source: &Path, document: &str, heading: &str) -> io::Result<Vec<String>> {
    let rows = table::rows(document, heading);
    let modules = modules::of_crate(source)?;
    let root = modules.iter().find(|module| module.path.is_empty());
    let renamed = root.map(|root| code::renamed_crates(&root.code)).unwrap_or_default();
    let rooms: BTreeSet<&str> = modules.iter().filter_map(Module::room).collect();

    let mut differences = of_table(&rows, &rooms);
    let mut used: BTreeSet<(&str, String)> = BTreeSet::new();
    for module in &modules {
        let Some(room) = module.room() else { continue };
        let allowed = rows.iter().find(|row| row.room == room).map_or(&[][..], |row| row.may_use.as_slice());
        for import in imports::of(module) {
            if import.room == room || renamed.contains(&import.room) {
                continue;
            }
            let Module { file, .. } = module;
            if !rooms.contains(import.room.as_str()) {
                differences.push(format!("{file}: {}: expected the path of a room", import.path));
            } else if !allowed.contains(&import.room) {
                let allowed = if allowed.is_empty() { "no other room".into() } else { allowed.join(", ") };
                differences.push(format!("{file}: {}: `{room}` may use {allowed}", import.path));
            }
            used.insert((room, import.room));
        }
    }
    for Row { room, may_use } in &rows {
        let is_unused = |other: &&String| !used.contains(&(room.as_str(), other.to_string()));
        let unused = may_use.iter().filter(is_unused);
        differences.extend(unused.map(|other| format!("`{room}` may use `{other}`, and no import needs it")));
    }
    Ok(differences)
}

/// The faults of the table itself: each room has a row, and uses only rooms of earlier rows, so that there is no cycle.
fn of_table(rows: &[Row], rooms: &BTreeSet<&str>) -> Vec<String> {
    let mut faults = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let room = &row.room;
        if !rooms.contains(room.as_str()) {
            faults.push(format!("`{room}` has a row, and is no room"));
        }
        let is_later = |other: &&String| !rows[..index].iter().any(|row| row.room == **other);
        let later = row.may_use.iter().filter(is_later);
        faults.extend(later.map(|other| format!("`{room}` may use `{other}`, which has no earlier row")));
    }
    let has_row = |room: &&&str| rows.iter().any(|row| row.room == **room);
    faults.extend(rooms.iter().filter(|room| !has_row(room)).map(|room| format!("`{room}` has no row")));
    faults
}

#[cfg(test)]
mod tests;
