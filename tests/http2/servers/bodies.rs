//! Bodies of every framing, in both directions.

use super::{BOTH, Connection, Content, Server, Version, ask, gateway};
use crate::common::pattern;

#[test]
fn bodies_of_requests() {
    let server = Server::ok();
    let weir = gateway(&[&server], "", "");
    let big = pattern(300_000);
    let rows: [(&str, Content<'_>, &[u8]); 7] = [
        ("GET", Content::None, b""),
        ("POST", Content::None, b""),
        ("POST", Content::Length(b""), b""),
        ("POST", Content::Length(b"hello"), b"hello"),
        ("POST", Content::Unknown(b""), b""),
        ("PUT", Content::Unknown(b"hello"), b"hello"),
        ("POST", Content::Length(&big), &big),
    ];
    let mut sent = 0;
    for version in BOTH {
        for (method, content, body) in rows {
            let reply = ask(&weir, version, method, "/", &[], content);
            assert_eq!((reply.status, reply.text()), (200, "ok"), "{version:?} {method} {content:?}");
            let request = server.requests()[sent].clone();
            sent += 1;
            assert!(request.ended && request.body == body, "{version:?} {method}: {:?}", request.head);
            let length = match content {
                Content::Length(body) => body.len().to_string(),
                // Servers may require a length.
                Content::None if method == "POST" && version == Version::Http2 => "0".to_owned(),
                _ => String::new(),
            };
            assert_eq!(request.field("content-length"), length, "{version:?} {method} {content:?}");
            assert!(!request.has("transfer-encoding"), "{}", request.head);
            if matches!(content, Content::None) {
                assert_eq!(request.frames, 0, "END_STREAM on HEADERS");
            }
        }
    }
    assert_eq!(server.connections(), 1);
}

/// The ways in which a server sends a response.
#[derive(Clone, Copy, Debug)]
enum Sent {
    /// END_STREAM on HEADERS, with this length if any.
    HeadAlone(Option<&'static str>),
    /// A body with this length if any, and END_STREAM on its last byte.
    Body(Option<&'static str>, &'static str),
    /// As [`Self::Body`], and END_STREAM on an empty DATA frame.
    EmptyEnd(Option<&'static str>, &'static str),
}

impl Sent {
    fn write(self, connection: &mut Connection<'_>, stream: u32, status: &str) {
        let (length, body) = match self {
            Self::HeadAlone(length) => (length, ""),
            Self::Body(length, body) | Self::EmptyEnd(length, body) => (length, body),
        };
        let mut fields: Vec<(&str, &str)> = vec![(":status", status)];
        fields.extend(length.map(|length| ("content-length", length)));
        match self {
            Self::HeadAlone(_) => connection.headers(stream, &fields, true),
            Self::Body(..) => connection.headers(stream, &fields, false).data(stream, body.as_bytes(), true),
            Self::EmptyEnd(..) => connection
                .headers(stream, &fields, false)
                .data(stream, body.as_bytes(), false)
                .data(stream, b"", true),
        };
        connection.flush();
    }
}

#[test]
fn bodies_of_responses() {
    // Method, status, response, and the length that the client receives, in HTTP/1.1 and in HTTP/2.
    const ROWS: &[(&str, &str, Sent, [&str; 2])] = &[
        ("GET", "200", Sent::HeadAlone(None), ["0", "0"]),
        ("GET", "200", Sent::HeadAlone(Some("0")), ["0", "0"]),
        ("GET", "200", Sent::Body(None, "hello"), ["", ""]),
        ("GET", "200", Sent::Body(Some("5"), "hello"), ["5", "5"]),
        ("GET", "200", Sent::EmptyEnd(None, "hello"), ["", ""]),
        ("GET", "200", Sent::EmptyEnd(Some("5"), "hello"), ["5", "5"]),
        ("GET", "200", Sent::EmptyEnd(None, ""), ["", ""]),
        ("GET", "200", Sent::EmptyEnd(Some("0"), ""), ["0", "0"]),
        ("GET", "404", Sent::Body(None, "none"), ["", ""]),
        ("HEAD", "200", Sent::HeadAlone(Some("5")), ["5", "5"]),
        ("HEAD", "200", Sent::HeadAlone(None), ["", ""]),
        ("HEAD", "200", Sent::EmptyEnd(Some("5"), ""), ["5", "5"]),
        ("GET", "204", Sent::HeadAlone(None), ["", ""]),
        ("GET", "204", Sent::EmptyEnd(None, ""), ["", ""]),
        ("GET", "304", Sent::HeadAlone(Some("5")), ["5", "5"]),
        ("GET", "304", Sent::HeadAlone(None), ["", ""]),
        ("POST", "201", Sent::HeadAlone(None), ["0", "0"]),
    ];
    let server = Server::start(|connection| {
        connection.serve(|connection, request| {
            let (_, status, sent, _) = ROWS[request.path()[1..].parse::<usize>().unwrap()];
            sent.write(connection, request.stream, status);
        });
    });
    let weir = gateway(&[&server], "", "");
    for (column, version) in BOTH.into_iter().enumerate() {
        for (index, (method, status, sent, lengths)) in ROWS.iter().enumerate() {
            let reply = ask(&weir, version, method, &format!("/{index}"), &[], Content::None);
            let body = match sent {
                Sent::HeadAlone(_) => "",
                Sent::Body(_, body) | Sent::EmptyEnd(_, body) => body,
            };
            let about = format!("{version:?} {method} {status} {sent:?}: {reply:?}");
            assert_eq!((reply.status.to_string().as_str(), reply.text()), (*status, body), "{about}");
            assert!(reply.complete && reply.reset.is_none(), "{about}");
            assert_eq!(reply.field("content-length"), lengths[column], "{about}");
        }
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn large_bodies_both_ways() {
    let server = Server::start(|connection| {
        connection.serve(|connection, request| {
            connection
                .headers(request.stream, &[(":status", "200")], false)
                .send_body(request.stream, &request.body);
        });
    });
    let weir = gateway(&[&server], "", "");
    let body = pattern(3 << 20);
    for version in BOTH {
        for content in [Content::Length(&body), Content::Unknown(&body)] {
            let reply = ask(&weir, version, "POST", "/", &[], content);
            assert_eq!(reply.status, 200);
            assert!(reply.complete && reply.body == body, "{version:?}: {} bytes", reply.body.len());
        }
    }
}

#[test]
fn padded_responses() {
    use weir_http2::frame::{Kind, flag};
    let server = Server::start(|connection| {
        connection.serve(|connection, request| {
            connection.headers(request.stream, &[(":status", "200")], false);
            // Padding counts for the windows: 512 KiB of padding need credit.
            let padded = [&[255], &b"x"[..], &[0; 255]].concat();
            for _ in 0..250 {
                connection.frame(Kind::Data, flag::PADDED, request.stream, &padded);
            }
            connection.flush();
            let most = 250 * padded.len() as u64;
            connection
                .read_until(|connection| {
                    connection.updates.get(&request.stream).copied().unwrap_or_default() * 2 > most
                })
                .data(request.stream, b"y", true)
                .flush();
        });
    });
    let weir = gateway(&[&server], "", "");
    for version in BOTH {
        let reply = ask(&weir, version, "GET", "/", &[], Content::None);
        assert_eq!(reply.body, [&[b'x'; 250][..], b"y"].concat(), "{version:?}");
    }
}

#[test]
fn clients_of_http10() {
    let server = Server::start(|connection| {
        connection.serve(|connection, request| {
            match request.path() {
                "/cut" => {
                    connection.headers(request.stream, &[(":status", "200")], false);
                    connection.data(request.stream, b"part", false).sync();
                    connection.reset(request.stream, weir_http2::ErrorCode::CANCEL)
                }
                _ => connection.respond(request.stream, &[], b"whole"),
            }
            .flush();
        });
    });
    let weir = gateway(&[&server], "", "");
    let mut client = super::Http1::connect(weir.address(), None);
    let whole = client.ask("GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n");
    // Only the end of the connection ends this body.
    assert_eq!((whole.text(), whole.complete, whole.says_close()), ("whole", true, true), "{}", whole.head);
    let mut client = super::Http1::connect(weir.address(), None);
    let cut = client.ask("GET /cut HTTP/1.0\r\nHost: h\r\n\r\n");
    assert_eq!((cut.complete, cut.ending), (false, Some(crate::common::Ending::Reset)), "{cut:?}");
    assert_eq!(server.connections(), 1);
}
