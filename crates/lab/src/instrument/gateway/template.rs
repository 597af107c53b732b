//! Templates: text in which `{{name}}` stands for a value of the run.

use super::levels::listed;
use super::ports::Ports;
use crate::base::error::{ConfigError, line_at};
use crate::planning::placement::list;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

/// Connections beyond those of the run: ready checks, and those that close while others open.
const SPARE: u64 = 256;

/// The minimum buffer for a body in bytes: a head precedes it.
const LEAST_BUFFER: u64 = 16 * 1024;

/// The values of one run by their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values(BTreeMap<Cow<'static, str>, String>);

impl Values {
    pub(crate) fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Display) -> Self {
        self.0.insert(name.into(), value.to_string());
        self
    }

    /// Adds the values derived from a run's size, since templates cannot calculate: concurrent clients, bytes of the
    /// bodies of a response and of the echoed request, and the target's cores.
    pub(crate) fn with_size(self, connections: u32, bytes: u64, cores: &[usize]) -> Self {
        let max_clients = u64::from(connections) + SPARE;
        // On the wire each chunk of a body has a line of its own.
        let body_buffer = bytes.saturating_add(bytes / 8).max(LEAST_BUFFER);
        let last = cores.iter().copied().max().unwrap_or(0);
        // Core 0 is the last digit.
        let core_mask = (0..=last).rev().map(|core| if cores.contains(&core) { '1' } else { '0' });
        self.with("connections", connections)
            .with("max_clients", max_clients)
            .with("max_sockets", 2 * max_clients)
            .with("body_buffer", body_buffer)
            .with("workers", cores.len())
            .with("cores", list(cores))
            .with("core_words", list(cores).replace(',', " "))
            .with("core_mask", core_mask.collect::<String>())
    }

    /// Adds the ports of a run whose origin is so many servers. Without as many as a template names, some are one.
    pub(crate) fn with_ports(self, ports: &Ports, servers: usize) -> Self {
        let values = self.with("listen_port", ports.target).with("admin_port", ports.admin);
        let values = values.with("upstream_port", ports.origin[0]);
        let further = 1..ports.origin.len();
        further.fold(values, |values, index| {
            let port = ports.origin[index % servers.clamp(1, ports.origin.len())];
            values.with(format!("upstream_port_{}", index + 1), port)
        })
    }

    /// Adds the files of the certificate in a directory, as [`issue_certificate`](super::issue_certificate) writes
    /// them.
    pub(crate) fn with_certificate(self, directory: &Path) -> Self {
        let file = |name: &str| directory.join(name).with_extension("pem");
        let names = ["cert", "key", "identity", "ca"];
        names.into_iter().fold(self, |values, name| values.with(name, file(name).display()))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Replaces every `{{name}}` in `text`. An unknown name is an error that names `source` and its line.
    pub(crate) fn render(&self, source: impl Display, text: &str) -> Result<String, ConfigError> {
        let mut rendered = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let offset = text.len() - after.len();
            let wrong = |message: String| ConfigError {
                source: source.to_string(),
                line: Some(line_at(text, offset)),
                message,
            };
            let (name, after) =
                after.split_once("}}").ok_or_else(|| wrong("`{{` without its `}}`".into()))?;
            let name = name.trim();
            let value = self.0.get(name).ok_or_else(|| {
                let allowed = listed(self.0.keys());
                wrong(format!("unknown placeholder `{name}`: expected one of {allowed}"))
            })?;
            rendered.push_str(before);
            rendered.push_str(value);
            rest = after;
        }
        Ok(rendered + rest)
    }

    pub(crate) fn render_all(
        &self,
        source: impl Display,
        words: &[String],
    ) -> Result<Vec<String>, ConfigError> {
        words
            .iter()
            .map(|word| self.render(&source, word).map_err(|error| ConfigError { line: None, ..error }))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        Values::default().with("listen_port", 8080).with("dir", "/d")
    }

    #[test]
    fn values_are_put_in() {
        let text = "listen {{listen_port}};\nroot {{ dir }}/x; { } }}";
        assert_eq!(values().render("t", text).expect("renders"), "listen 8080;\nroot /d/x; { } }}");
    }

    #[test]
    fn a_run_has_values_for_each_templates_syntax() {
        let template = "{{connections}} {{max_clients}} {{max_sockets}} {{body_buffer}} {{workers}} {{cores}} {{core_words}} {{core_mask}}";
        let rendered = |connections, bytes, cores: &[usize]| {
            Values::default().with_size(connections, bytes, cores).render("t", template).expect("renders")
        };
        assert_eq!(rendered(64, 1000, &[0]), "64 320 640 16384 1 0 0 1");
        assert_eq!(rendered(50_000, 100_000, &[2, 0, 5]), "50000 50256 100512 112500 3 2,0,5 2 0 5 100101");
    }

    #[test]
    fn servers_of_an_origin_share_its_ports_if_there_are_fewer() {
        let ports = Ports { origin: [1, 2, 3, 4], target: 5, counts: 6, admin: 7 };
        let template = "{{upstream_port}} {{upstream_port_2}} {{upstream_port_3}} {{upstream_port_4}} {{listen_port}} {{admin_port}}";
        let rendered =
            |servers| Values::default().with_ports(&ports, servers).render("t", template).expect("renders");
        assert_eq!([1, 2, 4].map(rendered), ["1 1 1 1 5 7", "1 2 1 2 5 7", "1 2 3 4 5 7"]);
    }

    #[test]
    fn unknown_and_open_placeholders_name_their_line() {
        let message = |text| values().render("nginx.conf", text).expect_err("is rejected").to_string();
        assert_eq!(
            message("a\n{{port}}"),
            "nginx.conf:2: unknown placeholder `port`: expected one of dir, listen_port"
        );
        assert_eq!(message("{{dir}}\n\n{{dir"), "nginx.conf:3: `{{` without its `}}`");
    }

    #[test]
    fn a_value_is_not_rendered_again() {
        let values = Values::default().with("dir", "{{dir}}");
        assert_eq!(values.render("t", "{{dir}}").expect("renders"), "{{dir}}");
    }
}
