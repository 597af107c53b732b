//! The directory of an experiment's results. Everything after `runs/` can be rebuilt from it.

use crate::error::LabError;
use crate::machine::Machine;
use crate::plan::Plan;
use crate::run::RunRecord;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use weir_load::result::SCHEMA as LOAD_SCHEMA;

/// A results directory.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// Makes a new one. A directory that holds anything already is refused: results are never mixed.
    pub fn create(directory: &Path) -> Result<Self, LabError> {
        if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
            let full = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "the directory is not empty");
            return Err(LabError::file(directory, "cannot take new results")(full));
        }
        let store = Self { directory: directory.to_owned() };
        for name in ["runs", "settings"] {
            let path = directory.join(name);
            fs::create_dir_all(&path).map_err(LabError::file(path, "cannot be made"))?;
        }
        Ok(store)
    }

    /// Opens one that exists.
    pub fn open(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a file of text.
    pub fn write(&self, name: &str, text: &str) -> Result<(), LabError> {
        let path = self.directory.join(name);
        // Whole or not at all: an interrupted lab leaves no half file behind.
        let part = self.directory.join(format!("{name}.part"));
        fs::write(&part, text).map_err(LabError::file(&part, "cannot be written"))?;
        fs::rename(&part, &path).map_err(LabError::file(path, "cannot be written"))
    }

    /// Writes a value as JSON.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), LabError> {
        let text = serde_json::to_string_pretty(value).map_err(|error| LabError::Stored {
            path: self.directory.join(name),
            message: error.to_string(),
        })?;
        self.write(name, &(text + "\n"))
    }

    /// Writes a run, as soon as it has ended.
    pub fn write_run(&self, record: &RunRecord) -> Result<(), LabError> {
        self.write_json(&format!("runs/{}.json", record.run.id), record)
    }

    /// A run that is stored already.
    ///
    /// # Errors
    /// As [`Self::runs`].
    pub fn run(&self, id: &str) -> Result<Option<RunRecord>, LabError> {
        let path = self.run_path(id);
        if path.exists() { read_run(&path).map(Some) } else { Ok(None) }
    }

    /// Where a run of such an id is stored.
    pub(crate) fn run_path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("runs/{id}.json"))
    }

    /// All stored runs in the order of their names: calibration's after the blocks'.
    ///
    /// # Errors
    /// Files that cannot be read, of another form or layout, or under another name than their run's.
    pub fn runs(&self) -> Result<Vec<RunRecord>, LabError> {
        let directory = self.directory.join("runs");
        let entries = fs::read_dir(&directory).map_err(LabError::file(&directory, "cannot be read"))?;
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(LabError::file(&directory, "cannot be read"))?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        paths.iter().map(|path| read_run(path)).collect()
    }

    /// The plan.
    ///
    /// # Errors
    /// As [`Self::read_json`].
    pub fn plan(&self) -> Result<Plan, LabError> {
        self.read_json("plan.json", Plan::SCHEMA)
    }

    /// That the directory holds a result at all.
    fn check_is_result(&self) -> Result<(), LabError> {
        let why = match (self.directory.is_dir(), self.directory.exists()) {
            (true, _) if self.directory.join("plan.json").exists() => return Ok(()),
            (true, _) => "no result of `weir run`: there is no plan.json in it",
            (false, true) => "no folder; expected the result of `weir run`",
            (false, false) => "no such file or folder",
        };
        Err(LabError::NoResult { path: self.directory.clone(), why })
    }

    /// A stored value whose layout has a version.
    ///
    /// # Errors
    /// A file that cannot be read, or of another form or layout.
    pub(crate) fn read_json<T: DeserializeOwned>(&self, name: &str, schema: u32) -> Result<T, LabError> {
        self.check_is_result()?;
        let path = self.directory.join(name);
        let text = read(&path)?;
        check_layout(&path, "schema", &parse(&path, &text)?, schema)?;
        parse(&path, &text)
    }

    /// The machine that it was run on.
    pub fn machine(&self) -> Result<Machine, LabError> {
        let path = self.directory.join("machine.json");
        parse(&path, &read(&path)?)
    }

    /// Keeps the files that a target was given, the first time that it runs in a mode.
    pub fn keep_settings(&self, name: &str, text: &str) -> Result<(), LabError> {
        if self.directory.join("settings").join(name).exists() {
            return Ok(());
        }
        self.write(&format!("settings/{name}"), text)
    }

    /// The kept settings: name and text, by name.
    pub fn settings(&self) -> Result<Vec<(String, String)>, LabError> {
        let mut settings = Vec::new();
        for entry in fs::read_dir(self.directory.join("settings")).into_iter().flatten().flatten() {
            let path = entry.path();
            let text = fs::read_to_string(&path).map_err(LabError::file(&path, "cannot be read"))?;
            settings.push((entry.file_name().to_string_lossy().into_owned(), text));
        }
        settings.sort();
        Ok(settings)
    }
}

