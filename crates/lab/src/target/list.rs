//! `weir targets`: which gateways are here, in which version, and how to get the others.

use super::description::folders;
use super::find::look;
use super::samples;
use crate::error::{ConfigError, LabError};
use crate::table::flow;
use std::fmt::Write;
use std::path::Path;

/// How far the lines below a target's first are indented.
const INDENT: usize = 4;

/// The targets of a directory, on a terminal.
#[derive(Clone, Debug)]
pub struct List {
    /// One row for each, with what it is and where or why not, at most 100 columns wide.
    pub text: String,
    /// The targets whose description is wrong.
    pub wrong: Vec<String>,
}

/// Lists the targets of `directory`. One that is absent is no error, nor is one whose description is wrong: it is listed
/// as such.
///
/// # Errors
/// A directory without any target.
pub fn list(directory: &Path) -> Result<List, LabError> {
    let names = names(directory)?;
    let values = samples()?;
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut list = List { text: String::new(), wrong: Vec::new() };
    for name in names {
        let (state, version, lines) = match look(directory, &name, &values) {
            Ok((target, None)) => {
                let (files, _) = target.required(&values)?;
                let files = files.into_iter().map(|file| file.display().to_string());
                ("present", target.version.clone(), [target.about].into_iter().chain(files).collect())
            }
            Ok((target, Some(why))) => ("absent", String::new(), vec![target.about, why]),
            Err(error) => {
                list.wrong.push(name.clone());
                ("wrong", String::new(), vec![error.to_string()])
            }
        };
        let row = format!("{name:width$}  {state:7}  {version}");
        let _ = writeln!(list.text, "{}", row.trim_end());
        lines.iter().for_each(|line: &String| flow(&mut list.text, line, INDENT, INDENT));
    }
    Ok(list)
}

/// The names of the targets in a directory; none is an error.
pub(super) fn names(directory: &Path) -> Result<Vec<String>, ConfigError> {
    let names = folders(directory);
    if names.is_empty() {
        let message = "no target is there: allowed is a directory of folders with a target.toml";
        return Err(ConfigError::new(directory.display(), message));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::WIDTH;
    use std::fs;

    fn targets(descriptions: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in descriptions {
            fs::create_dir(directory.path().join(name)).expect("is made");
            let text = format!("title = 'T'\nmodes = ['h1c']\n{text}");
            fs::write(directory.path().join(name).join("target.toml"), text).expect("is written");
        }
        directory
    }

    #[test]
    fn a_row_says_whether_it_is_here_and_what_it_is() {
        let long = "word ".repeat(30);
        let directory = targets(&[
            ("fast", "about = 'Fast.'\nversion = { command = ['echo', 'fast 1.2'], after = 'fast ' }"),
            ("gone", "about = 'Slow.'\nrequires = 'no-such-program'\nabsent = 'ask Bob'"),
            ("longer", &format!("about = '{long}'")),
            ("odd", "abuot = 'Odd.'"),
        ]);
        let list = list(directory.path()).expect("is listed");
        let lines: Vec<&str> = list.text.lines().collect();
        assert_eq!(lines[0], "fast    present  1.2");
        assert_eq!(lines[1], "    Fast.");
        assert_eq!(
            lines[2..5],
            ["gone    absent", "    Slow.", "    no-such-program is not on the PATH; ask Bob"]
        );
        assert_eq!(lines[5], "longer  present");
        assert!(lines[6].len() > 90 && lines[7].starts_with("    word"), "{lines:?}");
        assert_eq!(lines[8], "odd     wrong");
        assert!(list.text.contains("target.toml:3: unknown field `abuot`"), "{}", list.text);
        assert_eq!(list.wrong, ["odd"]);
        assert!(lines.iter().all(|line| line.len() <= WIDTH || !line.trim().contains(' ')), "{}", list.text);
    }

    #[test]
    fn a_directory_without_targets_is_an_error() {
        let error = list(Path::new("/no/such")).expect_err("is refused").to_string();
        assert!(error.starts_with("/no/such: no target is there: allowed is "), "{error}");
    }
}
