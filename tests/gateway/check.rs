//! `weir check`.

use crate::common::Weir;
use std::fs;

/// `weir check` rejects this file, with this in its message.
pub(super) fn refused(config: &str, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    fs::write(&file, config).unwrap();
    let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
    assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{}", ended.stderr);
}

#[test]
fn a_valid_file_is_explained_and_a_fault_is_located() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let path = file.to_str().unwrap();
    fs::write(
        &file,
        "[listener.web]\nbind = ['127.0.0.1:8080', '[::1]:8080']\n[service.app]\nservers = ['http://127.0.0.1:1', 'http://127.0.0.1:2']\n\
         [[route]]\nhost = 'a.example'\npath = ['/a/*', '/b/{id}']\nservice = 'app'\n[[route]]\nredirect = { to = 'https://{host}{target}' }\n",
    )
    .unwrap();
    let ended = Weir::run(&["check", "--config", path, "--explain"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for part in [
        "http://127.0.0.1:8080",
        "http://[::1]:8080",
        "http://127.0.0.1:2 at 127.0.0.1:2",
        "a.example /a/* /b/{..} -> service app",
        "any host /* -> redirect 308 to https://{host}{target}",
        "head 32768 bytes, 100 fields",
        "idle 75s",
        "weir.toml: valid\n",
    ] {
        assert!(ended.stdout.contains(part), "no `{part}` in {}", ended.stdout);
    }
    fs::write(&file, "[listener.web]\nbind = '127.0.0.1:8080'\n[[route]]\nservice = 'app'\n").unwrap();
    for command in ["check", "serve"] {
        let ended = Weir::run(&[command, "--config", path]);
        assert_eq!(ended.code, Some(2));
        let expected =
            "weir.toml:4: route.0.service: unknown service `app`: expected one of none is defined\n";
        assert!(ended.stderr.ends_with(expected), "{}", ended.stderr);
    }
    let ended = Weir::run(&["check", "--config", "/no/such/weir.toml"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("/no/such/weir.toml: cannot read: No such file"), "{}", ended.stderr);
    let ended = Weir::run(&["serve", "--config", path, "--workers", "1"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("--config"), "{}", ended.stderr);
}
