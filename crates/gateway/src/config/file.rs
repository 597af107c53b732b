//! Reads configuration files, and checks them with the files that they name.

use super::compile::{KnownCertificates, compile_with};
use super::document::Config;
use super::finding::{Fault, Finding, Findings};
use super::named_files::{Files, OnDisk, of_certificate};
use super::served_certificates::ServedCertificate;
use super::snapshot::Snapshot;
use super::source::{self, Document, Texts, Variables};
use std::path::Path;
use std::sync::Arc;

/// A configuration without faults, checked with the files that it names, and with its server names resolved.
#[derive(Debug)]
pub struct Checked {
    /// The configuration as written.
    pub config: Config,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) files: Files,
    /// The certificates loaded from files, not those set at run time, in the order of the configuration; empty if no
    /// listener presents any.
    certificates: Arc<[ServedCertificate]>,
    findings: Findings,
    /// The files that the configuration was read from; `None` if there are none.
    texts: Option<Texts>,
}

impl Checked {
    /// Checks a configuration. If there is a fault, the error contains all findings.
    pub fn new(config: Config) -> Result<Self, Findings> {
        Self::after(config, None)
    }

    /// As [`Checked::new`], but takes certificates from `previous` if their files have the same contents.
    pub fn after(config: Config, previous: Option<&Self>) -> Result<Self, Findings> {
        // Read before the files are used, so that the next check detects a file that changes meanwhile.
        let files = Files::read(&config);
        let mut findings = Findings::default();
        let known = previous.map(|previous| previous.certificates_in(&files)).unwrap_or_default();
        let Some(snapshot) = compile_with(&config, &known, &mut findings) else { return Err(findings) };
        let certificates = Arc::clone(&snapshot.certificates);
        Ok(Self { config, snapshot: Arc::new(snapshot), files, certificates, findings, texts: None })
    }

    /// The certificates loaded from files, not those set at run time, in the order of the configuration; empty if no
    /// listener presents any.
    pub(crate) fn certificates(&self) -> &[ServedCertificate] {
        &self.certificates
    }

    /// The certificates whose files have the same contents in `files`.
    fn certificates_in(&self, files: &Files) -> KnownCertificates<'_> {
        let certificates = self.config.certificates.iter().zip(&*self.certificates);
        certificates
            .filter(|(written, _)| files.are_same(&self.files, of_certificate(written)))
            .map(|(written, served)| (written.files(), &served.certificate))
            .collect()
    }

    /// The warnings: settings that are valid, but rarely intended.
    pub fn warnings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.warnings()
    }

    /// The file that the configuration was read from; `None` if it was not read from a file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.texts.as_ref().and_then(Texts::path)
    }

    /// The files that the configuration was read from, and those that it names, with their contents at the time of
    /// reading.
    pub(crate) fn on_disk(&self) -> OnDisk {
        OnDisk::new(self.texts.as_ref(), self.files.clone())
    }

    /// Whether all files are unchanged since the configuration was read.
    pub(crate) fn is_current(&self) -> bool {
        let before = self.on_disk();
        let now = match self.path() {
            Some(path) => before.again(path),
            None => OnDisk::new(None, Files::read(&self.config)),
        };
        now == before
    }

    /// Formats faults of the configuration: with file and line, if it was read from a file.
    pub(crate) fn in_words(&self, faults: Findings) -> String {
        located(self.texts.as_ref(), faults)
    }

    /// Returns a function that formats faults of the configuration, and that may outlive the configuration.
    pub fn teller(&self) -> impl Fn(Fault) -> String + use<> {
        let texts = self.texts.clone();
        move |fault| located(texts.as_ref(), fault.into())
    }
}

fn located(texts: Option<&Texts>, mut findings: Findings) -> String {
    if let Some(document) = texts.and_then(|texts| Document::of(texts, &mut Findings::default())) {
        findings.locate(|key| document.locate(key));
        findings.sort();
    }
    findings.to_string()
}

/// Reads and checks a configuration, and the files that it includes. If there is a fault, the error contains all
/// findings, with file, line, key and the expected value.
pub fn read(path: &Path) -> Result<Checked, Findings> {
    read_after(path, None)
}

/// As [`read`], but takes certificates from `previous` if their files have the same contents.
pub fn read_after(path: &Path, previous: Option<&Checked>) -> Result<Checked, Findings> {
    let mut findings = Findings::default();
    let texts = Texts::read(path, &mut findings);
    let checked = checked(&texts, previous, &mut findings);
    findings.sort();
    match checked {
        Some(checked) if findings.faults().next().is_none() => {
            Ok(Checked { findings, texts: Some(texts), ..checked })
        }
        _ => Err(findings),
    }
}

