//! The engine's ceilings on a machine: the file of `weir calibrate`, and which ceiling applies to a run.

use crate::options::{HttpVersion, Options, PerConnection};
use crate::result::{Ceiling, Limit, LoadResult};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use weir_doctor::Hardware;

/// Schema version.
pub const SCHEMA: u32 = 1;

/// The engine's ceilings on one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceilings {
    /// Schema version: [`SCHEMA`].
    pub schema: u32,
    /// Version of the program.
    pub weir: String,
    /// When it was measured (RFC 9110 section 5.6.7).
    pub measured: String,
    /// The machine.
    pub machine: Machine,
    /// The engine's cores, one worker each.
    pub engine_cores: Vec<usize>,
    /// The null server's cores, one worker each.
    pub server_cores: Vec<usize>,
    /// Measured window of each repeat, in seconds.
    pub window_s: f64,
    /// Repeats per cell, run round-robin through all cells.
    pub repeats: u32,
    /// The ceilings.
    pub cells: Vec<Cell>,
    /// Cells without a ceiling, and why.
    pub failed: Vec<Failed>,
}

/// The machine that a ceiling was measured on; it does not apply to any other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Processor model.
    pub cpu: String,
    /// Cores of the machine, allowed or not.
    pub cores: u32,
    /// Operating system and kernel.
    pub kernel: String,
}

impl Machine {
    /// Reads this machine.
    pub fn read() -> Self {
        let Hardware { cpu, processors: cores, kernel, .. } = Hardware::read();
        Self { cpu, cores, kernel }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {} cores, {}", self.cpu, self.cores, self.kernel)
    }
}

/// The ceiling of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The cell.
    #[serde(flatten)]
    pub kind: Kind,
    /// Requests (or handshakes) per second of one saturated worker.
    pub per_worker: Spread,
    /// The engine's CPU per request, in microseconds.
    pub cpu_us: Spread,
    /// The null server's CPU per request, in microseconds.
    pub server_cpu_us: Spread,
    /// The limit of most repeats: `load` if the engine's workers were saturated; `gateway` is the null server.
    pub limit: Limit,
    /// In at least one repeat the engine was not the limit: its ceiling is extrapolated from its CPU per request to a
    /// full core. A busier engine needs less CPU per request, so the true ceiling may be higher, hardly lower.
    pub extrapolated: bool,
}

/// A kind of load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kind {
    /// Its name, such as `tls-1.3-keep-alive-1024`.
    pub cell: String,
    /// The TLS version, `1.2` or `1.3`; `None` is cleartext.
    pub tls: Option<String>,
    /// How connections are used.
    pub connection: Connection,
    /// Response body size.
    pub bytes: u64,
}

/// How a cell uses connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connection {
    /// Keep-alive.
    KeepAlive,
    /// A new one with a full handshake for each request.
    NewFull,
    /// A new one that resumes a session for each request.
    NewResumed,
}

/// A cell without a ceiling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Its name.
    pub cell: String,
    /// Why.
    pub why: String,
}

/// Spread over the repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// Why the given ceilings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: ceilings not used: {why}")]
pub struct Unfit {
    file: String,
    why: String,
}

impl Kind {
    /// With its name.
    pub fn new(tls: Option<&str>, connection: Connection, bytes: u64) -> Self {
        let scheme = tls.map_or("cleartext".to_owned(), |version| format!("tls-{version}"));
        let cell = match connection {
            Connection::KeepAlive => format!("{scheme}-keep-alive-{bytes}"),
            Connection::NewFull => format!("{scheme}-new-full"),
            Connection::NewResumed => format!("{scheme}-new-resumed"),
        };
        Self { cell, tls: tls.map(str::to_owned), connection, bytes }
    }
}

impl Spread {
    /// Of at least one value.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let (below, above) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { median: f64::midpoint(below, above), min, max })
    }
}

