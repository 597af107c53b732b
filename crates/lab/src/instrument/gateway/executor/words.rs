//! The command lines of the test server and the load engine.

use super::super::load_table;
use super::super::run::Asked;
use super::material;
use crate::base::error::LabError;
use crate::instrument::gateway::{Conditions, Framing, Load, OriginKind, RequestKind, Side, Tls};
use crate::planning::placement::list;
use crate::planning::planned_run::{PlannedRun, Stage};
use std::fs;
use std::path::{Path, PathBuf};

/// The locations of an experiment's programs and files.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The program that is test server and load engine.
    pub(super) weir: PathBuf,
    /// Certificate, key and CA.
    pub(super) tls: PathBuf,
    /// Files shared by runs, such as echoed bodies.
    pub(super) shared: PathBuf,
}

impl Places {
    fn tls_file(&self, conditions: &Conditions, name: &str) -> String {
        self.tls.join(conditions.tls.certificate.to_string()).join(name).display().to_string()
    }

    fn weir(&self, subcommand: &str) -> Vec<String> {
        vec![self.weir.display().to_string(), subcommand.to_owned()]
    }

    /// The test server's command; the conditions' cores are the available ones. At `counts` it serves its counters:
    /// bound first, so that they are available once the other listeners are.
    pub(super) fn origin(
        &self,
        conditions: &Conditions,
        authorities: &[String],
        counts: &str,
        work: &Path,
    ) -> Result<Vec<String>, LabError> {
        let side = conditions.mode.origin();
        if conditions.origin == OriginKind::Openssl && side == Side::H1 {
            let authority = authorities.first().map_or("", String::as_str);
            return self.openssl_origin(conditions, authority, counts, work);
        }
        let mut command = self.weir("origin");
        let mut add = |words: &[&str]| command.extend(words.iter().map(|word| (*word).to_owned()));
        add(&["--listen", &format!("http://{counts}")]);
        for authority in authorities {
            add(&["--listen", &format!("{}://{authority}", side.scheme())]);
        }
        if side.is_tls() {
            add(&[
                "--cert",
                &self.tls_file(conditions, "cert.pem"),
                "--key",
                &self.tls_file(conditions, "key.pem"),
            ]);
            // Whatever the target offers: other parameters are rejected.
            command.extend(negotiated(&conditions.tls));
        }
        // Otherwise a target that offers HTTP/2 would choose another mode. With HTTP/2 the counters still are for
        // HTTP/1.1, and tell how each request came.
        if !side.is_http2() {
            command.extend(["--http".into(), "1.1".into()]);
        }
        let cores = &conditions.cores.origin;
        command.extend(["--workers".into(), cores.len().to_string(), "--cores".into(), list(cores)]);
        Ok(command)
    }

    /// The command of the test server on OpenSSL.
    fn openssl_origin(
        &self,
        conditions: &Conditions,
        authority: &str,
        counts: &str,
        work: &Path,
    ) -> Result<Vec<String>, LabError> {
        let settings = serde_json::json!({
            "listen": authority,
            "counts": counts,
            "cert": self.tls_file(conditions, "cert.pem"),
            "key": self.tls_file(conditions, "key.pem"),
            "group": conditions.tls.group.openssl(),
        });
        let [program, given] = ["origin.js", "origin.json"].map(|name| work.join(name));
        for (path, text) in [(&program, include_str!("origin.js")), (&given, &settings.to_string())] {
            fs::write(path, text).map_err(LabError::file(path, "cannot be written"))?;
        }
        Ok(["node".to_owned(), program.display().to_string(), given.display().to_string()].to_vec())
    }

