//! The directory of an experiment's results. Everything after `runs/` can be rebuilt from it.

use crate::error::LabError;
use crate::machine::Machine;
use crate::plan::Plan;
use crate::run::RunRecord;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

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
    pub fn run(&self, id: &str) -> Result<Option<RunRecord>, LabError> {
        let path = self.directory.join(format!("runs/{id}.json"));
        if path.exists() { read_json(&path).map(Some) } else { Ok(None) }
    }

    /// All stored runs in the order of their names: calibration's after the blocks'.
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
        paths.iter().map(|path| read_json(path)).collect()
    }

    /// The plan.
    pub fn plan(&self) -> Result<Plan, LabError> {
        read_json(&self.directory.join("plan.json"))
    }

    /// The machine that it was run on.
    pub fn machine(&self) -> Result<Machine, LabError> {
        read_json(&self.directory.join("machine.json"))
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

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, LabError> {
    let text = fs::read_to_string(path).map_err(LabError::file(path, "cannot be read"))?;
    serde_json::from_str(&text)
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
}
