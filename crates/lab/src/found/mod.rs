//! Finds experiments, targets and engines: in the current directory, beside the program, and built into it.

mod built_in;
mod file;
mod folders;

pub use file::ExperimentFile;
pub use folders::Folders;

use crate::base::error::{ConfigError, LabError};
use std::path::{Component, Path, PathBuf};

const EXPERIMENTS: &str = "experiments";

/// The file of an experiment, given as a path, or as a name with or without `experiments/` and `.toml`: the path
/// itself, or `experiments/NAME.toml` in the current directory, beside the program, or built in.
/// Errors: an unknown experiment, with the paths tried and the built-in ones; a cache that cannot be written.
pub(crate) fn experiment(given: &Path) -> Result<ExperimentFile, LabError> {
    let name = name(given);
    let file = name.as_ref().map(|name| format!("{name}.toml"));
    let local = file.as_ref().map(|file| Path::new(EXPERIMENTS).join(file));
    let own: Vec<PathBuf> = [given.to_owned()].into_iter().chain(local).collect();
    if let Some(path) = own.iter().find(|path| path.is_file()) {
        let base = path.parent().unwrap_or(Path::new("")).to_owned();
        return Ok(ExperimentFile { path: path.clone(), base, is_own: true });
    }
    let came = |path| ExperimentFile { path, base: PathBuf::new(), is_own: false };
    let Some(file) = file else { return Err(nowhere(given, &own).into()) };
    let beside: Vec<PathBuf> = folders::beside(EXPERIMENTS).map(|folder| folder.join(&file)).collect();
    if let Some(path) = beside.iter().find(|path| path.is_file()) {
        return Ok(came(path.clone()));
    }
    if built_in::has(&format!("{EXPERIMENTS}/{file}")) {
        return Ok(came(built_in::unpacked()?.join(EXPERIMENTS).join(file)));
    }
    Err(nowhere(given, &[own, beside].concat()).into())
}

/// The experiment file of a stored result. If it no longer exists, its targets are searched as for one that came with
/// the program.
pub(crate) fn stored(given: &Path) -> ExperimentFile {
    let gone = ExperimentFile { path: given.to_owned(), base: PathBuf::new(), is_own: false };
    experiment(given).unwrap_or(gone)
}

/// The names of the built-in experiments.
pub fn experiments() -> Vec<&'static str> {
    let files = built_in::below(EXPERIMENTS).filter(|name| !name.contains('/'));
    let mut names: Vec<&str> = files.filter_map(|name| name.strip_suffix(".toml")).collect();
    names.sort_unstable();
    names
}

/// The built-in files below a folder: name and text.
pub(crate) fn texts(folder: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    built_in::below(folder).filter_map(move |name| Some((name, built_in::text(&format!("{folder}/{name}"))?)))
}

/// The name in `quickstart`, `quickstart.toml` or `experiments/quickstart.toml`; `None` for any other path.
fn name(given: &Path) -> Option<String> {
    let mut parts = given.components().filter(|part| *part != Component::CurDir);
    let (first, second, None) = (parts.next()?, parts.next(), parts.next()) else { return None };
    let last = match second {
        Some(last) if first.as_os_str() == EXPERIMENTS => last,
        Some(_) => return None,
        None => first,
    };
    let Component::Normal(last) = last else { return None };
    let last = last.to_str()?;
    Some(last.strip_suffix(".toml").unwrap_or(last).to_owned())
}

fn nowhere(given: &Path, tried: &[PathBuf]) -> ConfigError {
    let mut tried: Vec<String> = tried.iter().map(|path| path.display().to_string()).collect();
    tried.dedup();
    let message = format!(
        "no such experiment: looked for {}; built-in: {}",
        tried.join(", "),
        experiments().join(", ")
    );
    ConfigError::new(given.display(), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_three_spellings() {
        for given in
            ["quickstart", "quickstart.toml", "experiments/quickstart.toml", "./experiments/quickstart"]
        {
            assert_eq!(name(Path::new(given)).as_deref(), Some("quickstart"), "{given}");
        }
        for given in
            ["", ".", "..", "mine/quickstart.toml", "/experiments/quickstart.toml", "experiments/a/b"]
        {
            assert_eq!(name(Path::new(given)), None, "{given}");
        }
    }

    #[test]
    fn a_given_file_wins_and_is_the_users_own() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("quickstart.toml");
        std::fs::write(&path, "").expect("is written");
        let found = experiment(&path).expect("is found");
        assert_eq!(found, ExperimentFile { path, base: folder.path().to_owned(), is_own: true });
    }

    #[test]
    fn an_unknown_experiment_is_rejected_with_the_built_in_ones() {
        for given in ["quickstrat", "/no/such/quickstart.toml"] {
            let error = experiment(Path::new(given)).expect_err("is refused").to_string();
            let wanted = format!("{given}: no such experiment: looked for {given}");
            assert!(error.starts_with(&wanted), "{error}");
            assert!(
                error.contains("; built-in: advise, avx512, ") && error.contains(", quickstart, "),
                "{error}"
            );
        }
    }
}
