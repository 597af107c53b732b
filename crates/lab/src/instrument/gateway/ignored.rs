//! Keys without effect in an experiment, whatever their value. Given by `--set`, such a key is an error: the runs would
//! not be the requested ones. In a file it may be for cells that the command line or `--quick` has removed.

use super::load_table::{FlagKind, flag_kind};
use super::{Load, Mode};
use crate::experiment::{Experiment, Level};

/// Why a key has no effect; `None` if it has one.
pub(super) fn ignored(experiment: &Experiment, key: &str) -> Option<String> {
    let needed = match key.strip_prefix("load.") {
        Some(flag) => needed_by_flag(experiment, flag),
        None => needed_by(experiment, key),
    };
    needed.map(|needed| format!("has no effect: expected {needed}"))
}

/// What a key needs for an effect and the experiment lacks.
fn needed_by(experiment: &Experiment, key: &str) -> Option<&'static str> {
    let has = |key: &str| !experiment.levels(key).is_empty();
    let has_gateway = || any_mode(experiment, |mode| mode.upstream().is_some());
    let has_open_loop = || experiment.loads().contains(&Load::EqualRate);
    match key {
        "tls.tickets" => {
            let is_such = |mode: Mode| mode.client().is_tls() && mode.upstream().is_some();
            (!any_mode(experiment, is_such))
                .then_some("a mode in which a gateway terminates TLS, such as `h1-h1c`")
        }
        _ if key.starts_with("tls.") => {
            let is_such = |mode: Mode| mode.client().is_tls() || mode.origin().is_tls();
            (!any_mode(experiment, is_such)).then_some("a mode with TLS, such as `h1-h1`")
        }
        "cores.gateway" | "upstream_connections" => {
            (!has_gateway()).then_some("a mode with a gateway, such as `h1c-h1c`")
        }
        "streams" => {
            let is_such = |mode: Mode| mode.client().is_http2();
            (!any_mode(experiment, is_such)).then_some("a mode with HTTP/2 to the client, such as `h2c-h1c`")
        }
        "rate" => (!has_open_loop()).then_some("`equal-rate` in `load_model`"),
        "rate_share" | "calibration_runs" | "calibration_ms" => {
            (!has_open_loop() || has("rate")).then_some("`equal-rate` in `load_model`, and no `rate`")
        }
        "net.between" => {
            let is_some = |key: &str| experiment.levels(key).iter().any(|level| level.number() != Some(0.0));
            let is_emulated = is_some("net.rtt_ms") || is_some("net.loss_percent");
            (!is_emulated).then_some("`net.rtt_ms` or `net.loss_percent`")
        }
        "bytes" | "request" | "framing" | "delay_ms" if is_without_requests(experiment) => Some(REQUESTS),
        "bytes" => has("load.requests").then_some("no `load.requests`, which sets the paths"),
        _ => None,
    }
}

/// What a flag of the load engine needs for an effect and the experiment lacks.
fn needed_by_flag(experiment: &Experiment, flag: &str) -> Option<&'static str> {
    let has_tls = || any_mode(experiment, |mode| mode.client().is_tls());
    match flag_kind(flag)? {
        FlagKind::Tls => (!has_tls()).then_some("a mode with TLS to the client, such as `h1-h1c`"),
        FlagKind::Resumption => {
            let levels = experiment.levels("load.resume");
            let resumes = levels.iter().any(|level| level.number().is_some_and(|percent| percent > 0.0));
            (!resumes).then_some("`load.resume`")
        }
        FlagKind::Requests => is_without_requests(experiment).then_some(REQUESTS),
    }
}

/// What keys about requests need.
const REQUESTS: &str = "requests: no `load.handshake-only`";

fn any_mode(experiment: &Experiment, is_such: impl Fn(Mode) -> bool) -> bool {
    experiment.modes().into_iter().any(is_such)
}

/// Whether no cell makes requests.
fn is_without_requests(experiment: &Experiment) -> bool {
    let spellings = ["load.handshake-only", "load.handshake_only"];
    let levels: Vec<Level> = spellings.iter().flat_map(|key| experiment.levels(key)).collect();
    !levels.is_empty() && levels.iter().all(|level| level.as_str() == "true")
}

