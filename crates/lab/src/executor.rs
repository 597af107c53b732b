//! Runs with real processes: origin, target and load engine, fresh for each.

use crate::busy::{Meter, groups};
use crate::error::{ConfigError, LabError};
use crate::experiment::{CertificateKind, CoreSets, Experiment, LoadWords, Mode, Side, Tls};
use crate::interrupt::Interrupt;
use crate::network::{connections_to, free_ports};
use crate::placement::{Placement, list};
use crate::plan::Targets;
use crate::process::{Process, Waited};
use crate::run::{Executor, Observation, ProcessReport, Request};
use crate::store::Store;
use crate::target::{Prepared, Stop, StopSignal, Target};
use crate::template::Values;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use weir_load::result::{LoadResult, Role};
use weir_tls::issue::{self, KeyKind};

/// How long the origin may take until it accepts a connection.
const ORIGIN_READY: Duration = Duration::from_secs(5);

/// How long the load engine may take beyond its phases and the time-out of a request before it is given up.
const LOAD_GRACE: Duration = Duration::from_secs(5);

/// How our own processes are ended.
const STOP: Stop = Stop { signal: StopSignal::Term, timeout_ms: 2000 };

/// The names that the certificate is for: a target may verify either.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// Starts processes.
#[derive(Debug)]
pub(crate) struct ProcessExecutor {
    weir: PathBuf,
    store: Store,
    work: PathBuf,
    experiment: Experiment,
    load: LoadWords,
    /// What the load engine may take beyond warm-up and window.
    grace: Duration,
    targets: Targets,
    placement: Placement,
    interrupt: Interrupt,
    next_port: u16,
}

impl ProcessExecutor {
    /// Issues the certificate that every run uses. `weir` is the program that is origin and load engine.
    pub(crate) fn new(
        weir: PathBuf,
        store: Store,
        experiment: Experiment,
        targets: Targets,
        placement: Placement,
        interrupt: Interrupt,
    ) -> Result<Self, LabError> {
        let directory = store.directory().to_owned();
        let absolute = fs::canonicalize(&directory).map_err(LabError::file(directory, "cannot be found"))?;
        let (work, tls) = (absolute.join("work"), absolute.join("tls"));
        for path in [&work, &tls] {
            fs::create_dir_all(path).map_err(LabError::file(path, "cannot be made"))?;
        }
        issue_certificate(&experiment.tls, &tls)?;
        let next_port = std::process::id() as u16;
        let load = experiment.load_words().map_err(ConfigError::from)?;
        let mut grace = LOAD_GRACE;
        if let (Some(mode), Some(load)) = (experiment.modes.first(), experiment.loads.first()) {
            let options = experiment.load_options(*mode, *load).map_err(ConfigError::from)?;
            grace += options.phases.settle + options.timeout;
        }
        Ok(Self { weir, store, work, experiment, load, grace, targets, placement, interrupt, next_port })
    }

    /// Removes the working directories; what is worth keeping is stored elsewhere.
    pub(crate) fn clean(&self) {
        let _ = fs::remove_dir_all(&self.work);
    }

