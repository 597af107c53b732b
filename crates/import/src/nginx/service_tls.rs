//! `tls` of a service: the `proxy_ssl_*` and `grpc_ssl_*` directives for servers.

use super::module::Module;
use crate::model::Table;
use crate::note::Notes;
use crate::{tls, values};
use weir_syntax::nginx::{Directive, Scope};

/// Translates the TLS settings of a service. `group` is the name that nginx verifies and sends instead of the servers'
/// names.
pub(super) fn tls_towards(
    module: Module,
    scope: &Scope<'_>,
    group: Option<&str>,
    comments: &mut Vec<String>,
    notes: &mut Notes,
) -> Table {
    let mut table = Table::default();
    let verifies = module.arg(scope, "proxy_ssl_verify") == "on";
    if verifies {
        let trusted = module.arg(scope, "proxy_ssl_trusted_certificate");
        if !trusted.is_empty() {
            table.text("ca", trusted);
        }
    } else {
        comments.push(
            "nginx does not verify servers unless told, nor does this; better: tls.ca = \"CA.pem\" in place of tls.insecure"
                .to_owned(),
        );
        table.flag("insecure", true);
    }
    let name = module.find(scope, "proxy_ssl_name");
    match name {
        Some(directive) if directive.arg().contains('$') && directive.arg() != "$proxy_host" => {
            notes.loss(
                &directive.at,
                directive.text(),
                "the name is fixed in Weir; set tls.name of the service",
            );
        }
        Some(directive) if directive.arg() != "$proxy_host" => table.text("name", directive.arg()),
        _ => {
            if let Some(group) = group.filter(|group| verifies && values::is_host(group)) {
                table.text("name", group);
            }
        }
    }
    for (key, name) in [("certificate", "proxy_ssl_certificate"), ("key", "proxy_ssl_certificate_key")] {
        if let Some(directive) = module.find(scope, name) {
            table.text(key, directive.arg());
        }
    }
    if (table.get("certificate").is_some()) != (table.get("key").is_some()) {
        table.0.retain(|(key, _)| key != "certificate" && key != "key");
    }
    let versions =
        module.find(scope, "proxy_ssl_protocols").map(|directive| &directive.args[..]).unwrap_or_default();
    let ciphers = module.find(scope, "proxy_ssl_ciphers");
    let offer = tls::Offer {
        versions: versions.iter().filter_map(|name| tls::version(name)).collect(),
        ciphers: ciphers.map_or("", Directive::arg),
        ciphersuites: "",
    };
    if let (Err(why), Some(directive)) = (offer.write(&mut table), ciphers) {
        notes.loss(&directive.at, directive.text(), why);
    }
    table
}
