//! Translation of HAProxy configurations.

mod acl;
mod admission;
mod audit;
mod backend;
mod bind;
mod format;
mod frontend;
mod health;
mod http2;
mod rate;
mod region;
mod rules;
mod run;
mod targets;
mod tcp;

use crate::model::Document;
use crate::note::Notes;
use crate::values;
use std::path::{Path, PathBuf};
use weir_syntax::haproxy::{self, Line, Section};
use weir_syntax::{Reader, SyntaxError};

/// The parsed configuration.
pub(super) struct Config<'a> {
    sections: &'a [Section],
    /// The directory to which file names are relative.
    folder: PathBuf,
    reader: &'a dyn Reader,
}

/// Translates the text of the file `path`.
pub(crate) fn translate(
    text: &str,
    path: &Path,
    reader: &dyn Reader,
    notes: &mut Notes,
) -> Result<Document, SyntaxError> {
    let parsed = haproxy::parse(text, path)?;
    for (at, line) in &parsed.expanding {
        let message =
            "HAProxy takes a variable of the environment there; write ${NAME} where the result has its name";
        notes.loss(at, line, message);
    }
    let sections = parsed.sections;
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let config = Config { sections: &sections, folder, reader };
    audit::audit(&config, notes);
    let mut document = Document::default();
    if let Some(line) = config.global("nbthread") {
        document.workers = line.word(1).parse().ok().filter(|workers| *workers > 0);
    }
    general(&config, &mut document, notes);
    let mut entries = Vec::new();
    for section in sections.iter().filter(|section| matches!(section.kind.as_str(), "frontend" | "listen")) {
        if audit::is_statistics(section) {
            continue;
        }
        match config.is_http(section) {
            true => entries.extend(frontend::prepare(section, &config, &mut document, notes)),
            false => tcp::translate(section, &config, &mut document, notes),
        }
    }
    frontend::translate(&entries, &config, &mut document, notes);
    if document.log.get("access").is_some() {
        notes.remark("the access log goes to stdout, as JSON; [log] sets a file and a format");
    }
    document.lacks_certificate(notes);
    Ok(document)
}

/// Translates timeouts and log settings. The gateway has one set for all listeners.
fn general(config: &Config<'_>, document: &mut Document, notes: &mut Notes) {
    for section in config.sections {
        let time = |name: &str| {
            let line = config.find(section, &["timeout", name])?;
            values::time(line.word(2), 1)
        };
        let (is_front, is_back) = match section.kind.as_str() {
            "frontend" => (true, false),
            "backend" => (false, true),
            "listen" => (true, true),
            _ => continue,
        };
        if audit::is_statistics(section) {
            continue;
        }
        let is_http = config.is_http(section);
        if is_front && is_http {
            let head = time("http-request");
            let idle = time("http-keep-alive").or(head).or(time("client"));
            for (key, ms) in [("head", head), ("idle", idle), ("stall", time("client"))] {
                if let Some(ms) = ms {
                    document.timeouts.set(key, ms, "timeout client and its like", notes);
                }
            }
        }
        let logs = ["httplog", "tcplog"].iter().any(|log| config.find(section, &["option", log]).is_some());
        if is_front && logs && config.find(section, &["log"]).is_some() {
            document.log.text("access", "-");
        }
        if is_back {
            for name in ["connect", "queue", "tunnel"] {
                // Connections of other protocols do not queue, and have a separate idle timeout.
                if let Some(ms) = time(name).filter(|_| is_http || name == "connect") {
                    document.timeouts.set(name, ms, &format!("timeout {name}"), notes);
                }
            }
        }
    }
    // The first `defaults` section sets the general timeouts; a backend that differs sets them in its routes.
    let serves_http = config
        .sections
        .iter()
        .any(|section| matches!(section.kind.as_str(), "frontend" | "listen") && config.is_http(section));
    let defaults = config.sections.iter().find(|section| section.kind == "defaults" && serves_http);
    let server = defaults.and_then(|section| config.find(section, &["timeout", "server"]));
    if let Some(ms) = server.and_then(|line| values::time(line.word(2), 1)) {
        document.timeouts.set("response", ms, "timeout server", notes);
        document.timeouts.set("stall", ms, "timeout client and timeout server", notes);
    }
    for line in config.sections.iter().flat_map(|section| &section.lines) {
        if line.word(0) == "unique-id-header" && values::is_token(line.word(1)) {
            document.request_id = Some(line.word(1).to_owned());
        }
    }
}

/// The parameters of a line. The word after a parameter in `valued` is its value.
fn params(words: &[String], valued: &[&[&str]]) -> Vec<(String, Option<String>)> {
    let (mut params, mut words) = (Vec::new(), words.iter());
    while let Some(name) = words.next() {
        let has_value = valued.iter().any(|names| names.contains(&name.as_str()));
        params.push((name.clone(), if has_value { words.next().cloned() } else { None }));
    }
    params
}

impl<'a> Config<'a> {
    /// Finds a section by kind and name. A `listen` is also a backend.
    fn section(&self, kind: &str, name: &str) -> Option<&'a Section> {
        let is_it = |section: &&Section| {
            section.name == name && (section.kind == kind || (kind == "backend" && section.kind == "listen"))
        };
        self.sections.iter().find(is_it)
    }

    /// The last line that begins with these words, in the section or else in the defaults that it inherits.
    fn find(&self, section: &'a Section, words: &[&str]) -> Option<&'a Line> {
        let find = |section: &'a Section| section.lines.iter().rfind(|line| line.begins(words));
        self.lineage(section).into_iter().rev().find_map(find)
    }

    /// Whether a section handles requests; otherwise it handles connections, which is HAProxy's default.
    fn is_http(&self, section: &'a Section) -> bool {
        self.find(section, &["mode"]).is_some_and(|line| line.word(1) == "http")
    }

    /// The section, preceded by the defaults that it inherits, outermost first.
    fn lineage(&self, section: &'a Section) -> Vec<&'a Section> {
        let mut sections = vec![section];
        // A `defaults` section can inherit only from earlier ones.
        let mut before = self.sections.len();
        while let Some(index) = sections.last().and_then(|last| last.defaults).filter(|index| *index < before)
        {
            before = index;
            sections.extend(self.sections.get(index));
        }
        sections.reverse();
        sections
    }

    /// All lines of a section, inherited ones first.
    fn all(&self, section: &'a Section) -> impl Iterator<Item = &'a Line> {
        self.lineage(section).into_iter().flat_map(|section| &section.lines)
    }

    /// The last line of `global` that begins with this word.
    fn global(&self, word: &str) -> Option<&'a Line> {
        let globals = self.sections.iter().filter(|section| section.kind == "global");
        globals.flat_map(|section| &section.lines).rfind(|line| line.word(0) == word)
    }

    /// Resolves a file name against the base directory that `global` sets for its kind.
    fn path(&self, file: &str, base: &str) -> String {
        match self.global(base).filter(|_| !file.starts_with('/')) {
            Some(line) => format!("{}/{file}", line.word(1).trim_end_matches('/')),
            None => file.to_owned(),
        }
    }
}
