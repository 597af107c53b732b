use super::*;
use std::fs;

/// A crate of three rooms: `upper` uses `lower` and `base`, and its tests use more.
const FILES: [(&str, &str); 6] = [
    (
        "lib.rs",
        "pub mod base;\nmod lower;\npub mod upper;\n#[cfg(test)]\nmod tests;\n\npub use weir_stats as stats;\n\
         pub use upper::One;\n",
    ),
    ("base.rs", "//! As `crate::upper::One`.\nuse crate::stats::median;\n"),
    ("lower/mod.rs", "pub(crate) mod inner;\n"),
    ("lower/inner.rs", "use super::super::base::Error;\n"),
    ("upper/mod.rs", "mod one;\n\nuse crate::{\n    base::{Error, Result},\n    lower as below,\n};\n"),
    (
        "upper/one.rs",
        "use super::Error;\n\nfn one() {\n    crate::lower::inner::two();\n}\n\n\
         #[cfg(test)]\nmod tests {\n    use crate::tests::three;\n}\n",
    ),
];

const TABLE: &str = "## Other\n\n| `base` | `upper` |\n\n## Rooms\n\nWords.\n\n| room | may use |\n| --- | --- |\n\
                     | `base` | |\n| `lower` | `base` |\n| `upper` | `base`, `lower` |\n\n## Next\n\n| `x` | |\n";

/// The differences of the crate with one change in a file, and one in the table.
fn changed(file: (&str, &str, &str), table: (&str, &str)) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path();
    for (name, text) in FILES {
        let text = match name == file.0 {
            true => {
                assert!(text.contains(file.1), "{name}: {}", file.1);
                text.replacen(file.1, file.2, 1)
            }
            false => text.to_owned(),
        };
        let path = source.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("is made");
        fs::write(path, text).expect("is written");
    }
    assert!(TABLE.contains(table.0), "{}", table.0);
    differences(source, &TABLE.replacen(table.0, table.1, 1), "## Rooms").expect("is read")
}

fn in_file(name: &str, from: &str, to: &str) -> Vec<String> {
    changed((name, from, to), ("", ""))
}

fn in_table(from: &str, to: &str) -> Vec<String> {
    changed(("", "", ""), (from, to))
}

#[test]
fn a_table_that_fits_has_no_differences() {
    assert_eq!(in_table("", ""), [""; 0]);
}

#[test]
fn an_import_that_the_table_does_not_allow_is_named_with_its_file() {
    let use_of_upper = "use crate::upper::{One, Two};\nuse super::super::base::Error;";
    assert_eq!(
        in_file("lower/inner.rs", "use super::super::base::Error;", use_of_upper),
        ["lower/inner.rs: crate::upper: `lower` may use base"]
    );
    for (path, found) in [
        ("use crate::upper::One;", "crate::upper::One"),
        ("use crate::{stats, upper::One};", "crate::upper"),
        ("use super::upper;", "super::upper"),
        ("type One = Vec<crate::upper::One>;", "crate::upper::One"),
        ("macro_rules! one {\n    () => { $crate::upper::One };\n}", "crate::upper::One"),
    ] {
        assert_eq!(
            in_file("base.rs", "use crate::stats::median;", path),
            [format!("base.rs: {found}: `base` may use no other room")]
        );
    }
}

#[test]
fn names_of_the_root_are_no_way_around_the_rooms() {
    assert_eq!(
        in_file("base.rs", "use crate::stats::median;", "use crate::One;"),
        ["base.rs: crate::One: expected the path of a room"]
    );
}

#[test]
fn a_row_that_no_import_needs_is_named() {
    assert_eq!(
        in_file("lower/inner.rs", "use super::super::base::Error;", "use other_crate::base::Error;"),
        ["`lower` may use `base`, and no import needs it"]
    );
}

#[test]
fn the_table_has_a_row_for_each_room_and_no_cycle() {
    assert_eq!(
        in_table("| `base` | |\n", "| `base` | |\n| `gone` | |\n"),
        ["`gone` has a row, and is no room"]
    );
    assert_eq!(
        in_table("| `lower` | `base` |\n", ""),
        [
            "`upper` may use `lower`, which has no earlier row",
            "`lower` has no row",
            "lower/inner.rs: super::super::base::Error: `lower` may use no other room",
        ]
    );
    assert_eq!(
        in_table("| `base` | |", "| `base` | `upper` |"),
        [
            "`base` may use `upper`, which has no earlier row",
            "`base` may use `upper`, and no import needs it"
        ]
    );
}

#[test]
fn a_missing_file_is_an_error_with_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("lib.rs"), "mod gone;\n").expect("is written");
    let error = differences(directory.path(), TABLE, "## Rooms").expect_err("is missing").to_string();
    assert!(error.starts_with("gone/mod.rs: "), "{error}");
}