#[cfg(test)]
mod tests {
    use crate::experiment::options::RunOptions;
    use crate::instrument::gateway::testing::{TEXT, parse};

    /// The outcome of these `--set` for the tests' experiment, which has both loads, and modes with and without TLS.
    fn outcome(set: &[&str]) -> Result<(), String> {
        let pairs = set.iter().map(|pair| RunOptions::parse_pair("--set", pair).expect("a pair"));
        let options = RunOptions { set: pairs.collect(), ..RunOptions::default() };
        parse(TEXT, &options).map(drop)
    }

    /// Each key is accepted in an experiment with what it needs, and rejected, with what it needs, in one without.
    #[test]
    fn a_key_without_effect_is_rejected_with_what_it_needs() {
        let tls = "a mode with TLS, such as `h1-h1`";
        let to_client = "a mode with TLS to the client, such as `h1-h1c`";
        let tickets = "a mode in which a gateway terminates TLS, such as `h1-h1c`";
        let gateway = "a mode with a gateway, such as `h1c-h1c`";
        let rate = "`equal-rate` in `load_model`, and no `rate`";
        let requests = "requests: no `load.handshake-only`";
        let handshakes = &["mode=h1-h1c", "load.handshake-only=true"][..];
        let (request, delay) = ("request=echo", "delay_ms=5");
        for (key, with, without, needed) in [
            ("tls.group=p256", &["mode=h1c-h1"][..], &["mode=h1c-h1c"][..], tls),
            ("tls.certificate=rsa-2048", &["mode=h1"], &["mode=[\"h1c\", \"h1c-h1c\"]"], tls),
            ("tls.tickets=1", &[], &["mode=h1"], tickets),
            ("tls.tickets=1", &["mode=h1-h1"], &["mode=h1c-h1"], tickets),
            ("cores.gateway=[3]", &[], &["mode=h1c"], gateway),
            ("upstream_connections=any", &[], &["mode=h1c"], gateway),
            ("rate=500", &[], &["load_model=saturated"], "`equal-rate` in `load_model`"),
            ("rate_share=0.2", &[], &["load_model=saturated"], rate),
            ("calibration_runs=3", &[], &["rate=500"], rate),
            ("calibration_ms=90", &[], &["rate=500"], rate),
            (
                "net.between=client",
                &["net.kind=veth", "net.rtt_ms=5"],
                &["net.kind=veth", "net.rtt_ms=0"],
                "`net.rtt_ms` or `net.loss_percent`",
            ),
            ("bytes=50", &[], handshakes, requests),
            (request, &["mode=h1-h1c"], handshakes, requests),
            (delay, &["mode=h1-h1c"], handshakes, requests),
            (
                "streams=1",
                &["mode=h2-h1c"],
                &["mode=h1-h1c"],
                "a mode with HTTP/2 to the client, such as `h2c-h1c`",
            ),
            ("load.header=X: 1", &[], handshakes, requests),
            ("load.timeout=2s", handshakes, &[], ""),
            ("load.sni=none", &["mode=h1-h1c"], &["mode=h1c-h1c"], to_client),
            ("load.signature=ed25519", &["mode=h1"], &["mode=h1c-h1"], to_client),
            (
                "load.resume_by=id",
                &["mode=h1-h1c", "load.new-connection=true", "load.resume=50"],
                &["mode=h1-h1c", "load.new-connection=true"],
                "`load.resume`",
            ),
        ] {
            let all = |given: &[&'static str]| [given, &[key]].concat();
            assert_eq!(outcome(&all(with)), Ok(()), "{key} with {with:?}");
            if !needed.is_empty() {
                let error = format!("--set {key}: has no effect: expected {needed}");
                assert_eq!(outcome(&all(without)), Err(error), "{key} with {without:?}");
            }
        }
    }

    /// The proof of advice brings the keys of the first run along, whose other cells they were for.
    #[test]
    fn keys_brought_along_from_another_run_may_have_no_effect() {
        let set = [("load_model", "saturated"), ("rate", "500")];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let options = RunOptions { set, is_inherited: true, ..RunOptions::default() };
        assert_eq!(parse(TEXT, &options).map(drop), Ok(()));
    }
}
