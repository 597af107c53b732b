use super::*;

fn files(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("is created");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("has one")).expect("is created");
        fs::write(path, text).expect("is written");
    }
    folder
}

fn nginx(text: &str) -> Result<Vec<Directive>, String> {
    let folder = files(&[("nginx.conf", text)]);
    nginx::parse(&folder.path().join("nginx.conf")).map_err(|error| error.to_string())
}

#[test]
fn words_blocks_comments_and_lines() {
    let parsed =
        nginx("a b;\n# no {\nhttp {\n  log_format main '$x \"{y}\" ;' \"z\\\"\"; # c\n  set $v ${a}b;\n}\n")
            .expect("parses");
    let names: Vec<&str> = parsed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a", "http"]);
    let inner = &parsed[1].block;
    assert_eq!(inner[0].args, ["main", "$x \"{y}\" ;", "z\""]);
    assert_eq!((inner[1].args[1].as_str(), inner[1].place.as_str()), ("${a}b", "nginx.conf:5"));
}

#[test]
fn code_in_another_language_is_skipped() {
    let parsed = nginx("content_by_lua_block { if x then t = {} end }\na b;").expect("parses");
    assert_eq!((parsed.len(), parsed[1].name.as_str()), (2, "a"));
}

#[test]
fn included_files_take_the_place_of_the_directive() {
    let folder = files(&[
        ("nginx.conf", "http { include conf.d/*.conf; }"),
        ("conf.d/b.conf", "b 2;"),
        ("conf.d/a.conf", "\na 1;"),
        ("conf.d/c.bak", "c 3;"),
    ]);
    let parsed = nginx::parse(&folder.path().join("nginx.conf")).expect("parses");
    let places: Vec<&str> = parsed[0].block.iter().map(|one| one.place.as_str()).collect();
    assert_eq!(places, ["a.conf:2", "b.conf:1"]);
    let endless = files(&[("nginx.conf", "include nginx.conf;")]);
    let error = nginx::parse(&endless.path().join("nginx.conf")).expect_err("does not end").to_string();
    assert!(error.contains("more than 16 files deep"), "{error}");
}

#[test]
fn an_error_names_file_line_and_what_was_expected() {
    for (text, words) in [
        ("a b", "nginx.conf:1: `a`: expected `;` or `{`"),
        ("a {\n b c;\n", "nginx.conf:3: expected `}`"),
        ("a;\n}\n", "nginx.conf:2: `}` without its `{`"),
        ("a 'b;\n", "nginx.conf:1: a quoted word without its end"),
        ("a;\n;", "nginx.conf:2: expected a directive"),
    ] {
        let error = nginx(text).expect_err("is invalid");
        assert!(error.ends_with(words), "{error}");
    }
    let folder = files(&[("note.txt", "nothing here\n")]);
    let error = Config::read(&folder.path().join("note.txt")).expect_err("is neither").to_string();
    assert!(error.contains("nginx (`http { .. }`) or HAProxy (`frontend NAME`)"), "{error}");
    let error = Config::read(Path::new("/nothing/here")).expect_err("is missing").to_string();
    assert!(error.starts_with("/nothing/here: No such file"), "{error}");
}

#[test]
fn haproxy_sections_and_quoted_words() {
    let text = "global\n nbthread 2 # two\n\nfrontend f\n bind :443 ssl crt 'a b.pem'\n log-format \"%ci \\\"x\\\"\"\n";
    let folder = files(&[("haproxy.cfg", text)]);
    let Config(Parsed::Haproxy(sections)) = Config::read(&folder.path().join("haproxy.cfg")).expect("parses")
    else {
        panic!("it is HAProxy's");
    };
    assert_eq!(sections[0].lines[0].words, ["nbthread", "2"]);
    assert_eq!(sections[1].lines[0].words, ["bind", ":443", "ssl", "crt", "a b.pem"]);
    assert_eq!(sections[1].lines[1].words[1], "%ci \"x\"");
    assert_eq!(sections[1].lines[1].place, "haproxy.cfg:6");
}
