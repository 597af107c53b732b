//! Reading and writing PROXY protocol headers.

use std::net::SocketAddr;
use weir_preface::Look;
use weir_preface::proxy::{Addresses, Header, ProxyError, Version, read, write};

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn between(source: &str, destination: &str) -> Option<Addresses> {
    Some(Addresses { source: at(source), destination: at(destination) })
}

/// Writes a version 2 header: `block` follows the length.
fn v2(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let len = (block.len() as u16).to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n", &[command, family][..], &len, block].concat()
}

#[test]
fn lines_of_version_1() {
    for (line, addresses) in [
        ("PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\r\n", between("192.0.2.1:4711", "198.51.100.2:443")),
        ("PROXY TCP6 2001:db8::1 ::1 1 65535\r\n", between("[2001:db8::1]:1", "[::1]:65535")),
        ("PROXY TCP4 192.0.2.1 198.51.100.2 0 80\r\n", between("192.0.2.1:0", "198.51.100.2:80")),
        ("PROXY UNKNOWN\r\n", None),
        ("PROXY UNKNOWN ffff:f...f:ffff ::1 1 2\r\n", None),
    ] {
        let bytes = format!("{line}GET / HTTP/1.1\r\n");
        assert_eq!(
            read(bytes.as_bytes()),
            Ok(Look::Complete(Header { addresses, len: line.len() })),
            "{line}"
        );
        for part in 0..line.len() {
            assert_eq!(read(&bytes.as_bytes()[..part]), Ok(Look::Partial), "{part} bytes of {line}");
        }
    }
}

#[test]
fn what_is_no_line_of_version_1() {
    let long = format!("PROXY UNKNOWN {}", "x".repeat(93));
    for (line, error) in [
        ("GET / HTTP/1.1\r\n", ProxyError::Missing),
        ("proxy TCP4 192.0.2.1 198.51.100.2 1 2\r\n", ProxyError::Missing),
        ("\r\n", ProxyError::BadLine),
        ("PROXY TCP4 192.0.2.1 198.51.100.2 1\r\n", ProxyError::BadLine),
        ("PROXY TCP4 192.0.2.1 198.51.100.2 1 2 3\r\n", ProxyError::BadLine),
        ("PROXY TCP4 192.0.2.1  198.51.100.2 1 2\r\n", ProxyError::BadLine),
        ("PROXY TCP4 192.0.2.256 198.51.100.2 1 2\r\n", ProxyError::BadLine),
        ("PROXY TCP4 ::1 ::1 1 2\r\n", ProxyError::BadLine),
        ("PROXY TCP6 192.0.2.1 198.51.100.2 1 2\r\n", ProxyError::BadLine),
        ("PROXY TCP4 192.0.2.1 198.51.100.2 65536 2\r\n", ProxyError::BadLine),
        ("PROXY TCP4 192.0.2.1 198.51.100.2 +1 2\r\n", ProxyError::BadLine),
        ("PROXY TCP4 192.0.2.1 198.51.100.2 01 2\r\n", ProxyError::BadLine),
        ("PROXY UDP4 192.0.2.1 198.51.100.2 1 2\r\n", ProxyError::BadLine),
        ("PROXY \r\n", ProxyError::BadLine),
        (long.as_str(), ProxyError::BadLine),
    ] {
        let found = read(line.as_bytes());
        match line {
            // A prefix of the version 2 signature.
            "\r\n" => assert_eq!(found, Ok(Look::Partial)),
            _ => assert_eq!(found, Err(error), "{line}"),
        }
    }
}

#[test]
fn headers_of_version_2() {
    let v4 = [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x67, 1, 187];
    let v6 =
        [&[0x20, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0; 15], &[1, 0, 1, 0, 2]].concat();
    // An extension: the server name that the client sent.
    let extended = [&v4[..], &[2, 0, 3, b'a', b'.', b'b']].concat();
    for (bytes, addresses) in [
        (v2(0x21, 0x11, &v4), between("192.0.2.1:4711", "198.51.100.2:443")),
        (v2(0x21, 0x11, &extended), between("192.0.2.1:4711", "198.51.100.2:443")),
        (v2(0x21, 0x21, &v6), between("[2001:db8::1]:1", "[::1]:2")),
        (v2(0x21, 0x00, b""), None),
        (v2(0x21, 0x31, &[0; 216]), None),
        (v2(0x20, 0x11, &v4), None),
        (v2(0x20, 0x00, b""), None),
        (v2(0x20, 0xff, b"anything"), None),
    ] {
        let len = bytes.len();
        let stream = [&bytes[..], b"more"].concat();
        assert_eq!(read(&stream), Ok(Look::Complete(Header { addresses, len })), "{bytes:x?}");
        for part in 0..len {
            assert_eq!(read(&stream[..part]), Ok(Look::Partial), "{part} bytes of {bytes:x?}");
        }
    }
}

#[test]
fn what_is_no_header_of_version_2() {
    for (bytes, error) in [
        (v2(0x11, 0x11, &[0; 12]), ProxyError::BadCommand),
        (v2(0x22, 0x11, &[0; 12]), ProxyError::BadCommand),
        (v2(0x21, 0x12, &[0; 12]), ProxyError::BadAddresses),
        (v2(0x21, 0x11, &[0; 11]), ProxyError::BadAddresses),
        (v2(0x21, 0x21, &[0; 35]), ProxyError::BadAddresses),
        (v2(0x21, 0x11, &[0; 4081]), ProxyError::TooLong),
        (b"\r\n\r\n\0\r\nQUIX\n".to_vec(), ProxyError::Missing),
    ] {
        assert_eq!(read(&bytes), Err(error), "{bytes:x?}");
    }
}

#[test]
fn what_is_written_has_one_family() {
    let written = |version, addresses| {
        let mut out = Vec::new();
        write(version, addresses, &mut out);
        out
    };
    let text = |addresses| String::from_utf8(written(Version::V1, addresses)).unwrap();
    assert_eq!(text(between("192.0.2.1:1", "198.51.100.2:2")), "PROXY TCP4 192.0.2.1 198.51.100.2 1 2\r\n");
    assert_eq!(
        text(between("[::ffff:192.0.2.1]:1", "198.51.100.2:2")),
        "PROXY TCP4 192.0.2.1 198.51.100.2 1 2\r\n"
    );
    assert_eq!(
        text(between("[2001:db8::1]:1", "192.0.2.1:2")),
        "PROXY TCP6 2001:db8::1 ::ffff:192.0.2.1 1 2\r\n"
    );
    assert_eq!(text(None), "PROXY UNKNOWN\r\n");
    let v4 = [192, 0, 2, 1, 198, 51, 100, 2, 0, 1, 0, 2];
    assert_eq!(written(Version::V2, between("192.0.2.1:1", "198.51.100.2:2")), v2(0x21, 0x11, &v4));
    assert_eq!(written(Version::V2, None), v2(0x20, 0, b""));
}
