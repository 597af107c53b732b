//! The metrics page: the metrics of the workers and of the process.

use crate::observe::{Exposition, Report, process};
use crate::process::{ConfigStatus, Current, Reloads, SecretsFile, Upgrades};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_tls::{RevocationList, Staple};

/// The page in Prometheus' text format, version 0.0.4.
pub(super) fn page(report: &Report, status: &ConfigStatus, reloads: Reloads, upgrades: &Upgrades) -> String {
    let Current { expiry, lists, staples, secrets, since, .. } = status.current();
    let mut text = report.metrics();
    let name = "weir_certificate_not_after_seconds";
    text.family(name, "gauge", "When a certificate expires, in seconds since 1970.");
    for (file, at) in &*expiry {
        text.sample(name, &[("file", file)], at);
    }
    validity_metrics(&lists, &staples, &mut text);
    secrets_metrics(&secrets, &mut text);
    reload_metrics(reloads, since, &mut text);
    text.family("weir_clock_steps_total", "counter", "How often the wall clock was set.");
    text.sample("weir_clock_steps_total", &[], status.clock_steps());
    let name = "weir_upgrades_total";
    text.family(
        name,
        "counter",
        "Upgrades of the program by their result, those before this process included.",
    );
    let (taken, refused) = upgrades.counts();
    text.sample(name, &[("result", "taken")], taken);
    text.sample(name, &[("result", "refused")], refused);
    process::metrics(&mut text);
    text.finish()
}

fn reload_metrics(Reloads { taken, refused, is_stale }: Reloads, since: u64, text: &mut Exposition) {
    let name = "weir_reloads_total";
    text.family(name, "counter", "Reloads of the configuration by their result.");
    text.sample(name, &[("result", "taken")], taken);
    text.sample(name, &[("result", "refused")], refused);
    let name = "weir_configuration_since_seconds";
    text.family(name, "gauge", "When the configuration in use was taken, in seconds since 1970.");
    text.sample(name, &[], since);
    let name = "weir_configuration_stale";
    text.family(name, "gauge", "1 while the last reload was refused, and the configuration in use is older.");
    text.sample(name, &[], u64::from(is_stale));
}

fn validity_metrics(lists: &[RevocationList], staples: &[Staple], text: &mut Exposition) {
    let name = "weir_revocation_list_next_update_seconds";
    text.family(name, "gauge", "When the next revocation list is due, in seconds since 1970.");
    for RevocationList { origin, line, next_update, .. } in lists {
        if let Some(at) = next_update {
            text.sample(name, &[("file", origin), ("line", &line.to_string())], at);
        }
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let name = "weir_ocsp_stapled";
    text.family(name, "gauge", "1 while clients get the OCSP response of a file.");
    for staple in staples {
        text.sample(name, &[("file", &staple.origin)], u64::from(staple.is_stapled_at(now as i64)));
    }
    let name = "weir_ocsp_next_update_seconds";
    text.family(name, "gauge", "When the next OCSP response is due, in seconds since 1970.");
    for staple in staples.iter().filter(|staple| staple.next_update > i64::MIN) {
        text.sample(name, &[("file", &staple.origin)], staple.next_update);
    }
}

fn secrets_metrics(secrets: &[Arc<SecretsFile>], text: &mut Exposition) {
    type Metric = (&'static str, &'static str, &'static str, fn(&SecretsFile) -> u64);
    let metrics: [Metric; 3] = [
        (
            "weir_ticket_secrets_reloads_total",
            "counter",
            "Changes of a file of ticket secrets that were taken.",
            |file| file.reloads.load(Ordering::Relaxed),
        ),
        (
            "weir_ticket_secrets_reload_failures_total",
            "counter",
            "Changes of a file of ticket secrets to something unusable.",
            |file| file.failures.load(Ordering::Relaxed),
        ),
        (
            "weir_ticket_secrets_stale",
            "gauge",
            "1 while a file of ticket secrets is unusable, and the secrets in use are older.",
            |file| u64::from(file.is_stale.load(Ordering::Relaxed)),
        ),
    ];
    for (name, kind, help, value) in metrics.into_iter().filter(|_| !secrets.is_empty()) {
        text.family(name, kind, help);
        for file in secrets {
            text.sample(name, &[("file", &file.path.to_string_lossy())], value(file));
        }
    }
}
