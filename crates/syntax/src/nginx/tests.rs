use super::*;
use std::io;

/// Files in memory, by name and text.
struct Memory(&'static [(&'static str, &'static str)]);

impl Reader for Memory {
    fn read(&self, path: &Path) -> io::Result<String> {
        let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, directory: &Path) -> Vec<PathBuf> {
        let paths = self.0.iter().map(|(name, _)| PathBuf::from(name));
        paths.filter(|path| path.parent() == Some(directory)).collect()
    }
}

fn parsed(text: &str, files: &'static [(&str, &str)]) -> Result<Parsed, String> {
    parse(text, Path::new("nginx.conf"), &Memory(files)).map_err(|error| error.to_string())
}

fn texts(directives: &[Directive]) -> Vec<String> {
    directives.iter().map(|directive| format!("{}: {}", directive.at, directive.text())).collect()
}

#[test]
fn words_blocks_comments_and_lines() {
    let text = "a b;\n# no {\nhttp {\n  log_format main '$x \"{y}\" ;' \"z\\\"\"; # c\n  set $v ${a}b;\n}\n";
    let directives = parsed(text, &[]).expect("parses").directives;
    assert_eq!(texts(&directives), ["nginx.conf:1: a b", "nginx.conf:3: http"]);
    let inner = directives[1].block();
    assert_eq!(inner[0].args, ["main", "$x \"{y}\" ;", "z\""]);
    assert_eq!(texts(&inner[1..]), ["nginx.conf:5: set $v ${a}b"]);
}

#[test]
fn code_in_another_language_is_skipped() {
    let found = parsed("content_by_lua_block { if x then t = {} end }\na b;", &[]).expect("parses");
    assert_eq!(texts(&found.directives), ["nginx.conf:1: content_by_lua_block", "nginx.conf:2: a b"]);
}

#[test]
fn included_files_take_the_place_of_the_directive() {
    let text = "include mime.types;\ninclude conf.d/*.conf;\ninclude none/*.conf;\ninclude none.conf;\nd 4;";
    let files = &[("conf.d/a.conf", "\na 1;"), ("conf.d/b.conf", "b 2;"), ("conf.d/c.bak", "c 3;")];
    let found = parsed(text, files).expect("parses");
    assert_eq!(
        texts(&found.directives),
        ["conf.d/a.conf:2: a 1", "conf.d/b.conf:1: b 2", "nginx.conf:5: d 4"]
    );
    assert_eq!(texts(&found.skipped), ["nginx.conf:1: include mime.types"]);
    assert_eq!(texts(&found.missing), ["nginx.conf:4: include none.conf"]);
    let error = parsed("include x;", &[("x", "include x;")]).expect_err("does not end");
    assert!(error.contains("files include each other"), "{error}");
}

#[test]
fn an_error_names_file_line_and_what_was_expected() {
    for (text, error) in [
        ("a b", "nginx.conf:1: unexpected end of the file after `a b`: expected `;` or `{`"),
        ("\na {\n b c;\n", "nginx.conf:2: unexpected end of the file: expected `}` of `a`"),
        ("a;\n}\n", "nginx.conf:2: unexpected `}`: no block is open"),
        ("a 'b;\n", "nginx.conf:1: unexpected end of the file in a quoted text: expected `'`"),
        ("a;\n;", "nginx.conf:2: unexpected `;`: expected a directive"),
    ] {
        assert_eq!(parsed(text, &[]), Err(error.to_owned()), "{text}");
    }
}
