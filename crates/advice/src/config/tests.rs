use super::*;
use std::fs;

fn read(name: &str, text: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().expect("is created");
    let file = folder.path().join(name);
    fs::write(&file, text).expect("is written");
    Config::read(&file).map_err(|error| error.to_string())
}

#[test]
fn the_content_says_whose_configuration_it_is() {
    for (text, product) in [
        ("# frontend x\nhttp { server { listen 80; } }\n", Product::Nginx),
        ("frontend f\n bind :80 # {\n", Product::Haproxy),
    ] {
        assert_eq!(read("x.conf", text).map(|config| config.product()), Ok(product), "{text}");
    }
}

#[test]
fn an_error_names_file_line_and_what_was_expected() {
    for (text, words) in [
        ("a;\n}\n", "nginx.conf:2: unexpected `}`: no block is open"),
        ("a;\ninclude b.conf;", "nginx.conf:2: `include b.conf`: the file cannot be read;"),
        ("frontend f\nbind :80 'x\n", "nginx.conf:2: unexpected end of the line in a quoted text"),
        ("nothing here\n", "nginx (`http { .. }`) or HAProxy (`frontend NAME`)"),
    ] {
        let error = read("nginx.conf", text).expect_err("is invalid");
        assert!(error.contains(words), "{error}");
    }
    let error = Config::read(Path::new("/nothing/here")).expect_err("is missing").to_string();
    assert!(error.starts_with("/nothing/here: No such file"), "{error}");
}