impl Ceilings {
    /// Reads what `weir calibrate` wrote.
    ///
    /// # Errors
    /// When the file cannot be read or understood.
    pub fn read(file: &Path) -> Result<Self, Unfit> {
        let unfit = |why: String| Unfit { file: file.display().to_string(), why };
        let text = fs::read_to_string(file).map_err(|error| unfit(error.to_string()))?;
        let ceilings: Self = serde_json::from_str(&text).map_err(|error| unfit(error.to_string()))?;
        if ceilings.schema != SCHEMA {
            return Err(unfit(format!("schema version {}, expected {SCHEMA}", ceilings.schema)));
        }
        Ok(ceilings)
    }

    /// Why they do not apply here; `None` if they do.
    pub fn foreign(&self, machine: &Machine, weir: &str) -> Option<String> {
        if self.machine != *machine {
            return Some(format!(
                "measured on another machine ({}), not on this one ({machine})",
                self.machine
            ));
        }
        (self.weir != weir).then(|| format!("measured by weir {}, not by this weir {weir}", self.weir))
    }

    /// The cell closest to a run for this use of connections: first by TLS version, then by response
    /// size. `None` if no cell has this scheme and use.
    fn most_like(&self, connection: Connection, tls: Option<&str>, bytes: f64) -> Option<&Cell> {
        let alike =
            |cell: &&Cell| cell.kind.connection == connection && cell.kind.tls.is_some() == tls.is_some();
        let distance = |cell: &Cell| {
            let size = |bytes: f64| (bytes + HEAD).ln();
            (cell.kind.tls.as_deref() != tls, (size(cell.kind.bytes as f64) - size(bytes)).abs())
        };
        self.cells.iter().filter(alike).min_by(|left, right| {
            let (left, right) = (distance(left), distance(right));
            left.0.cmp(&right.0).then(left.1.total_cmp(&right.1))
        })
    }

    /// The ceiling of one worker for this mix of connections, whose shares sum to 1.
    fn of_mix(&self, mix: &[(Connection, f64)], tls: Option<&str>, bytes: f64) -> Option<(String, f64)> {
        let mut names = Vec::new();
        let mut seconds = 0.0;
        for (connection, share) in mix.iter().filter(|(_, share)| *share > 0.0) {
            let cell = self.most_like(*connection, tls, bytes)?;
            seconds += share / cell.per_worker.median;
            names.push(match *share {
                1.0 => cell.kind.cell.clone(),
                share => format!("{:.0} % {}", share * 100.0, cell.kind.cell),
            });
        }
        (seconds.is_finite() && seconds > 0.0).then(|| (names.join(", "), 1.0 / seconds))
    }
}

/// Added to a body's size before comparing: with a head of a few hundred bytes, bodies of 0 and 10 bytes
/// cost the same.
const HEAD: f64 = 150.0;

/// The ceiling of a run, from the closest calibrated cell. `None` without a calibration or a similar
/// cell: there is none for HTTP/2, for several requests per connection, nor for new connections in cleartext.
/// Errors: a ceilings file that cannot be read, or is from another machine or version.
pub(crate) fn of(options: &Options, result: &LoadResult) -> Result<Option<Ceiling>, Unfit> {
    let Some(file) = &options.ceilings else { return Ok(None) };
    let ceilings = Ceilings::read(file)?;
    if let Some(why) = ceilings.foreign(&Machine::read(), env!("CARGO_PKG_VERSION")) {
        return Err(Unfit { file: file.display().to_string(), why });
    }
    Ok(among(&ceilings, options, result))
}

fn among(ceilings: &Ceilings, options: &Options, result: &LoadResult) -> Option<Ceiling> {
    let resumed = options.policy.resume / 100.0;
    let mix = match options.policy.per_connection {
        PerConnection::Unlimited => vec![(Connection::KeepAlive, 1.0)],
        PerConnection::Requests { most: 1, .. } => {
            vec![(Connection::NewFull, 1.0 - resumed), (Connection::NewResumed, resumed)]
        }
        // No similar cell: a handshake alone is cheaper than one with a request.
        PerConnection::Requests { .. } | PerConnection::Handshake => return None,
    };
    if result.requests == 0 || options.http.speak(HttpVersion::Http2) {
        return None;
    }
    let tls = options.endpoint.tls.then(|| {
        let usual = result.handshakes.negotiated.iter().max_by_key(|negotiated| negotiated.count);
        usual.map_or("1.3", |negotiated| &negotiated.version)
    });
    let bytes = result.bytes_received as f64 / result.requests as f64 - HEAD;
    let (cell, per_worker) = ceilings.of_mix(&mix, tls, bytes.max(0.0))?;
    let share = result.requests_per_second / (per_worker * options.workers as f64);
    Some(Ceiling { cell, per_worker, share })
}