    fn used_cores(&self) -> Vec<usize> {
        let CoreSets { gateway, origin, load } = &self.placement.cores;
        gateway.iter().chain(origin).chain(load).copied().collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn tls_file(&self, name: &str) -> PathBuf {
        self.work.with_file_name("tls").join(name)
    }

    fn ports(&mut self) -> Result<(u16, u16), LabError> {
        let ports = free_ports(2, self.next_port)
            .map_err(|source| LabError::System { action: "looking for free ports", source })?;
        // Not the same ports again at once: a connection of the last run may still be in TIME_WAIT.
        self.next_port = self.next_port.wrapping_add(13);
        Ok((ports[0], ports[1]))
    }

    fn origin_command(&self, mode: Mode, port: u16) -> Vec<String> {
        let mut command = self.weir_command("origin");
        command.extend(["--listen".into(), format!("{}://127.0.0.1:{port}", mode.origin().scheme())]);
        if mode.origin() == Side::H1 {
            let file = |name: &str| self.tls_file(name).display().to_string();
            command.extend(["--cert".into(), file("cert.pem"), "--key".into(), file("key.pem")]);
        }
        let cores = &self.placement.cores.origin;
        command.extend(["--workers".into(), cores.len().to_string(), "--cores".into(), list(cores)]);
        command
    }

    fn load_command(&self, request: &Request<'_>, port: u16, pids: &[(Role, u32)]) -> Vec<String> {
        let cell = &request.run.cell;
        let url = self.experiment.load_url(cell.mode, port, cell.bytes);
        let mut command = self.weir_command("load");
        let flags = self.load.of(cell.load, request.run.stage);
        let mut add = |words: &[&str]| command.extend(words.iter().map(|word| (*word).to_owned()));
        let cores = &self.placement.cores.load;
        add(&[&url, "-c", &cell.connections.to_string()]);
        add(&["-d", &format!("{}ms", request.window_ms), "--warmup", &format!("{}ms", request.warmup_ms)]);
        add(&["-t", &cores.len().to_string(), "--cores", &list(cores)]);
        if let Some(rate) = request.rate {
            add(&["--rate", &rate.to_string()]);
        }
        if cell.mode.client() == Side::H1 {
            let tls = &self.experiment.tls;
            if !flags.iter().any(|flag| flag == "--insecure") {
                add(&["--cacert", &self.tls_file("ca.pem").display().to_string()]);
            }
            add(&["--tls", tls.version.name(), "--suite", tls.suite.name(), "--group", tls.group.name()]);
        }
        for (role, pid) in pids {
            let role = match role {
                Role::Gateway => "gateway",
                Role::Origin => "origin",
            };
            add(&["--pid", &format!("{role}={pid}")]);
        }
        add(&["--json", "-"]);
        command.extend(flags);
        command
    }

    fn weir_command(&self, subcommand: &str) -> Vec<String> {
        vec![self.weir.display().to_string(), subcommand.to_owned()]
    }

    fn prepare(
        &self,
        target: &Target,
        mode: Mode,
        values: &Values,
        work: &Path,
    ) -> Result<Option<Prepared>, LabError> {
        let Some(prepared) = target.prepare(mode, values)? else { return Ok(None) };
        let mut settings = format!("# {}\n", prepared.command.join(" "));
        for (name, text) in &prepared.files {
            let path = work.join(name);
            fs::write(&path, text).map_err(LabError::file(path, "cannot be written"))?;
            settings.push_str(&format!("\n# ---- {name} ----\n{text}"));
        }
        self.store.keep_settings(&format!("{}.{mode}.txt", target.name), &settings)?;
        Ok(Some(prepared))
    }
}

impl Executor for ProcessExecutor {
    fn execute(&mut self, request: &Request<'_>) -> Result<Observation, LabError> {
        let cell = &request.run.cell;
        let target =
            self.targets.present.get(&cell.target).cloned().ok_or_else(|| {
                LabError::Nothing(format!("target {} is not present any more", cell.target))
            })?;
        let work = self.work.join(&request.run.id);
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work).map_err(LabError::file(&work, "cannot be made"))?;
        let (origin_port, target_port) = self.ports()?;
        let values = values(&self.weir, &self.experiment.tls)
            .with("dir", work.display())
            .with("listen_port", target_port)
            .with("upstream_port", origin_port)
            .with("cert", self.tls_file("cert.pem").display())
            .with("key", self.tls_file("key.pem").display())
            .with("identity", self.tls_file("identity.pem").display())
            .with("ca", self.tls_file("ca.pem").display())
            .with("cores", list(&self.placement.cores.gateway))
            .with("workers", self.placement.cores.gateway.len())
            .with("connections", cell.connections);
        let prepared = self.prepare(&target, cell.mode, &values, &work)?;
        let mut stage =
            Running { work: &work, interrupt: &self.interrupt, began: Instant::now(), parts: Vec::new() };
        let mut observation = Observation::default();
        observation.failure = stage
            .measure(self, request, prepared.as_ref(), [origin_port, target_port], &mut observation)
            .err();
        stage.stop(&target, &mut observation);
        if self.interrupt.is_set() {
            return Err(LabError::Interrupted { directory: self.store.directory().to_owned() });
        }
        fs::remove_dir_all(&work).map_err(LabError::file(&work, "cannot be removed"))?;
        Ok(observation)
    }
}

/// The processes of one run.
struct Running<'a> {
    work: &'a Path,
    interrupt: &'a Interrupt,
    began: Instant,
    parts: Vec<Part>,
}

struct Part {
    role: &'static str,
    command: Vec<String>,
    cores: Vec<usize>,
    process: Process,
}