    /// The load engine's command for a run.
    pub(super) fn load(
        &self,
        asked: &Asked<'_>,
        authority: &str,
        pids: &[(&str, u32)],
    ) -> Result<Vec<String>, LabError> {
        let Asked { run, conditions, rate } = asked;
        let (cores, load) = (&conditions.cores.load, &conditions.load);
        let window_ms = conditions.window_ms(run.stage);
        let mut command = self.weir("load");
        let mut add = |words: &[&str]| command.extend(words.iter().map(|word| (*word).to_owned()));
        add(&[&conditions.load_url(authority)]);
        add(&["-c", &conditions.client_connections().to_string()]);
        add(&conditions.http_words().iter().map(String::as_str).collect::<Vec<_>>());
        add(&["-d", &format!("{window_ms}ms"), "--warmup", &format!("{}ms", conditions.warmup_ms)]);
        add(&["-t", &cores.len().to_string(), "--cores", &list(cores)]);
        if conditions.request == RequestKind::Echo {
            let (body, sha256) = material::echo_body(&self.shared, conditions.bytes)?;
            add(&["--data", &body.display().to_string(), "-H", "Content-Type: application/json"]);
            add(&["--expect-sha256", &sha256]);
            if conditions.framing == Framing::Chunked {
                add(&["--chunked"]);
            }
        }
        if conditions.error_budget > 0.0 {
            add(&["--error-budget", &conditions.error_budget_percent().to_string()]);
        }
        if conditions.mode.client().is_tls() {
            if load.get("insecure").and_then(toml::Value::as_bool) != Some(true) {
                add(&["--cacert", &self.tls_file(conditions, "ca.pem")]);
            }
            add(&negotiated(&conditions.tls).iter().map(String::as_str).collect::<Vec<_>>());
            // In TLS 1.2 a scheme names no curve, and servers choose among several in their own order.
            if !load.contains_key("signature") {
                add(&["--signature", conditions.tls.certificate.signature()]);
            }
        }
        if let Some(rate) = rate {
            add(&["--rate", &rate.to_string()]);
        }
        for (role, pid) in pids {
            add(&["--pid", &format!("{role}={pid}")]);
        }
        add(&["--json", "-"]);
        command.extend(load_table::words(load, conditions.load_model, run.stage)?);
        Ok(command)
    }

    /// The command for the load before the warm-up: at full speed, like a calibration run.
    pub(super) fn load_before(&self, asked: &Asked<'_>, authority: &str) -> Result<Vec<String>, LabError> {
        let run = PlannedRun { stage: Stage::Calibration, ..asked.run.clone() };
        let conditions = Conditions {
            load_model: Load::Saturated,
            warmup_ms: 0,
            calibration_ms: asked.conditions.served_ms,
            ..asked.conditions.clone()
        };
        self.load(&Asked { run: &run, conditions, rate: None }, authority, &[])
    }
}