/// Where `weir calibrate` keeps the ceilings, and `weir load` looks for them: `weir/ceilings.json` in the state
/// directory of the XDG Base Directory Specification. `None` without `$XDG_STATE_HOME` and `$HOME`.
pub fn default_file() -> Option<PathBuf> {
    default_file_by(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"))
}

fn default_file_by(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    // The specification says to ignore a relative path.
    let state = state.map(PathBuf::from).filter(|state| state.is_absolute());
    let home = || home.filter(|home| !home.is_empty()).map(|home| Path::new(&home).join(".local/state"));
    Some(state.or_else(home)?.join("weir/ceilings.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::sample;

    fn ceilings() -> Ceilings {
        use Connection::{KeepAlive, NewFull, NewResumed};
        let cell = |tls, connection, bytes, rate: f64| Cell {
            kind: Kind::new(tls, connection, bytes),
            per_worker: Spread { median: rate, min: rate * 0.9, max: rate * 1.1 },
            cpu_us: Spread { median: 1e6 / rate, min: 0.0, max: 0.0 },
            server_cpu_us: Spread::default(),
            limit: Limit::Load,
            extrapolated: false,
        };
        Ceilings {
            schema: SCHEMA,
            weir: env!("CARGO_PKG_VERSION").into(),
            machine: Machine::read(),
            cells: vec![
                cell(None, KeepAlive, 0, 200_000.0),
                cell(None, KeepAlive, 1024, 180_000.0),
                cell(None, KeepAlive, 65_536, 40_000.0),
                cell(Some("1.3"), KeepAlive, 1024, 120_000.0),
                cell(Some("1.3"), NewFull, 0, 4_000.0),
                cell(Some("1.3"), NewResumed, 0, 5_000.0),
                cell(Some("1.2"), NewResumed, 0, 20_000.0),
            ],
            ..Ceilings::default()
        }
    }

    /// The cell and its rate, for a run at 10000 per second with 2 workers.
    fn found(url: &str, version: &str, body: u64, change: fn(&mut Options)) -> Option<Ceiling> {
        let mut options = Options::new(url.parse().unwrap());
        options.workers = 2;
        change(&mut options);
        let mut result = sample();
        (result.requests, result.requests_per_second) = (10_000, 10_000.0);
        result.bytes_received = result.requests * (body + 150);
        result.handshakes.negotiated[0].version = version.into();
        among(&ceilings(), &options, &result)
    }

    #[test]
    fn the_most_similar_cell_is_taken() {
        let kept = |_: &mut Options| {};
        let new = |o: &mut Options| o.policy.per_connection = PerConnection::Requests { least: 1, most: 1 };
        let resumed = |o: &mut Options| {
            o.policy.per_connection = PerConnection::Requests { least: 1, most: 1 };
            o.policy.resume = 100.0;
        };
        let mixed = |o: &mut Options| {
            o.policy.per_connection = PerConnection::Requests { least: 1, most: 1 };
            o.policy.resume = 25.0;
        };
        let several =
            |o: &mut Options| o.policy.per_connection = PerConnection::Requests { least: 5, most: 10 };
        let (http, https) = ("http://a/", "https://a/");
        type Row<'a> = (&'a str, &'a str, u64, fn(&mut Options), Option<(&'a str, f64)>);
        let table: [Row<'_>; 15] = [
            (http, "", 0, kept, Some(("cleartext-keep-alive-0", 200_000.0))),
            (http, "", 50, kept, Some(("cleartext-keep-alive-0", 200_000.0))),
            (http, "", 500, kept, Some(("cleartext-keep-alive-1024", 180_000.0))),
            (http, "", 5_000, kept, Some(("cleartext-keep-alive-1024", 180_000.0))),
            (http, "", 20_000, kept, Some(("cleartext-keep-alive-65536", 40_000.0))),
            (http, "", 10_000_000, kept, Some(("cleartext-keep-alive-65536", 40_000.0))),
            (http, "", 0, new, None),
            (https, "1.3", 0, kept, Some(("tls-1.3-keep-alive-1024", 120_000.0))),
            (https, "1.2", 9, kept, Some(("tls-1.3-keep-alive-1024", 120_000.0))),
            (https, "1.2", 9, resumed, Some(("tls-1.2-new-resumed", 20_000.0))),
            (https, "1.3", 9_000, new, Some(("tls-1.3-new-full", 4_000.0))),
            (https, "1.3", 0, mixed, Some(("75 % tls-1.3-new-full, 25 % tls-1.3-new-resumed", 4210.526))),
            (https, "1.3", 0, several, None),
            (https, "1.3", 0, |o| o.http = HttpVersion::Http2.into(), None),
            (https, "1.3", 0, |o| o.http = "1=1,2=1".parse().unwrap(), None),
        ];
        for (url, version, body, change, expected) in table {
            let found = found(url, version, body, change);
            let Some((cell, per_worker)) = expected else {
                assert_eq!(found, None, "{url} {body}");
                continue;
            };
            let found = found.unwrap();
            assert_eq!(found.cell, cell, "{url} {version} {body}");
            assert!((found.per_worker - per_worker).abs() < 0.001, "{found:?}");
            assert!((found.share - 10_000.0 / (2.0 * per_worker)).abs() < 1e-6, "{found:?}");
        }
    }

    #[test]
    fn ceilings_of_another_machine_or_program_are_not_used_and_that_is_said() {
        let file = std::env::temp_dir().join(format!("weir-ceilings-{}", std::process::id()));
        let mut options = Options::new("http://a/".parse().unwrap());
        let mut result = sample();
        result.requests_per_second = 170_000.0;
        assert_eq!(of(&options, &result), Ok(None), "no file given");
        options.ceilings = Some(file.clone());
        let kept = |change: fn(&mut Ceilings)| {
            let mut ceilings = ceilings();
            change(&mut ceilings);
            fs::write(&file, serde_json::to_string(&ceilings).unwrap()).unwrap();
            of(&options, &result).map_err(|unfit| unfit.to_string())
        };
        let found = kept(|_| {}).unwrap().unwrap();
        assert_eq!(found.cell, "cleartext-keep-alive-1024");
        assert!((found.share - 170.0 / 180.0).abs() < 1e-9);
        let why = kept(|ceilings| ceilings.machine.cpu = "Another".into()).unwrap_err();
        assert!(why.contains("on another machine (Another, "), "{why}");
        let why = kept(|ceilings| ceilings.weir = "0.0.1".into()).unwrap_err();
        assert!(why.contains("not used: measured by weir 0.0.1, not by this weir"), "{why}");
        let why = kept(|ceilings| ceilings.schema = 9).unwrap_err();
        assert!(why.contains("schema version 9, expected 1"), "{why}");
        fs::write(&file, "{}").unwrap();
        assert!(of(&options, &result).unwrap_err().to_string().contains("missing field"));
        fs::remove_file(&file).unwrap();
        assert!(of(&options, &result).unwrap_err().to_string().contains("No such file"));
    }

    #[test]
    fn the_middle_of_the_repeats() {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn the_state_directory() {
        let file = |state: Option<&str>, home: Option<&str>| {
            default_file_by(state.map(Into::into), home.map(Into::into))
                .map(|file| file.display().to_string())
        };
        let in_home = Some("/home/u/.local/state/weir/ceilings.json".to_owned());
        assert_eq!(file(Some("/s"), Some("/home/u")), Some("/s/weir/ceilings.json".to_owned()));
        assert_eq!(file(None, Some("/home/u")), in_home);
        assert_eq!(file(Some(""), Some("/home/u")), in_home);
        assert_eq!(file(Some("relative"), Some("/home/u")), in_home);
        assert_eq!((file(None, None), file(None, Some(""))), (None, None));
    }

    #[test]
    fn this_machine_has_cores_and_a_kernel() {
        let machine = Machine::read();
        assert!(machine.cores >= 1 && !machine.kernel.trim().is_empty(), "{machine}");
    }
}