impl Running<'_> {
    /// The phases of a run. The text of an error is the reason why the run is invalid.
    fn measure(
        &mut self,
        lab: &ProcessExecutor,
        request: &Request<'_>,
        prepared: Option<&Prepared>,
        [origin_port, target_port]: [u16; 2],
        observation: &mut Observation,
    ) -> Result<(), String> {
        let cores = &lab.placement.cores;
        self.start("origin", lab.origin_command(request.run.cell.mode, origin_port), &cores.origin)?;
        if let Some(prepared) = prepared {
            self.start("target", prepared.command.clone(), &cores.gateway)?;
        }
        self.ready("origin", &format!("127.0.0.1:{origin_port}"), ORIGIN_READY)?;
        if let Some(prepared) = prepared {
            self.ready("target", &prepared.ready, Duration::from_millis(prepared.ready_timeout_ms))?;
        }
        let pid = |role| self.parts.iter().find(|part| part.role == role).map(|part| part.process.pid());
        let roles = [("target", Role::Gateway), ("origin", Role::Origin)];
        let pids: Vec<(Role, u32)> =
            roles.into_iter().filter_map(|(part, role)| Some((role, pid(part)?))).collect();
        let port = if prepared.is_some() { target_port } else { origin_port };
        let used = lab.used_cores();
        let meter = Meter::begin(&used, &pids.iter().map(|(_, pid)| *pid).collect::<Vec<_>>());
        self.start("load", lab.load_command(request, port, &pids), &cores.load)?;
        let time = Duration::from_millis(request.warmup_ms + request.window_ms) + lab.grace;
        let load = self.part("load")?;
        match load.process.wait(time, self.interrupt) {
            Waited::Ended => {}
            Waited::Deadline => return Err(format!("load: not done after {} s", time.as_secs())),
            Waited::Interrupted => return Err("interrupted".into()),
        }
        let groups = groups(self.parts.iter().map(|part| &part.process));
        observation.foreign_cpu = meter.and_then(|meter| meter.foreign_share(&used, &groups));
        // Before the servers are stopped, and after the window: reading the table costs the machine something.
        observation.upstream_connections = prepared.and_then(|_| connections_to(origin_port));
        let output =
            load.process.output().map_err(|error| format!("load: its result cannot be read: {error}"))?;
        observation.load = Some(parse(&output).map_err(|error| {
            let words = load.process.last_words();
            format!("load: {error}{}{}", if words.is_empty() { "" } else { ": " }, last_line(&words))
        })?);
        for role in ["target", "origin"] {
            if let Ok(part) = self.part(role)
                && part.process.wait(Duration::ZERO, self.interrupt) == Waited::Ended
            {
                return Err(format!("{role}: it ended by itself: {}", last_line(&part.process.last_words())));
            }
        }
        Ok(())
    }

    fn start(&mut self, role: &'static str, command: Vec<String>, cores: &[usize]) -> Result<(), String> {
        let process = Process::start(role, &command, cores, self.work)
            .map_err(|error| format!("{role}: {} cannot be started: {error}", command[0]))?;
        self.parts.push(Part { role, command, cores: cores.to_vec(), process });
        Ok(())
    }

    fn part(&self, role: &str) -> Result<&Part, String> {
        self.parts.iter().find(|part| part.role == role).ok_or_else(|| format!("{role}: not started"))
    }

    fn ready(&self, role: &str, address: &str, timeout: Duration) -> Result<(), String> {
        let part = self.part(role)?;
        part.process
            .wait_ready(address, timeout, self.interrupt)
            .map_err(|error| format!("{role}: {error}: {}", last_line(&part.process.last_words())))
    }

    /// Ends all processes and writes down how they ended. Who was asked last is not waited for first.
    fn stop(&mut self, target: &Target, observation: &mut Observation) {
        let stop = |role: &str| if role == "target" { target.stop() } else { STOP };
        for part in &self.parts {
            part.process.signal(stop(part.role).signal);
        }
        for part in &mut self.parts {
            let exit = match part.process.finish(stop(part.role)) {
                Ok(exit) if exit.killed => {
                    format!("killed {} ms after it was asked to end", stop(part.role).timeout_ms)
                }
                Ok(exit) => exit.status,
                Err(error) => error.to_string(),
            };
            observation.processes.push(ProcessReport {
                role: part.role.to_owned(),
                command: part.command.clone(),
                cores: part.cores.clone(),
                exit,
                stderr: part.process.last_words(),
            });
        }
        observation.elapsed_ms = self.began.elapsed().as_millis() as u64;
    }
}

/// `ca.pem`, `cert.pem`, `key.pem`, and the last two in one `identity.pem`, as some targets want them.
pub(crate) fn issue_certificate(tls: &Tls, directory: &Path) -> Result<(), LabError> {
    let kind = match tls.certificate {
        CertificateKind::EcdsaP256 => KeyKind::EcdsaP256,
    };
    let wrong = |error: issue::IssueError| LabError::Certificate(error.to_string());
    let issued = issue::issue(&NAMES, kind).map_err(wrong)?;
    issued.write_to(directory).map_err(wrong)?;
    let path = directory.join("identity.pem");
    let options = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    let both = format!("{}{}", issued.certificates, issued.key);
    options
        .and_then(|mut file| file.write_all(both.as_bytes()))
        .map_err(LabError::file(path, "cannot be written"))
}

