use super::tables::tables;
use super::*;
use crate::config::parse;
use jsonschema::Validator;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn validator() -> Validator {
    jsonschema::validator_for(&serde_json::from_str(&schema()).unwrap()).unwrap()
}

fn json(text: &str) -> Value {
    serde_json::to_value(toml::from_str::<toml::Table>(text).expect(text)).unwrap()
}

fn is_parsed(text: &str) -> bool {
    parse(&[("weir.toml", text)], &|_| None).is_ok()
}

#[test]
fn the_schema_has_exactly_the_keys_of_the_parser() {
    let schema = described();
    let tables = tables(&schema);
    for (path, table) in &tables {
        let described: BTreeSet<_> = table.schema["properties"].as_object().unwrap().keys().collect();
        let parsed: BTreeSet<_> = table.keys.iter().collect();
        assert_eq!(described, parsed, "[{path}]");
        assert_eq!(table.schema["additionalProperties"], false, "[{path}]");
    }
    for path in ["", "listener.*.redirect", "service.*.servers", "route.*.retry", "defaults.timeouts"] {
        assert!(tables.contains_key(path), "{path}: {:?}", tables.keys());
    }
    let keys: usize = tables.values().map(|table| table.keys.len()).sum();
    assert!(keys > 200, "{keys}");
}

/// Each key has a description, and is either required or has one default: a value from the code, or words. An omitted
/// table has the defaults of its keys.
#[test]
fn every_key_is_described() {
    let schema = described();
    let tables = tables(&schema);
    for (path, table) in &tables {
        let required = table.schema["required"].as_array().cloned().unwrap_or_default();
        for (key, value) in table.schema["properties"].as_object().unwrap() {
            let text = value["description"].as_str().unwrap_or_default();
            assert!(text.ends_with('.'), "{path}.{key}: {text}");
            assert!(!text.contains("super::"), "{path}.{key}: Rust's names: {text}");
            let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let holds_tables = tables.keys().any(|path| {
                path.strip_prefix(&inner).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            });
            let defaults = [
                required.iter().any(|name| name == key),
                value.get("default").is_some(),
                text.contains(" Default: "),
            ];
            match defaults.iter().filter(|is_one| **is_one).count() {
                1 => {}
                0 if holds_tables => {}
                count => panic!("{path}.{key} has {count} defaults: {value}"),
            }
        }
    }
}

#[test]
fn every_default_is_a_valid_value() {
    let mut count = 0;
    each(&mut described(), &mut |schema| {
        if let Some(default) = schema.get("default").cloned() {
            let validator = jsonschema::validator_for(&Value::Object(schema.clone())).unwrap();
            assert!(validator.is_valid(&default), "{schema:?}");
            count += 1;
        }
    });
    assert!(count > 50, "{count}");
}

/// Covers the names of values that the parser does not read as an enum.
#[test]
fn every_listed_name_is_parsed() {
    let schema = described();
    let tables = tables(&schema);
    for (path, key, before, after) in [
        ("", "client_fields", "client_fields = ", ""),
        ("listener.*", "accept", "[listener.a]\nbind = 'a:1'\naccept = ", ""),
        ("listener.*.tls", "versions", "[listener.a]\nbind = 'a:1'\ntls.versions = ", ""),
        ("listener.*.tls", "suites", "[listener.a]\nbind = 'a:1'\ntls.suites = ", ""),
        ("listener.*.tls", "groups", "[listener.a]\nbind = 'a:1'\ntls.groups = ", ""),
        ("service.*", "accept", "[service.a]\nservers = 'http://a'\naccept = ", ""),
        ("service.*.eject", "on", "[service.a]\nservers = 'http://a'\neject = { on = ", " }"),
    ] {
        let value = &tables[path].schema["properties"][key];
        let mut names = Vec::new();
        each(&mut value.clone(), &mut |schema| {
            if let Some(Value::Array(listed)) = schema.get("enum") {
                names.extend(listed.clone());
            }
        });
        assert!(names.len() >= 2, "{path}.{key}: {value}");
        let text = format!("{before}{}{after}", Value::from(names));
        assert!(is_parsed(&text), "{text}");
        assert!(validator().is_valid(&json(&text)), "{text}");
    }
}