/// The flags that make either side negotiate exactly this.
fn negotiated(tls: &Tls) -> Vec<String> {
    let flags = format!("--tls {} --suite {} --group {}", tls.version, tls.suite, tls.group);
    flags.split(' ').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::instrument::gateway::Mode;
    use crate::instrument::gateway::testing::{experiment, record};

    fn places() -> (tempfile::TempDir, Places) {
        let shared = tempfile::tempdir().expect("a directory");
        let places = Places { weir: "weir".into(), tls: "/tls".into(), shared: shared.path().into() };
        (shared, places)
    }

    /// The load engine's command in a run of that mode, after a change of the experiment.
    fn load_command(mode: Mode, load: Load, change: impl FnOnce(&mut Experiment)) -> String {
        let mut experiment = experiment();
        experiment.set_factor("mode", vec![mode.to_string().into()]);
        change(&mut experiment);
        let (shared, places) = places();
        let run = record(mode, load).run;
        let conditions = experiment.conditions(&run.cell).expect("is a cell of it");
        let rate = (load == Load::EqualRate).then_some(500.0);
        let asked = Asked { run: &run, conditions, rate };
        let pids = [("gateway", 7), ("origin", 8)];
        let command = places.load(&asked, "127.0.0.1:4430", &pids).expect("are words").join(" ");
        command.replace(&shared.path().display().to_string(), "")
    }

    fn flag(experiment: &mut Experiment, flag: &str, value: impl Into<toml::Value>) {
        experiment.set_constant(&format!("load.{flag}"), value.into());
    }

    #[test]
    fn the_load_engine_gets_the_experiments_flags_after_the_labs_own() {
        let flags = |experiment: &mut Experiment| {
            flag(experiment, "header", "X-Run: 1");
            flag(experiment, "arrivals", "poisson");
        };
        let own = "weir load http://127.0.0.1:4430/bytes/100 -c 8 -d 50ms --warmup 10ms -t 1 --cores 1";
        let end = "--pid gateway=7 --pid origin=8 --json - --header=X-Run: 1";
        let closed = load_command(Mode::H1cH1c, Load::Saturated, flags);
        assert_eq!(closed, format!("{own} {end}"));
        let open = load_command(Mode::H1cH1c, Load::EqualRate, flags);
        let arrivals = open.replace(" --arrivals=poisson", "");
        assert_eq!(arrivals, format!("{own} --rate 500 {end}"));
        assert_ne!(arrivals, open);
    }

    /// The test server enforces the upstream's parameters on a target that cannot be configured for them.
    #[test]
    fn the_test_server_accepts_only_the_expected_parameters() {
        let origin = |mode: Mode, authorities: &[String]| {
            let mut experiment = experiment();
            experiment.set_factor("mode", vec![mode.to_string().into()]);
            experiment.set_constant("tls.suite", "chacha20-poly1305-sha256".into());
            let conditions = experiment.conditions(&record(mode, Load::Saturated).run.cell);
            let (_shared, places) = places();
            places
                .origin(&conditions.expect("is a cell of it"), authorities, "127.0.0.1:2", Path::new("/work"))
                .expect("is a command of `weir origin`")
                .join(" ")
        };
        let (one, cores) = (["127.0.0.1:1".to_owned()], "--http 1.1 --workers 1 --cores 1");
        let clear = format!("weir origin --listen http://127.0.0.1:2 --listen http://127.0.0.1:1 {cores}");
        assert_eq!(origin(Mode::H1H1c, &one), clear);
        let two = [one.clone(), ["127.0.0.1:3".to_owned()]].concat();
        let clear = clear.replace(" --http", " --listen http://127.0.0.1:3 --http");
        assert_eq!(origin(Mode::H1H1c, &two), clear);
        let parameters = "--tls 1.3 --suite chacha20-poly1305-sha256 --group x25519";
        let tls = format!(
            "--listen https://127.0.0.1:1 --cert /tls/ecdsa-p256/cert.pem --key /tls/ecdsa-p256/key.pem {parameters}"
        );
        assert_eq!(
            origin(Mode::H1cH1, &one),
            format!("weir origin --listen http://127.0.0.1:2 {tls} {cores}")
        );
    }

    #[test]
    fn users_are_streams_of_the_connections_in_a_mode_with_http2() {
        let streams = |number: i64| move |one: &mut Experiment| one.set_constant("streams", number.into());
        let clear = load_command(Mode::H2cH1c, Load::Saturated, streams(4));
        let own = "weir load http://127.0.0.1:4430/bytes/100 -c 2 --http=2 --streams=4 -d 50ms ";
        assert!(clear.starts_with(own), "{clear}");
        let tls = load_command(Mode::H2H2, Load::Saturated, |_| {});
        let own = "weir load https://127.0.0.1:4430/bytes/100 -c 8 --http=2 --streams=1 ";
        assert!(tls.starts_with(own) && tls.contains(" --cacert "), "{tls}");
    }

    /// With HTTP/2 its counters must be readable, and they tell the versions apart.
    #[test]
    fn the_test_server_accepts_http2_where_the_mode_has_it() {
        for (mode, listen, is_limited) in [
            (Mode::H2cH1c, "http", true),
            (Mode::H2H1, "https", true),
            (Mode::H2cH2c, "http", false),
            (Mode::H2H2, "https", false),
        ] {
            let mut experiment = experiment();
            experiment.set_factor("mode", vec![mode.to_string().into()]);
            let conditions = experiment.conditions(&record(mode, Load::Saturated).run.cell);
            let (_shared, places) = places();
            let (conditions, authorities) =
                (conditions.expect("is a cell of it"), ["127.0.0.1:1".to_owned()]);
            let command = places.origin(&conditions, &authorities, "127.0.0.1:2", Path::new("/work"));
            let command = command.expect("is a command of `weir origin`").join(" ");
            assert!(command.contains(&format!("--listen {listen}://127.0.0.1:1 ")), "{command}");
            assert_eq!(command.contains("--http 1.1"), is_limited, "{command}");
        }
    }

    #[test]
    fn the_labs_ca_is_trusted_unless_verification_is_off() {
        let verified = load_command(Mode::H1H1c, Load::Saturated, |_| {});
        let words = "--cacert /tls/ecdsa-p256/ca.pem --tls 1.3 --suite aes128-gcm-sha256 --group x25519";
        assert!(verified.contains(words), "{verified}");
        // Regression test: servers on OpenSSL signed with the client's first TLS 1.2 scheme, not the experiment's one.
        assert!(verified.contains(" --signature ecdsa-p256-sha256 "), "{verified}");
        let own = load_command(Mode::H1H1c, Load::Saturated, |one| flag(one, "signature", "ed25519"));
        assert!(own.contains(" --signature=ed25519") && !own.contains("--signature ecdsa"), "{own}");
        let insecure = load_command(Mode::H1H1c, Load::Saturated, |one| flag(one, "insecure", true));
        assert!(insecure.ends_with(" --insecure") && !insecure.contains("--cacert"), "{insecure}");
    }

    #[test]
    fn a_body_is_echoed_delayed_and_compared() {
        let command = load_command(Mode::H1cH1c, Load::Saturated, |experiment| {
            experiment.set_constant("request", "echo".into());
            experiment.set_constant("framing", "chunked".into());
            experiment.set_constant("delay_ms", 30.into());
        });
        let url = "http://127.0.0.1:4430/echo?delay_ms=30 ";
        assert!(command.contains(url), "{command}");
        assert!(command.contains("--data /echo-100.json -H Content-Type: application/json "), "{command}");
        // printf '{"payload":"%s"}' "$(printf 'abcdefghijklmnopqrstuvwxyz0123456789%.0s' 1 2 3 | head -c 86)" | sha256sum
        let sha256 =
            "--expect-sha256 0eeb045405915b8df4051dc0560673ee929ea1f1c7b4254614bbb90765f53447 --chunked";
        assert!(command.contains(sha256), "{command}");
    }

    #[test]
    fn the_error_budget_is_passed_in_percent() {
        for (share, words) in [
            (0.0, ""),
            (0.007, " --error-budget 0.7 "),
            (0.5, " --error-budget 50 "),
            (1e-9, " --error-budget 0.0000001 "),
        ] {
            let command = load_command(Mode::H1cH1c, Load::Saturated, |experiment| {
                experiment.set_constant("error_budget", share.into());
            });
            assert_eq!(command.contains("--error-budget"), !words.is_empty(), "{command}");
            assert!(command.contains(words), "{command}");
        }
    }

    #[test]
    fn the_load_before_the_warm_up_is_saturating() {
        let mut experiment = experiment();
        experiment.set_constant("served_ms", 700.into());
        flag(&mut experiment, "arrivals", "poisson");
        let run = record(Mode::H1cH1c, Load::EqualRate).run;
        let conditions = experiment.conditions(&run.cell).expect("is a cell of it");
        let (_shared, places) = places();
        let asked = Asked { run: &run, conditions, rate: Some(500.0) };
        let words = places.load_before(&asked, "127.0.0.1:80").expect("are words").join(" ");
        assert!(words.contains(" -d 700ms --warmup 0ms ") && !words.contains("--rate"), "{words}");
        assert!(!words.contains("poisson"), "{words}");
    }
}