/// The values that do not depend on the run.
fn values(weir: &Path, tls: &Tls) -> Values {
    Values::default()
        .with("weir", weir.display())
        .with("tickets", tls.tickets)
        .with("tls_version", tls.version.name())
        .with("suite", tls.suite.name())
        .with("ciphers_13", tls.suite.openssl_13())
        .with("ciphers_12", tls.suite.openssl_12())
        .with("group", tls.group.name())
        .with("group_openssl", tls.group.openssl())
}

/// Values of every name, for reading the targets' descriptions and templates before anything runs.
pub(crate) fn sample_values(weir: &Path, tls: &Tls) -> Values {
    let names = [
        "dir",
        "listen_port",
        "upstream_port",
        "cert",
        "key",
        "identity",
        "ca",
        "cores",
        "workers",
        "connections",
    ];
    names.into_iter().fold(values(weir, tls), |values, name| values.with(name, "0"))
}

fn parse(output: &str) -> Result<LoadResult, String> {
    if output.trim().is_empty() {
        return Err("it gave no result".into());
    }
    serde_json::from_str(output).map_err(|error| format!("its result cannot be read: {error}"))
}

fn last_line(words: &str) -> &str {
    words.lines().next_back().unwrap_or("it said nothing")
}

/// The program that is running now, which is origin and load engine too.
pub(crate) fn this_program() -> Result<PathBuf, LabError> {
    std::env::current_exe()
        .map_err(|source| LabError::System { action: "finding this program's own file", source })
}

/// Cores must be known before anything is placed.
pub(crate) fn allowed_cores() -> Result<Vec<usize>, LabError> {
    let cores = crate::process::allowed_cores()
        .map_err(|source| LabError::System { action: "reading the cores that may be used", source })?;
    if cores.is_empty() {
        return Err(ConfigError::new("cores", "the system allows none").into());
    }
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Load;
    use crate::testing::{experiment, record, targets};

    /// The words that tell the load engine what to do in a run of that mode, with such flags in `[load]`.
    fn load_command(mode: Mode, load: Load, flags: &[(&str, toml::Value)]) -> String {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::create(&directory.path().join("results")).expect("is made");
        let mut experiment = experiment();
        experiment.modes = vec![mode];
        experiment.load = flags.iter().map(|(flag, value)| ((*flag).to_owned(), value.clone())).collect();
        let placement = Placement::choose(&experiment.cores, &[0, 1]);
        let (targets, interrupt) = (targets(directory.path()), Interrupt::default());
        let run = record(mode, load).run;
        let request = Request::new(&run, &experiment, (load == Load::EqualRate).then_some(500.0));
        let lab =
            ProcessExecutor::new("weir".into(), store, experiment.clone(), targets, placement, interrupt);
        let pids = [(Role::Gateway, 7), (Role::Origin, 8)];
        lab.expect("is made").load_command(&request, 4430, &pids).join(" ")
    }

    #[test]
    fn the_load_engine_is_told_the_experiments_flags_after_the_labs_own() {
        let flags = [("header", "X-Run: 1".into()), ("arrivals", "poisson".into())];
        let own = "weir load http://127.0.0.1:4430/bytes/100 -c 8 -d 50ms --warmup 10ms -t 1 --cores 1";
        let end = "--pid gateway=7 --pid origin=8 --json - --header=X-Run: 1";
        let closed = load_command(Mode::H1cH1c, Load::Saturated, &flags);
        assert_eq!(closed, format!("{own} {end}"));
        let open = load_command(Mode::H1cH1c, Load::EqualRate, &flags);
        let arrivals = open.replace(" --arrivals=poisson", "");
        assert_eq!(arrivals, format!("{own} --rate 500 {end}"));
        assert_ne!(arrivals, open);
    }

    #[test]
    fn the_labs_authority_is_believed_unless_anyone_is() {
        let verified = load_command(Mode::H1H1c, Load::Saturated, &[]);
        assert!(
            verified.contains("tls/ca.pem --tls 1.3 --suite aes128-gcm-sha256 --group x25519"),
            "{verified}"
        );
        let insecure = load_command(Mode::H1H1c, Load::Saturated, &[("insecure", true.into())]);
        assert!(insecure.ends_with(" --insecure") && !insecure.contains("--cacert"), "{insecure}");
    }
}
