//! `weir targets`: the gateways, their versions, and how to get the absent ones.

use super::find::look;
use super::samples;
use crate::base::error::LabError;
use crate::found::Folders;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use weir_report::text::flow;

/// The indent of the lines below a target's first.
const INDENT: usize = 4;

/// Targets on a terminal.
#[derive(Clone, Debug)]
pub struct List {
    /// A row for each, with its description and its directory or why it is absent, at most 100 columns wide.
    pub text: String,
    /// The targets with an invalid description.
    pub wrong: Vec<String>,
}

/// Lists the targets of these directories. Neither an absent target nor an invalid description is an error: both are
/// listed as such.
///
/// # Errors
/// Directories without any target.
pub fn list(folders: &Folders) -> Result<List, LabError> {
    let names = folders.names()?;
    let values = samples()?;
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut list = List { text: String::new(), wrong: Vec::new() };
    let mut by_folder: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for name in names {
        let folder = folders.folder(&name)?;
        by_folder.entry(folder.clone()).or_default().push(name.clone());
        let (state, version, lines) = match look(&folder, &name, &values) {
            Ok((target, None)) => {
                let files = target.required.iter().map(|file| file.display().to_string());
                (
                    "present",
                    target.version.clone(),
                    [target.description.about].into_iter().chain(files).collect(),
                )
            }
            Ok((target, Some(why))) => ("absent", String::new(), vec![target.description.about, why]),
            Err(error) => {
                list.wrong.push(name.clone());
                ("invalid", String::new(), vec![error.to_string()])
            }
        };
        let row = format!("{name:width$}  {state:7}  {version}");
        let _ = writeln!(list.text, "{}", row.trim_end());
        lines.iter().for_each(|line: &String| flow(&mut list.text, line, INDENT, INDENT));
    }
    // A single directory needs no label.
    for (folder, names) in by_folder.iter().filter(|_| by_folder.len() > 1) {
        flow(&mut list.text, &format!("from {}: {}", folder.display(), names.join(", ")), 0, INDENT);
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use weir_report::text::WIDTH;

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
    fn a_row_has_state_version_and_description() {
        let long = "word ".repeat(30);
        let directory = targets(&[
            ("fast", "about = 'Fast.'\nversion = { command = ['echo', 'fast 1.2'], after = 'fast ' }"),
            ("gone", "about = 'Slow.'\nrequires = 'no-such-program'\nabsent = 'ask Bob'"),
            ("longer", &format!("about = '{long}'")),
            ("odd", "abuot = 'Odd.'"),
        ]);
        let list = list(&Folders::targets(Some(directory.path()))).expect("is listed");
        let lines: Vec<&str> = list.text.lines().collect();
        assert_eq!(lines[0], "fast    present  1.2");
        assert_eq!(lines[1], "    Fast.");
        assert_eq!(
            lines[2..5],
            ["gone    absent", "    Slow.", "    no-such-program is not on the PATH; ask Bob"]
        );
        assert_eq!(lines[5], "longer  present");
        assert!(lines[6].len() > 90 && lines[7].starts_with("    word"), "{lines:?}");
        assert_eq!(lines[8], "odd     invalid");
        assert!(list.text.contains("target.toml:3: unknown field `abuot`"), "{}", list.text);
        assert_eq!(list.wrong, ["odd"]);
        assert!(lines.iter().all(|line| line.len() <= WIDTH || !line.trim().contains(' ')), "{}", list.text);
    }
}
