//! Request files and their errors.

use super::*;
use std::io::Write;

fn read(text: &[u8]) -> Result<Vec<RequestOptions>, Usage> {
    let mut file = tempfile::Builder::new().prefix("mix").suffix(".jsonl").tempfile().unwrap();
    file.write_all(text).unwrap();
    requests_from_file(file.path())
}

#[test]
fn a_file_of_requests() {
    let text = r#"# what users do

{"path": "/"}
   {"path": "/a?b", "method": "PUT", "weight": 3, "body": "h\u00e9", "headers": {"Z": "1", "A": ["2", "3"]}}
{"path": "/b", "body_base64": "AP8=", "expect": {"status": 404, "length": 5,
 "#
    .trim_end()
    .to_string()
        + r#" "sha256": "BA7816BF8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}}"#
        + "\r\n"
        + r#"{"path": "/c", "body_size": "2KiB"}"#
        + "\n"
        + r#"{"path": "/d", "body_size": 0}
{"path": "/e", "chunked": true, "body": "x"}
{"path": "/f", "chunked": "4KiB", "body_size": "1MiB"}
{"path": "/g", "chunked": false}"#;
    let requests = read(text.as_bytes()).unwrap();
    let plain = RequestOptions::new("/".into());
    assert_eq!(requests[0], plain);
    let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
    assert_eq!(
        requests[1],
        RequestOptions {
            path: "/a?b".into(),
            weight: 3,
            method: Some("PUT".into()),
            fields: vec![pair("Z", "1"), pair("A", "2"), pair("A", "3")],
            body: Some("h\u{e9}".into()),
            ..plain.clone()
        }
    );
    assert_eq!(requests[2].body.as_deref(), Some(&[0, 255][..]));
    let expect = Expect { status: Some(404), length: Some(5), sha256: Some(crate::check::tests::ABC) };
    assert_eq!(requests[2].expect, expect);
    assert_eq!(requests[3].body.as_ref().map(Vec::len), Some(2048));
    assert_eq!(requests[4].body.as_deref(), Some(&[][..]));
    let chunks: Vec<_> = requests.iter().map(|request| request.chunk).collect();
    assert_eq!(chunks, [None, None, None, None, None, Some(16 * 1024), Some(4096), None]);
}

#[test]
fn what_is_wrong_is_named_by_file_line_key_and_value() {
    let long = format!(r#"{{"path": "/", "method": "{}"}}"#, " ".repeat(10_000));
    for (line, message) in [
        (r#"{"path": "/", "wait": 1}"#, "line 3: unknown key `wait`: expected one of path, method,"),
        (r#"{"path": "/", "path": "/"}"#, "line 3: duplicate key `path`: expected each key once"),
        (r#"{"method": "GET"}"#, "line 3: missing key `path`: expected a path starting with `/`"),
        (r#"{"path": "a"}"#, "line 3, path: invalid value `\"a\"`"),
        (r#"{"path": "/a b"}"#, "line 3, path: invalid value `\"/a b\"`"),
        (r#"{"path": 1}"#, "line 3, path: invalid value `1`"),
        (r#"{"path": "/", "method": "G T"}"#, "line 3, method: invalid value `\"G T\"`: expected a method"),
        (r#"{"path": "/", "method": null}"#, "line 3, method: invalid value `null`"),
        (
            r#"{"path": "/", "headers": ["A: b"]}"#,
            "line 3, headers: invalid value `[\"A: b\"]`: expected an object",
        ),
        (r#"{"path": "/", "headers": {"A": 1}}"#, "line 3, headers: invalid value `A: 1`: expected a string"),
        (
            r#"{"path": "/", "headers": {"A": ["b", true]}}"#,
            "line 3, headers: invalid value `A: [\"b\", true]`",
        ),
        (
            r#"{"path": "/", "headers": {"A b": "c"}}"#,
            "line 3, headers: invalid value `A b: \"c\"`: expected a name",
        ),
        (r#"{"path": "/", "headers": {"content-length": "1"}}"#, "which follow from the body"),
        (r#"{"path": "/", "body": 1}"#, "line 3, body: invalid value `1`"),
        (
            r#"{"path": "/", "body": "x", "body_size": 1}"#,
            "line 3, body_size: invalid value `1`: expected one of",
        ),
        (
            r#"{"path": "/", "body_base64": "A"}"#,
            "line 3, body_base64: invalid value `\"A\"`: expected base64",
        ),
        (r#"{"path": "/", "body_size": "64 kilo"}"#, "line 3, body_size: invalid value `\"64 kilo\"`"),
        (r#"{"path": "/", "body_size": -1}"#, "line 3, body_size: invalid value `-1`"),
        (
            r#"{"path": "/", "body_size": "2GiB"}"#,
            "line 3, body_size: invalid value `\"2GiB\"`: expected at most 1 GiB",
        ),
        (r#"{"path": "/", "chunked": true}"#, "line 3: `chunked` without a body: expected one of body"),
        (
            r#"{"path": "/", "body": "x", "chunked": 0}"#,
            "line 3, chunked: invalid value `0`: expected true, false or the size of a chunk",
        ),
        (r#"{"path": "/", "body": "x", "chunked": "yes"}"#, "line 3, chunked: invalid value `\"yes\"`"),
        (r#"{"path": "/", "body": "x", "chunked": "2GiB"}"#, "line 3, chunked: invalid value `\"2GiB\"`"),
        (
            r#"{"path": "/", "weight": 0}"#,
            "line 3, weight: invalid value `0`: expected a whole number, 1 to 1000000",
        ),
        (r#"{"path": "/", "weight": "3"}"#, "line 3, weight: invalid value `\"3\"`: expected a whole number"),
        (r#"{"path": "/", "weight": 1.0}"#, "line 3, weight: invalid value `1.0`: expected a whole number"),
        (r#"{"path": "/", "weight": 1000001}"#, "line 3, weight: invalid value `1000001`"),
        (r#"{"path": "/", "weight": 4294967297}"#, "line 3, weight: invalid value `4294967297`"),
        (r#"{"path": "/", "weight": 1.5}"#, "line 3, weight: invalid value `1.5`"),
        (r#"{"path": "/", "expect": 200}"#, "line 3, expect: invalid value `200`: expected an object"),
        (
            r#"{"path": "/", "expect": {"code": 200}}"#,
            "line 3, expect: unknown key `code`: expected one of status",
        ),
        (
            r#"{"path": "/", "expect": {"status": 1, "status": 2}}"#,
            "line 3, expect: duplicate key `status`: expected each",
        ),
        (
            r#"{"path": "/", "expect": {"status": 100}}"#,
            "line 3, expect.status: invalid value `100`: expected a final",
        ),
        (r#"{"path": "/", "expect": {"status": 65736}}"#, "line 3, expect.status: invalid value `65736`"),
        (r#"{"path": "/", "expect": {"length": "1"}}"#, "line 3, expect.length: invalid value `\"1\"`"),
        (
            r#"{"path": "/", "expect": {"sha256": "ab"}}"#,
            "line 3, expect.sha256: invalid value `\"ab\"`: expected 64",
        ),
        ("[]", "line 3: invalid value `[]`: expected an object"),
        (
            "GET /",
            "line 3: invalid value `GET /`: expected JSON, one object per line (column 1: expected value)",
        ),
        (r#"{"path": "/"} {}"#, "(column 15: trailing characters)"),
        (long.as_str(), " ..`: expected"),
    ] {
        let error = read(format!("# a comment\n{{\"path\": \"/\"}}\n{line}\n").as_bytes());
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("--requests: ") && error.contains(".jsonl, line 3"), "{error}");
        assert!(error.contains(message) && error.len() < 500, "{line}\n{error}");
    }
}

#[test]
fn files_that_are_no_list_of_requests() {
    for text in ["", "\n\n", "# only words\n"] {
        let error = read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("at least one request"), "{error}");
    }
    assert!(read(b"\xff\xfe\n").unwrap_err().to_string().contains("line 1"));
    let error = requests_from_file(Path::new("/no/such/mix.jsonl")).unwrap_err().to_string();
    assert!(error.contains("`/no/such/mix.jsonl`") && error.contains("No such file"), "{error}");
    let many = "{\"path\":\"/\"}\n".repeat(MOST_REQUESTS + 1);
    assert!(read(many.as_bytes()).unwrap_err().to_string().contains("at most 100000 requests"));
    // Each alone would fit; nothing is allocated for the one that does not.
    let bodies = "{\"path\":\"/\",\"body_size\":\"1MiB\"}\n{\"path\":\"/\",\"body_size\":\"1GiB\"}\n";
    let error = read(bodies.as_bytes()).unwrap_err().to_string();
    assert!(
        error.contains("line 2, body_size: invalid value `\"1GiB\"`") && error.contains("1 GiB in all"),
        "{error}"
    );
}
