//! The paths in a module's code that begin at the crate's root, in `use` declarations and elsewhere.

use crate::modules::Module;

/// The use of a room.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// The first name after the crate's root.
    pub(crate) room: String,
    /// The path as written, without its list.
    pub(crate) path: String,
}

/// All of a module, in the order of its code.
pub(crate) fn of(module: &Module) -> Vec<Import> {
    let code = &module.code;
    let mut imports = Vec::new();
    for (at, start) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        let is_inner = code[..at].ends_with(|before: char| is_of_name(before) || before == ':');
        let rest = &code[at..];
        let from_root = match start {
            "crate::" => Some(&rest[start.len()..]),
            _ => from_root(rest, module.path.len()),
        };
        if let Some(from_root) = from_root.filter(|_| !is_inner) {
            let written = &rest[..rest.len() - from_root.len()];
            imports.extend(first_names(from_root, written));
        }
    }
    imports
}

/// What follows a chain of `super::` that leads from a module at this depth to the crate's root.
fn from_root(chain: &str, depth: usize) -> Option<&str> {
    let mut rest = chain;
    for _ in 0..depth {
        rest = rest.strip_prefix("super::")?;
    }
    Some(rest)
}

/// The first name of the path that follows `written`, or those of all the paths in its list.
fn first_names(path: &str, written: &str) -> Vec<Import> {
    let Some(list) = path.strip_prefix('{') else {
        let rest = &path[..path.find(|c| !is_of_name(c) && c != ':').unwrap_or(path.len())];
        let room = rest.split("::").next().unwrap_or_default().to_owned();
        return vec![Import { room, path: format!("{written}{}", rest.trim_end_matches(':')) }];
    };
    let names = top_level(list).into_iter().map(|one| one.split([':', ' ']).next().unwrap_or_default());
    let names = names.filter(|name| !name.is_empty());
    names.map(|name| Import { room: name.into(), path: format!("{written}{name}") }).collect()
}

/// The elements of a list whose opening brace has been read; a list within an element stays whole.
fn top_level(list: &str) -> Vec<&str> {
    let (mut depth, mut from) = (1, 0);
    let mut elements = Vec::new();
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if (c == ',' && depth == 1) || depth == 0 {
            elements.push(list[from..at].trim());
            from = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    elements
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