/// Parses a configuration file and its included files, given by name and text, with `variables` in place of the
/// environment. Reads no file. Fails as [`read`] does.
pub fn parse(files: &[(&str, &str)], variables: Variables<'_>) -> Result<Config, Findings> {
    let mut findings = Findings::default();
    let texts = Texts::from(files);
    let document = Document::with(&texts, variables, &mut findings);
    let config = document.and_then(|document| source::config(&document, &mut findings));
    findings.sort();
    match config {
        Some((config, _)) if findings.faults().next().is_none() => Ok(config),
        _ => Err(findings),
    }
}

/// Checks the files' contents. Returns `None` if there is a fault.
fn checked(texts: &Texts, previous: Option<&Checked>, findings: &mut Findings) -> Option<Checked> {
    let document = Document::of(texts, findings)?;
    let (config, doubts) = source::config(&document, findings)?;
    let (checked, mut found) = match Checked::after(config, previous) {
        Ok(mut checked) => {
            let found = std::mem::take(&mut checked.findings);
            (Some(checked), found)
        }
        Err(found) => (None, found),
    };
    found.locate(|key| document.locate(key));
    findings.add(found, |finding| !doubts.cover(finding));
    checked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        let texts = Texts::from(&[("weir.toml", text)][..]);
        let mut findings = Findings::default();
        checked(&texts, None, &mut findings);
        findings.sort();
        findings.faults_in_words()
    }

    /// Regression test: a value with an unset variable was also reported as invalid, and an unknown key of `[defaults]`
    /// was reported again for a route.
    #[test]
    fn a_key_has_one_fault() {
        let unset = "the environment variable `WEIR_NONE` is not set: set it, or write a default as in `${WEIR_NONE:-..}`";
        for (text, expected) in [
            (
                format!("[listener.web]\nbind = '${{WEIR_NONE}}'\n{ROUTE}"),
                format!("weir.toml:2: listener.web.bind: {unset}"),
            ),
            (
                format!("{LISTENER}[service.app]\nservers = '${{WEIR_NONE}}'\n[[route]]\nservice = 'app'\n"),
                format!("weir.toml:4: service.app.servers: {unset}"),
            ),
            (
                format!("{LISTENER}[limits]\nbody = '${{WEIR_NONE}}'\n{ROUTE}"),
                format!("weir.toml:4: limits.body: {unset}"),
            ),
            (
                format!(
                    "{LISTENER}{SERVICE}[defaults]\nmax_body = '${{WEIR_NONE}}'\n[[route]]\nservice = 'app'\n"
                ),
                format!("weir.toml:6: defaults.max_body: {unset}"),
            ),
            (
                format!("{LISTENER}{SERVICE}[defaults]\nmax_body = '1 mile'\n[[route]]\nservice = 'app'\n"),
                "weir.toml:6: defaults.max_body: invalid size".to_owned(),
            ),
            (
                format!("{LISTENER}{SERVICE}[defaults]\nservce = 'app'\n[[route]]\nservice = 'app'\n"),
                "weir.toml:6: defaults.servce: unknown field `servce`, expected one of `request_headers`"
                    .to_owned(),
            ),
        ] {
            let found = fault(&text);
            assert!(found.starts_with(&expected) && found.trim_end().lines().count() == 1, "{text}\n{found}");
        }
    }

    const ROUTE: &str = "[[route]]\nrespond.status = 200\n";
    const LISTENER: &str = "[listener.web]\nbind = '127.0.0.1:0'\n";
    const SERVICE: &str = "[service.app]\nservers = 'http://127.0.0.1:1'\n";

    #[test]
    fn faults_name_file_line_key_value_and_what_is_expected() {
        for (text, error) in [
            ("", "weir.toml: listener: missing: expected at least one"),
            ("workers = 0", "weir.toml:1: workers: invalid value `0`: expected at least 1"),
            (
                "workers = 'two'",
                "weir.toml:1: workers: expected a whole number from 0, found the string \"two\"",
            ),
            ("\nworkres = 2", "weir.toml:2: workres: unknown field `workres`; did you mean `workers`?"),
            (
                "[listener.web]\nbind = '1.2.3.4'",
                "weir.toml:2: listener.web.bind: invalid address `1.2.3.4`: missing port",
            ),
            ("[listener.'a b']\nbind = 'a:1'", "weir.toml:1: listener.a b: invalid name `a b`"),
            ("[listener.web]\nbind = []", "weir.toml:2: listener.web.bind: empty"),
            (
                "[listener.web]\nbind = 'a:1'\ntls = {}",
                "weir.toml:3: listener.web.tls: a listener with TLS needs a certificate",
            ),
            (
                "[timeouts]\nidle = '10'",
                "weir.toml:2: timeouts.idle: invalid duration `10`: expected more than 0 with a unit",
            ),
            ("[limits]\nhead = '1K'", "weir.toml:2: limits.head: invalid size \"1K\": expected bytes"),
            ("[limits]\nhead = 10", "weir.toml:2: limits.head: invalid value `10`: expected 512 to 1048576"),
        ] {
            let found = fault(text);
            assert!(found.starts_with(error), "{text}: {found}");
        }
    }

    #[test]
    fn faults_of_services_and_routes() {
        for (text, error) in [
            ("[service.app]\nservers = []", "service.app.servers: empty"),
            (
                "[service.app]\nservers = ['http://a:1', 'ftp://b']",
                "service.app.servers: `ftp://b`: unknown scheme `ftp`",
            ),
            (
                "[service.app]\nservers = ['http://127.0.0.1:1', 'https://127.0.0.1:2']",
                "service.app.servers.1: `https://127.0.0.1:2`: expected the scheme of the first server",
            ),
            (
                "[service.app]\nservers = 'http://127.0.0.1:0'",
                "service.app.servers.0: http://127.0.0.1:0: invalid port 0",
            ),
            (
                "[service.app]\nservers = 'http://127.0.0.1:1'\ntls.name = 'a'",
                "service.app.tls: http://127.0.0.1:1 is not https",
            ),
            (
                "[[route]]\nservice = 'b'",
                "route.0.service: unknown service `b`: expected one of none is defined",
            ),
            (
                "[[route]]\nhost = 'a'",
                "route.0: missing action: expected one of `service`, `redirect`, `respond`",
            ),
            (
                "[[route]]\nrespond.status = 99",
                "route.0.respond.status: invalid value `99`: expected 200 to 599",
            ),
            (
                "[[route]]\nhost = 'a:80'\nrespond.status = 200",
                "route.0.host.0: invalid host `a:80`: expected a name without port",
            ),
            (
                "[[route]]\npath = 'a'\nrespond.status = 200",
                "route.0.path: invalid path `a`: no `/` at its beginning",
            ),
            (
                "[[route]]\nname = 'a b'\nrespond.status = 200",
                "route.0.name: invalid name `a b`: expected 1 to 64 letters, digits, `-` or `_`",
            ),
            ("[[route]]\nname = ''\nrespond.status = 200", "route.0.name: invalid name ``"),
            (
                "[[route]]\nname = 'a'\nrespond.status = 200\n[[route]]\nname = 'a'\nrespond.status = 201",
                "route.1.name: duplicate name `a`: expected a name that no other route has, and route.0 has it",
            ),
            (
                "[[route]]\nlistener = 'x'\nrespond.status = 200",
                "route.0.listener.0: unknown listener `x`: expected one of `web`",
            ),
            (
                "[[route]]\nclient = '10.0.0.1/8'\nrespond.status = 200",
                "route.0.client: invalid network `10.0.0.1/8`",
            ),
            ("[[route]]\nrespond.status = 200\nredirect.to = '/'", "route.0: more than one action"),
            (
                "[[route]]\nredirect = { to = '{hots}' }",
                "route.0.redirect.to: invalid value `{hots}`: unknown variable `{hots}`",
            ),
            (
                "[[route]]\nrespond.status = 200\nresponse_headers.set.TE = 'x'",
                "route.0.response_headers.set.TE: `TE` frames the message",
            ),
            (
                "[[route]]\nrespond.status = 200\nresponse_headers.set.A = '{host}'",
                "route.0.response_headers.set.A: variables are for requests",
            ),
        ] {
            let found = fault(&format!("{LISTENER}{text}"));
            let found = found.split_once(": ").map_or("", |(_, rest)| rest);
            assert!(found.starts_with(error), "{text}: {found}");
        }
        assert_eq!(fault(&format!("{LISTENER}{SERVICE}[[route]]\nservice = 'app'\n")), "");
    }
}
