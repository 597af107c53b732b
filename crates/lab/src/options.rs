//! What the command line asks of `run` and `plan`.

use crate::error::ConfigError;
use crate::plan::Cell;
use std::path::PathBuf;

/// The options of `weir run` and `weir plan`.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The experiment.
    pub file: PathBuf,
    /// Where the results go; by default `out/NAME-YYYYMMDD-HHMMSS` (UTC).
    pub out: Option<PathBuf>,
    /// So many blocks, whatever the experiment says.
    pub blocks: Option<u32>,
    /// A smoke run of half a minute: two blocks and tiny windows.
    pub quick: bool,
    /// Only the cells with these factors; values of one key are alternatives.
    pub only: Vec<(String, String)>,
    /// Keys of the experiment with other values, as TOML; `tls.group` reaches into a table.
    pub set: Vec<(String, String)>,
    /// Go on with an interrupted experiment in this directory.
    pub continue_dir: Option<PathBuf>,
    /// An invalid cell is a failure (exit code 3).
    pub strict: bool,
}

impl RunOptions {
    /// Reads `k=v,k=v` of `--only`.
    pub fn parse_pairs(option: &str, text: &str) -> Result<Vec<(String, String)>, ConfigError> {
        text.split(',').map(|pair| Self::parse_pair(option, pair)).collect()
    }

    /// Reads `k=v` of `--set`.
    pub fn parse_pair(option: &str, text: &str) -> Result<(String, String), ConfigError> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
                Ok((key.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(ConfigError::new(format!("{option} {text}"), "allowed is key=value")),
        }
    }

    /// The options that change what a run of a cell is, as they are written.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let quick = self.quick.then(|| "--quick".to_owned());
        let set = self.set.iter().flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={value}")]);
        quick.into_iter().chain(set).collect()
    }

    /// Whether `--only` lets the cell pass.
    pub(crate) fn selects(&self, cell: &Cell) -> Result<bool, ConfigError> {
        for (key, _) in &self.only {
            let mut any = false;
            for (_, value) in self.only.iter().filter(|(other, _)| other == key) {
                any |= matches(cell, key, value)?;
            }
            if !any {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn matches(cell: &Cell, key: &str, value: &str) -> Result<bool, ConfigError> {
    match key {
        "target" => Ok(cell.name == value || cell.target == value),
        "mode" => Ok(cell.mode.to_string() == value),
        "case" => Ok(cell.case.to_string() == value),
        "load" => Ok(cell.load.to_string() == value),
        "connections" => Ok(cell.connections.to_string() == value),
        "bytes" => Ok(cell.bytes.to_string() == value),
        _ => {
            let allowed = "allowed keys are target, mode, load, connections, bytes, case";
            Err(ConfigError::new(format!("--only {key}={value}"), format!("unknown key `{key}`: {allowed}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Case, Load, Mode};

    fn options(only: &str) -> RunOptions {
        RunOptions { only: RunOptions::parse_pairs("--only", only).expect("parses"), ..RunOptions::default() }
    }

    #[test]
    fn only_selects_by_factor() {
        let cell = Cell {
            name: "fast-again".into(),
            target: "fast".into(),
            case: Case::Request,
            mode: Mode::H1H1c,
            connections: 8,
            bytes: 100,
            load: Load::Saturated,
        };
        for (only, selected) in [
            ("mode=h1-h1c", true),
            ("mode=h1-h1c,target=fast", true),
            ("mode=h1-h1c,target=slow", false),
            ("target=slow,target=fast", true),
            ("case=request", true),
            ("case=handshake-full", false),
            ("load=equal-rate", false),
            ("bytes=100,connections=8,load=saturated", true),
        ] {
            assert_eq!(options(only).selects(&cell).expect("known keys"), selected, "{only}");
        }
        let error = options("targets=fast").selects(&cell).expect_err("is refused").to_string();
        assert!(error.contains("unknown key `targets`: allowed keys are target"), "{error}");
    }

    #[test]
    fn pairs_need_a_key_and_a_value() {
        let error = RunOptions::parse_pairs("--only", "mode=h1,x").expect_err("is refused");
        assert_eq!(error.to_string(), "--only x: allowed is key=value");
        assert!(RunOptions::parse_pair("--set", "=3").is_err());
    }
}
