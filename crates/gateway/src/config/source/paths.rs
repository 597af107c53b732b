//! Relative paths, which are resolved against the directory of the file that names them.

use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The keys whose values are paths; `*` is any key, and any entry of a list.
pub(super) const PATHS: &[&str] = &[
    "include",
    "certificate.*.chain",
    "certificate.*.key",
    "certificate.*.ocsp",
    "listener.*.tls.client_ca",
    "listener.*.tls.client_crl",
    "listener.*.tls.ticket_secrets",
    "listener.*.tls.key_log",
    "service.*.tls.ca",
    "service.*.tls.certificate",
    "service.*.tls.key",
    "error_pages.*",
    "log.access",
];

/// Resolves all paths of a table against this directory.
pub(super) fn resolve(table: &mut DeTable<'_>, directory: &Path) {
    for keys in PATHS {
        in_table(table, keys, directory);
    }
}

fn in_table(table: &mut DeTable<'_>, keys: &str, directory: &Path) {
    let (first, rest) = keys.split_once('.').map_or((keys, None), |(first, rest)| (first, Some(rest)));
    for (key, value) in table.iter_mut() {
        if first == "*" || key.get_ref() == first {
            in_value(value.get_mut(), rest, directory);
        }
    }
}

fn in_value(value: &mut DeValue<'_>, keys: Option<&str>, directory: &Path) {
    match (value, keys) {
        (DeValue::String(path), None) => {
            // `-` is stdout. If the directory is not UTF-8, paths remain relative to the working directory, and opening
            // the files usually fails.
            if path != "-"
                && let Ok(joined) = directory.join(&**path).into_os_string().into_string()
            {
                *path = joined.into();
            }
        }
        (DeValue::Table(table), Some(keys)) => in_table(table, keys, directory),
        (DeValue::Array(items), keys) => {
            let keys = keys.map(|keys| keys.strip_prefix("*.").unwrap_or(keys));
            items.iter_mut().for_each(|item| in_value(item.get_mut(), keys, directory));
        }
        (_, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// [`PATHS`] contains every key whose value is a path; a path under a missing key would be relative to the working
    /// directory.
    #[test]
    fn no_path_of_the_document_is_left_out() {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/document");
        let mut fields = 0;
        for entry in fs::read_dir(document).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            for line in text.lines().filter(|line| line.contains("PathBuf")) {
                let Some((name, _)) =
                    line.trim().strip_prefix("pub ").and_then(|field| field.split_once(": "))
                else {
                    continue;
                };
                let is_listed = |keys: &&&str| keys.split('.').any(|key| key == name);
                assert!(PATHS.iter().any(|keys| is_listed(&keys)), "{name}");
                fields += 1;
            }
        }
        assert!(fields >= 12, "{fields}");
    }

    #[test]
    fn paths_are_those_of_a_directory() {
        let text = "error_pages.404 = 'a'\n[[certificate]]\nchain = 'b'\nkey = '/c'\n[listener.web]\nbind = 'd:1'\n\
            [listener.web.tls]\nclient_crl = ['e', '../f']\n[log]\naccess = '-'\n[service.app.tls]\nca = 'g'\nname = 'h'";
        let mut table = DeTable::parse(text).unwrap().into_inner();
        resolve(&mut table, Path::new("/etc/weir"));
        let config = format!("{table:?}");
        for part in [
            "/etc/weir/a",
            "/etc/weir/b",
            "\"/c\"",
            "\"d:1\"",
            "/etc/weir/e",
            "/etc/weir/../f",
            "/etc/weir/g",
        ] {
            assert!(config.contains(part), "{part}: {config}");
        }
        for part in ["/etc/weir/d", "/etc/weir/h", "/etc/weir/-"] {
            assert!(!config.contains(part), "{part}: {config}");
        }
    }
}
