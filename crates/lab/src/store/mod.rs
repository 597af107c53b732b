//! The directory of an experiment's results. `summary.json` and `report.html` can be rebuilt from the rest.

pub mod machine;
pub mod profiles;
pub mod run;

use crate::base::error::LabError;
use crate::planning::plan::Plan;
use crate::planning::planned_run::SCHEMA;
use crate::store::machine::Machine;
use crate::store::run::{RunOf, Stored};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

/// A results directory.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

/// The directory of repeated runs' first attempts.
const DISTURBED: &str = "disturbed";

impl Store {
    /// Rejects a directory that is not empty: results are never mixed.
    pub fn check_vacant(directory: &Path) -> Result<(), LabError> {
        if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
            let full = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "the directory is not empty");
            return Err(LabError::file(directory, "cannot hold new results")(full));
        }
        Ok(())
    }

    /// Creates one. Errors: it is not empty, or cannot be written.
    pub fn create(directory: &Path) -> Result<Self, LabError> {
        Self::check_vacant(directory)?;
        let store = Self { directory: directory.to_owned() };
        for name in ["runs", "settings"] {
            let path = directory.join(name);
            fs::create_dir_all(&path).map_err(LabError::file(path, "cannot be created"))?;
        }
        Ok(store)
    }

    /// Opens one that exists.
    pub fn open(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Its path.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a text file.
    pub fn write(&self, name: &str, text: &str) -> Result<(), LabError> {
        let path = self.directory.join(name);
        // Atomically: an interrupted lab leaves no partial file behind.
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
    pub(crate) fn write_run<I: Stored>(&self, run: &RunOf<I>) -> Result<(), LabError> {
        self.write_json(&format!("runs/{}.json", run.run.id), run)
    }

    /// Keeps a disturbed run that was repeated, for people only: no command reads it.
    pub(crate) fn write_disturbed<I: Stored>(&self, run: &RunOf<I>) -> Result<(), LabError> {
        let directory = self.directory.join(DISTURBED);
        fs::create_dir_all(&directory).map_err(LabError::file(&directory, "cannot be created"))?;
        self.write_json(&format!("{DISTURBED}/{}.json", run.run.id), run)
    }

    /// The number of repeated runs.
    pub(crate) fn disturbed(&self) -> usize {
        let is_run = |path: PathBuf| path.extension().is_some_and(|extension| extension == "json");
        let entries = fs::read_dir(self.directory.join(DISTURBED)).into_iter().flatten().flatten();
        entries.filter(|entry| is_run(entry.path())).count()
    }

    /// A run that is stored already.
    /// Errors: as [`Self::runs`].
    pub(crate) fn run<I: Stored>(&self, id: &str) -> Result<Option<RunOf<I>>, LabError> {
        let path = self.run_path(id);
        if path.exists() { read_run::<I>(&path).map(Some) } else { Ok(None) }
    }

    /// The path of the run with this id.
    pub(crate) fn run_path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("runs/{id}.json"))
    }

    /// All stored runs in the order of their names: calibration runs follow those of the blocks.
    /// Errors: files that cannot be read, do not fit the schema, or are not named after their run.
    pub(crate) fn runs<I: Stored>(&self) -> Result<Vec<RunOf<I>>, LabError> {
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
        paths.iter().map(|path| read_run::<I>(path)).collect()
    }

    /// The name of the results' instrument.
    ///
    /// # Errors
    /// A path that is no result, and a plan that cannot be read.
    pub fn instrument(&self) -> Result<String, LabError> {
        let (path, plan) = self.read_plan()?;
        let name = &plan["experiment"]["instrument"];
        let wrong = || stored(&path, format!("experiment.instrument: `{name}`: expected a string"));
        name.as_str().map(str::to_owned).ok_or_else(wrong)
    }

    /// The plan.
    /// Errors: a path that is no result, and a plan that cannot be read or does not fit the schema.
    pub(crate) fn plan(&self) -> Result<Plan, LabError> {
        let (path, plan) = self.read_plan()?;
        parse(&path, plan)
    }

    fn read_plan(&self) -> Result<(PathBuf, Value), LabError> {
        let (path, plan) = self.read("plan.json")?;
        layout(&path, &plan, SCHEMA)?;
        Ok((path, plan))
    }

    /// A value that the instrument stored, with a schema of its own; `None` if absent.
    /// Errors: a file that cannot be read or does not fit the schema.
    pub(crate) fn read_json<T: DeserializeOwned>(
        &self,
        name: &str,
        schema: u32,
    ) -> Result<Option<T>, LabError> {
        if !self.directory.join(name).exists() {
            return Ok(None);
        }
        let (path, value) = self.read(name)?;
        layout(&path, &value, schema)?;
        parse(&path, value).map(Some)
    }

    /// A stored JSON value.
    fn read(&self, name: &str) -> Result<(PathBuf, Value), LabError> {
        let why = match (self.directory.is_dir(), self.directory.exists()) {
            (true, _) if self.directory.join("plan.json").exists() => {
                let path = self.directory.join(name);
                return read(&path).map(|value| (path, value));
            }
            (true, _) => "not a result of `weir run`: it has no plan.json",
            (false, true) => "not a directory; expected a result of `weir run`",
            (false, false) => "no such file or directory",
        };
        Err(LabError::NoResult { path: self.directory.clone(), why })
    }

    /// The machine of the runs.
    pub fn machine(&self) -> Result<Machine, LabError> {
        let path = self.directory.join("machine.json");
        parse(&path, read(&path)?)
    }

    /// Keeps a target's settings files, the first time that it runs in a mode.
    pub fn keep_settings(&self, name: &str, text: &str) -> Result<(), LabError> {
        if self.directory.join("settings").join(name).exists() {
            return Ok(());
        }
        self.write(&format!("settings/{name}"), text)
    }

    /// The kept settings: name and text, sorted by name.
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