fn read_run(path: &Path) -> Result<RunRecord, LabError> {
    let text = read(path)?;
    check_layout(path, "schema", &parse(path, &text)?, RunRecord::SCHEMA)?;
    let WithLoad { observation } = parse(path, &text)?;
    if let Some(load) = observation.load {
        check_layout(path, "observation.load.schema", &load, LOAD_SCHEMA)?;
    }
    let record: RunRecord = parse(path, &text)?;
    let id = &record.run.id;
    if path.file_stem().is_some_and(|name| name != id.as_str()) {
        let message = format!("id: `{id}`: allowed is the file's own name");
        return Err(LabError::Stored { path: path.to_owned(), message });
    }
    Ok(record)
}

/// What is read of a file before all else: in another layout the other fields may have any form.
#[derive(Deserialize)]
struct Layout {
    schema: u32,
}

/// The same of the load engine's result in a run.
#[derive(Deserialize)]
struct WithLoad {
    observation: WithLoadLayout,
}

#[derive(Deserialize)]
struct WithLoadLayout {
    load: Option<Layout>,
}

fn check_layout(path: &Path, key: &str, layout: &Layout, known: u32) -> Result<(), LabError> {
    if layout.schema == known {
        return Ok(());
    }
    let message = format!("{key}: layout {}, this program reads {known}", layout.schema);
    Err(LabError::Stored { path: path.to_owned(), message })
}

fn read(path: &Path) -> Result<String, LabError> {
    fs::read_to_string(path).map_err(LabError::file(path, "cannot be read"))
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, LabError> {
    serde_json::from_str(text)
        .map_err(|error| LabError::Stored { path: path.to_owned(), message: error.to_string() })
}

/// The default directory for results of `name`: `out/NAME-YYYYMMDD-HHMMSS`, in UTC.
pub fn default_directory(name: &str) -> PathBuf {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Path::new("out").join(format!("{name}-{}", stamp(seconds)))
}

/// `YYYYMMDD-HHMMSS` of a UNIX time.
pub(crate) fn stamp(seconds: u64) -> String {
    let (year, month, day) = civil((seconds / 86_400) as i64);
    let rest = seconds % 86_400;
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Year, month and day of a number of days since 1970-01-01, in the proleptic Gregorian calendar. The year is taken to
/// begin in March, so that the leap day is its last.
fn civil(days: i64) -> (i64, i64, i64) {
    const DAYS_TO_1970: i64 = 719_468;
    const DAYS_IN_400_YEARS: i64 = 146_097;
    let days = days + DAYS_TO_1970;
    let era = days.div_euclid(DAYS_IN_400_YEARS);
    let day_of_era = days.rem_euclid(DAYS_IN_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Load, Mode};
    use crate::testing::record;

    #[test]
    fn stamps() {
        // date -u -d @SECONDS +%Y%m%d-%H%M%S
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_782_399), "20000228-235959");
        assert_eq!(stamp(951_868_799), "20000229-235959");
        assert_eq!(stamp(1_795_219_200), "20261121-000000");
    }

    #[test]
    fn a_run_comes_back_as_it_was_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(&directory.path().join("results")).expect("is made");
        let record = record(Mode::H1H1, Load::EqualRate);
        assert_eq!(store.run(&record.run.id).expect("reads"), None);
        store.write_run(&record).expect("is written");
        assert_eq!(store.run(&record.run.id).expect("reads"), Some(record.clone()));
        assert_eq!(store.runs().expect("reads"), [record]);
        let again = Store::create(store.directory()).expect_err("is refused").to_string();
        assert!(again.contains("not empty"), "{again}");
    }

    #[test]
    fn a_spoilt_file_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(directory.path()).expect("is made");
        store.write("plan.json", "{\"schema\": 1").expect("is written");
        let error = store.plan().expect_err("is refused").to_string();
        assert!(error.contains("plan.json: not a result of this program"), "{error}");
    }

    /// A file of another layout was read by the names that both have, whatever they mean there.
    #[test]
    fn another_layout_is_refused_with_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(directory.path()).expect("is made");
        store.write("plan.json", "{\"schema\": 3, \"cells\": 7}").expect("is written");
        let error = store.plan().expect_err("is refused").to_string();
        assert!(
            error
                .ends_with("plan.json: not a result of this program: schema: layout 3, this program reads 1")
        );

        let good = record(Mode::H1H1, Load::EqualRate);
        let name = format!("runs/{}.json", good.run.id);
        let mut other = RunRecord { schema: 2, ..good.clone() };
        store.write_run(&other).expect("is written");
        let error = store.runs().expect_err("is refused").to_string();
        assert!(
            error.contains(&name) && error.ends_with("schema: layout 2, this program reads 1"),
            "{error}"
        );

        other = good;
        other.observation.load.as_mut().expect("a result").schema = 3;
        store.write_run(&other).expect("is written");
        for error in [store.runs().map(drop), store.run(&other.run.id).map(drop)] {
            let error = error.expect_err("is refused").to_string();
            let why = "observation.load.schema: layout 3, this program reads 2";
            assert!(error.contains(&name) && error.ends_with(why), "{error}");
        }
    }

    /// The copy of a run counted as one more block.
    #[test]
    fn a_run_under_another_name_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(directory.path()).expect("is made");
        let record = record(Mode::H1H1, Load::EqualRate);
        store.write_json("runs/copy.json", &record).expect("is written");
        let error = store.runs().expect_err("is refused").to_string();
        assert!(error.contains("runs/copy.json") && error.contains(&record.run.id), "{error}");
    }
}