/// Covers all TOML of the repository that the parser accepts as a configuration.
#[test]
fn the_schema_accepts_the_examples_of_the_repository() {
    let validator = validator();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts =
        vec![("deploy/weir.toml".into(), fs::read_to_string(root.join("deploy/weir.toml")).unwrap())];
    for page in files(&root.join("docs/gateway"), "md") {
        let text = fs::read_to_string(&page).unwrap();
        let blocks = text.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
        let blocks = blocks.filter(|(kind, _)| ["toml", "text"].contains(kind));
        texts.extend(blocks.map(|(_, block)| (page.display().to_string(), block.to_owned())));
    }
    for target in fs::read_dir(root.join("targets")).unwrap() {
        for file in files(&target.unwrap().path(), "toml") {
            // Placeholders of the lab, such as `{{listen_port}}`, are numbers and parts of addresses.
            let text = fs::read_to_string(&file).unwrap();
            let parts = text.split("{{").map(|part| part.split_once("}}").map_or(part, |(_, rest)| rest));
            texts.push((file.display().to_string(), parts.collect::<Vec<_>>().join("7000")));
        }
    }
    texts.retain(|(_, text)| is_parsed(text));
    for (name, text) in &texts {
        if let Err(error) = validator.validate(&json(text)) {
            panic!("{name}: {}: {error}\n{text}", error.instance_path());
        }
    }
    assert!(texts.iter().filter(|(name, _)| name.contains("docs/gateway")).count() >= 9);
    assert!(texts.iter().any(|(name, _)| name.contains("targets")));
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

#[test]
fn the_schema_accepts_what_the_parser_accepts() {
    let validator = validator();
    for text in [
        "#:schema ./weir.schema.json\nworkers = 2",
        "workers = 1\ncores = '0, 2-3'\nreload = 'watch'\nclient_fields = []",
        "reload = '${RELOAD:-watch}'\n[timeouts]\nidle = '${IDLE:-10s}'\n[limits]\nhead = '${HEAD:-16KiB}'",
        "error_pages = { 404 = 'a.html', 5xx = 'b.html' }\nvia.requests = 'weir'",
        "[limits]\nhead = 65536\nline = '1.5 KiB'\nbody = '2GiB'\nchunk_extension = 0",
        "[timeouts]\nidle = '0.5min'\ntunnel = '7d'\nlinger = '250 ms'",
        "[listener.a]\nbind = ['0.0.0.0:80', '[::]:80', 'unix:/run/a.sock', 'localhost:0']\nmode = '0660'\ntls = {}",
        "[listener.a]\nbind = 'a:1'\nallow = ['10.0.0.0/8', '::1', 'unix', '::ffff:1.2.3.4']\nredirect = 'https'",
        "[listener.a]\nbind = 'a:1'\nredirect = { to = 'https', port = 8443, status = 301 }",
        "[listener.a]\nbind = 'a:1'\npassthrough = [{ name = '*', service = 'a' }, { name = ['a', 'b'], service = 'b' }]",
        "[listener.a]\nbind = 'a:1'\ntcp = { service = 'a', idle = '1h' }\n[listener.b]\nbind = 'b:1'\ntcp.service = 'b'",
        "[service.a]\nservers = ['tcp://a:1', { url = 'TLS://[::1]:443' }]",
        "[listener.a]\nbind = 'a:1'\ntls = { versions = '1.3', suites = 'TLS_AES_128_GCM_SHA256', groups = 'secp256r1' }",
        "[service.a]\nservers = { url = 'unix:/run/a.sock', weight = 3, backup = true }",
        "[service.a]\nservers = ['HTTP://a', { url = 'https://[::1]:443/' }]\nhash = 'header:X-A'\nhealth = {}",
        "[service.a]\nservers = 'http://a'\neject = { on = ['connect', '5xx', '502-504'] }\nhealth.status = ['200', '300-399']",
        "[[route]]\nretry = { on = [502, '503', '5xx'], requests = 'always' }\nmirror = { service = 'a', percent = 0.5 }",
        "[[route]]\nretry = 'never'\npath = ['/', '/a/*', '/a*', '/{id}']\nheaders = { X-A = '*' }",
        "[dns]\nservers = ['10.0.0.53', '[2001:db8::53]:5353', '2001:db8::53']",
        "[defaults]\nretry = 'never'\nresponse_headers.remove = 'Server'\n[[route]]\nservice = 'a'",
    ] {
        assert!(is_parsed(text), "{text}");
        if let Err(error) = validator.validate(&json(text)) {
            panic!("{text}: {}: {error}", error.instance_path());
        }
    }
}

#[test]
fn the_schema_rejects_what_the_parser_rejects() {
    let validator = validator();
    for text in [
        "wrokers = 2",
        "workers = 'two'",
        "workers = -1",
        "cores = 'all'",
        "reload = 'never'",
        "client_fields = 'via'",
        "[buffers]\nread = true",
        "[log]\nwhen_full = 'lose'",
        "[timeouts]\nidle = '10'",
        "[timeouts]\nidle = 10",
        "[timeouts]\nidle = '1m'",
        "[limits]\nhead = '1K'",
        "[limits]\nhead = -1",
        "[dns]\nservers = 'ns.example'",
        "[listener.a]\nmode = '660'",
        "[listener.a]\nbind = '1.2.3.4'",
        "[listener.a]\nbind = 'a:1'\nmode = 'rw'",
        "[listener.a]\nbind = 'a:1'\ntsl = {}",
        "[listener.a]\nbind = 'a:1'\ntls.versions = ['1.1']",
        "[listener.a]\nbind = 'a:1'\ntls.suites = 'rc4'",
        "[listener.a]\nbind = 'a:1'\nallow = 'everyone'",
        "[listener.a]\nbind = 'a:1'\nredirect = 'http'",
        "[listener.a]\nbind = 'a:1'\nredirect = { port = 443 }",
        "[listener.a]\nbind = 'a:1'\npassthrough = [{ name = 'a' }]",
        "[listener.a]\nbind = 'a:1'\ntcp = { idle = '1h' }",
        "[listener.a]\nbind = 'a:1'\ntcp = 'a'",
        "[listener.a]\nbind = 'a:1'\naccept = 'bare-lf'",
        "[[listener]]\nbind = 'a:1'",
        "[certificate]\nchain = 'a'\nkey = 'b'",
        "[[certificate]]\nchain = 'a'",
        "[service.a]\nservers = 'ftp://a'",
        "[service.a]\nservers = 'tcp://a'",
        "[service.a]\nservers = [{ url = 'http://a', wieght = 2 }]",
        "[service.a]\nservers = 'http://a'\nbalance = 'random'",
        "[service.a]\nservers = 'http://a'\nhash = 'ip'",
        "[service.a]\nservers = 'http://a'\neject.on = 'http'",
        "[service.a]\nservers = 'http://a'\nhealth.status = 'ok'",
        "[[route]]\npath = 'a'",
        "[[route]]\nretry = 'sometimes'",
        "[[route]]\nretry = { of = [502] }",
        "[[route]]\nretry = { on = [200] }",
        "[[route]]\nrespond = {}",
        "[[route]]\nrequest_headers.set = 'a'",
        "[defaults]\nservice = 'a'",
        "[admin]\nport = 9901",
    ] {
        assert!(!is_parsed(text), "{text}");
        assert!(!validator.is_valid(&json(text)), "{text}");
    }
}

/// The parser accepts these numbers: the compilation checks their ranges.
#[test]
fn the_schema_rejects_numbers_outside_of_their_range() {
    let validator = validator();
    for text in [
        "workers = 0",
        "[buffers]\nread = 100",
        "[limits]\nhead = 511",
        "[limits]\nconnections = 0",
        "[listener.a]\nbind = 'a:1'\ntls.tickets = 9",
        "[listener.a]\nbind = 'a:1'\nredirect = { to = 'https', status = 300 }",
        "[service.a]\nservers = { url = 'http://a', weight = 1001 }",
        "[service.a]\nservers = 'http://a'\nretry_percent = 101",
        "[[route]]\nrespond.status = 199",
        "[[route]]\nmirror = { service = 'a', percent = 100.5 }",
    ] {
        assert!(is_parsed(text), "{text}");
        assert!(!validator.is_valid(&json(text)), "{text}");
    }
}

#[test]
fn links_become_their_text() {
    for (text, plain) in [
        ("a", "a"),
        ("as [b c](d.md#e), f", "as b c, f"),
        ("[`[dns]`](configuration.md#dns) (g)", "`[dns]` (g)"),
        ("[a](b) and [c](d)", "a and c"),
    ] {
        assert_eq!(without_links(text), plain);
    }
}