fn read_run<I: Stored>(path: &Path) -> Result<RunOf<I>, LabError> {
    let value = read(path)?;
    layout(path, &value, SCHEMA)?;
    I::check_layout(&value).map_err(|message| stored(path, message))?;
    let run: RunOf<I> = parse(path, value)?;
    let id = &run.run.id;
    if path.file_stem().is_some_and(|name| name != id.as_str()) {
        return Err(stored(path, format!("id: `{id}`: expected the file's name")));
    }
    Ok(run)
}

/// The version of a schema, checked before all else: the other fields may mean something else in another version.
fn layout(path: &Path, value: &Value, known: u32) -> Result<(), LabError> {
    check_layout("schema", &value["schema"], known).map_err(|message| stored(path, message))
}

/// Checks the version of a schema.
/// Errors: another version than `known`.
pub(crate) fn check_layout(key: &str, found: &Value, known: u32) -> Result<(), String> {
    match found.as_u64() == Some(known.into()) {
        true => Ok(()),
        false => Err(format!("{key}: unsupported version {found}; expected {known}")),
    }
}

fn read(path: &Path) -> Result<Value, LabError> {
    let text = fs::read_to_string(path).map_err(LabError::file(path, "cannot be read"))?;
    serde_json::from_str(&text).map_err(|error| stored(path, error.to_string()))
}

fn parse<T: DeserializeOwned>(path: &Path, value: Value) -> Result<T, LabError> {
    serde_json::from_value(value).map_err(|error| stored(path, error.to_string()))
}

/// The error about a file that does not have the expected schema.
pub(crate) fn stored(path: &Path, message: String) -> LabError {
    LabError::Stored { path: path.to_owned(), message }
}

/// The default directory for results of `name`: `out/NAME-YYYYMMDD-HHMMSS`, in UTC.
pub fn default_directory(name: &str) -> PathBuf {
    Path::new("out").join(format!("{name}-{}", stamp(now())))
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// `YYYYMMDD-HHMMSS` of a UNIX time.
pub(crate) fn stamp(seconds: u64) -> String {
    let seconds =
        i64::try_from(seconds).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    let at = seconds.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let ((year, month, day), (hour, minute, second)) = (at.to_calendar_date(), at.to_hms());
    format!("{year:04}{:02}{day:02}-{hour:02}{minute:02}{second:02}", u8::from(month))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::gateway::testing::record;
    use crate::instrument::gateway::{Gateway, Load, Mode};

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
        assert_eq!(store.run::<Gateway>(&record.run.id).expect("reads"), None);
        store.write_run::<Gateway>(&record).expect("is written");
        assert_eq!(store.run::<Gateway>(&record.run.id).expect("reads"), Some(record.clone()));
        assert_eq!(store.runs::<Gateway>().expect("reads"), [record]);
        let again = Store::create(store.directory()).expect_err("is rejected").to_string();
        assert!(again.contains("not empty"), "{again}");
    }

    #[test]
    fn a_spoilt_file_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(directory.path()).expect("is made");
        store.write("plan.json", "{\"schema\": 1").expect("is written");
        let error = store.plan().expect_err("is rejected").to_string();
        assert!(error.contains("plan.json: not a result of this program"), "{error}");
    }

    /// Regression test: a file of another schema was read by the field names that both share.
    #[test]
    fn another_schema_is_rejected_with_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(directory.path()).expect("is made");
        for other in [1, 3] {
            store.write("plan.json", &format!("{{\"schema\": {other}, \"cells\": 7}}")).expect("is written");
            let why = format!(
                "plan.json: not a result of this program: schema: unsupported version {other}; expected 2"
            );
            for error in [store.plan().map(drop), store.instrument().map(drop)] {
                let error = error.expect_err("is rejected").to_string();
                assert!(error.ends_with(&why), "{error}");
            }
        }

        let good = record(Mode::H1H1, Load::EqualRate);
        let name = format!("runs/{}.json", good.run.id);
        let mut other = crate::store::run::Run { schema: 3, ..good.clone() };
        store.write_run::<Gateway>(&other).expect("is written");
        let error = store.runs::<Gateway>().expect_err("is rejected").to_string();
        assert!(
            error.contains(&name) && error.ends_with("schema: unsupported version 3; expected 2"),
            "{error}"
        );

        other = good;
        other.seen.observation.load.as_mut().expect("a result").schema = 3;
        store.write_run::<Gateway>(&other).expect("is written");
        for error in [store.runs::<Gateway>().map(drop), store.run::<Gateway>(&other.run.id).map(drop)] {
            let error = error.expect_err("is rejected").to_string();
            let why = "observation.load.schema: unsupported version 3; expected 2";
            assert!(error.contains(&name) && error.ends_with(why), "{error}");
        }
    }

    /// Regression test: a copied run counted as one more block.
    #[test]
    fn a_run_under_another_name_is_rejected() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(directory.path()).expect("is made");
        let record = record(Mode::H1H1, Load::EqualRate);
        store.write_json("runs/copy.json", &record).expect("is written");
        let error = store.runs::<Gateway>().expect_err("is rejected").to_string();
        assert!(error.contains("runs/copy.json") && error.contains(&record.run.id), "{error}");
    }
}
