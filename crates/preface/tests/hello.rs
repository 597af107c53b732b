//! ClientHellos, both from Weir's TLS client and assembled by hand.

use weir_preface::Look;
use weir_preface::hello::{Hello, HelloError, LONGEST, MOST_RECORDS, read};
use weir_tls::{Client, ClientSettings, Group, Roots};

/// The first flight of Weir's TLS client.
fn real(name: &str, groups: Vec<Group>) -> Vec<u8> {
    let settings = ClientSettings {
        roots: Roots::DangerouslyNone,
        groups,
        alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        ..ClientSettings::default()
    };
    let mut session = Client::new(&settings).unwrap().core().connect(&name.parse().unwrap());
    let mut sent = Vec::new();
    session.receive(&mut [], &mut Vec::new(), &mut sent).unwrap();
    sent
}

/// The message of `record`, split into records of `size` bytes.
fn in_records(record: &[u8], size: usize) -> Vec<u8> {
    let one = |part: &[u8]| [&[22, 3, 1], &(part.len() as u16).to_be_bytes()[..], part].concat();
    record[5..].chunks(size).flat_map(one).collect()
}

fn complete(bytes: &[u8]) -> Hello {
    match read(bytes) {
        Ok(Look::Complete(hello)) => hello,
        other => panic!("{other:?}"),
    }
}

fn vector(bytes: usize, data: &[u8]) -> Vec<u8> {
    [&data.len().to_be_bytes()[8 - bytes..], data].concat()
}

/// A record with a ClientHello that has these extensions.
fn made(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let extensions: Vec<u8> = extensions
        .iter()
        .flat_map(|(kind, data)| [&kind.to_be_bytes()[..], &vector(2, data)].concat())
        .collect();
    let body =
        [&[3; 34][..], &vector(1, b""), &vector(2, &[0x13, 1]), &vector(1, &[0]), &vector(2, &extensions)];
    let message = [&[1][..], &vector(3, &body.concat())].concat();
    [&[22, 3, 1][..], &vector(2, &message)].concat()
}

fn named(name: &[u8]) -> (u16, Vec<u8>) {
    (0, vector(2, &[&[0][..], &vector(2, name)].concat()))
}

#[test]
fn a_real_hello_says_for_whom_it_is() {
    for groups in [vec![Group::X25519], vec![Group::X25519Mlkem768, Group::X25519]] {
        let bytes = real("db.Example.org", groups);
        let hello = complete(&bytes);
        assert_eq!(hello.server_name.as_deref(), Some("db.example.org"));
        assert_eq!(hello.alpn, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    }
    let address = complete(&real("192.0.2.1", vec![Group::X25519]));
    assert_eq!(address.server_name, None, "SNI has no addresses (RFC 6066 section 3)");
}

/// A ClientHello with a hybrid key share exceeds a packet, so the first read may contain only part of it.
#[test]
fn a_hello_may_come_one_byte_at_a_time_and_in_many_records() {
    let whole = real("db.example.org", vec![Group::X25519Mlkem768, Group::X25519]);
    assert!(whole.len() > 1300, "{} bytes", whole.len());
    let expected = complete(&whole);
    let most = (whole.len() - 5).div_ceil(MOST_RECORDS);
    for bytes in [whole.clone(), in_records(&whole, most), in_records(&whole, 500)] {
        for part in 0..bytes.len() {
            assert_eq!(read(&bytes[..part]), Ok(Look::Partial), "{part} of {} bytes", bytes.len());
        }
        assert_eq!(complete(&bytes), expected);
    }
}

#[test]
fn what_is_not_tls_or_no_hello() {
    let mut longer = made(&[named(b"a")]);
    longer[8] += 1;
    for (bytes, error) in [
        (b"GET / HTTP/1.1\r\n".to_vec(), HelloError::NotTls),
        (vec![22, 2], HelloError::NotTls),
        (vec![21, 3, 3, 0, 2, 2, 40], HelloError::NotTls),
        (vec![22, 3, 1, 0, 0], HelloError::Invalid),
        (vec![22, 3, 1, 0x40, 1], HelloError::Invalid),
        (vec![22, 3, 1, 0, 4, 2, 0, 0, 0], HelloError::Invalid),
        (vec![22, 3, 1, 0, 4, 1, 0, 0x40, 0], HelloError::TooLong),
        ([&in_records(&made(&[]), 3)[..8], &[23, 3, 3]].concat(), HelloError::NotTls),
        (made(&[(0, vec![0, 9, 0])]), HelloError::Invalid),
        (made(&[(16, vec![0, 2, 5, b'h'])]), HelloError::Invalid),
    ] {
        assert_eq!(read(&bytes), Err(error), "{bytes:x?}");
    }
    assert_eq!(read(&longer), Ok(Look::Partial), "its length says that more comes");
    assert_eq!(complete(&made(&[])), Hello::default());
    let other = (0, vector(2, &[&[7][..], &vector(2, b"?")].concat()));
    assert_eq!(complete(&made(&[other])).server_name, None, "a name of another kind");
    assert_eq!(LONGEST, 0x4000);
}

/// Regression test: the parser copied and parsed a ClientHello in one-byte records anew with each packet, and accepted
/// six times the documented 16 KiB.
#[test]
fn a_hello_in_too_many_records_is_refused_before_all_of_it_has_come() {
    let whole = real("db.example.org", vec![Group::X25519Mlkem768, Group::X25519]);
    for size in [1, 2, 8, (whole.len() - 5) / (MOST_RECORDS + 1)] {
        let bytes = in_records(&whole, size);
        let bound = MOST_RECORDS * (5 + size) + 6;
        assert_eq!(read(&bytes[..bound - 1]), Ok(Look::Partial), "{size}");
        assert_eq!(read(&bytes[..bound]), Err(HelloError::TooManyRecords), "{size}");
        assert_eq!(read(&bytes), Err(HelloError::TooManyRecords), "{size}");
    }
}

/// Regression test: of two SNI extensions the last one decided, and the name `.wild.example` matched `*.wild.example`.
/// The server may select another name, so the gateway rejects both.
#[test]
fn what_servers_may_read_in_two_ways_is_refused() {
    let alpn = || (16, vector(2, &vector(1, b"h2")));
    let names = |names: &[(u8, &[u8])]| {
        let list: Vec<u8> =
            names.iter().flat_map(|(kind, name)| [&[*kind][..], &vector(2, name)].concat()).collect();
        (0, vector(2, &list))
    };
    let behind = |(kind, mut data): (u16, Vec<u8>)| {
        data.push(0);
        (kind, data)
    };
    for (extensions, error) in [
        (vec![named(b"a.example"), named(b"b.example")], HelloError::TwoOfAKind),
        (vec![named(b"a.example"), alpn(), named(b"a.example")], HelloError::TwoOfAKind),
        (vec![alpn(), named(b"a.example"), alpn()], HelloError::TwoOfAKind),
        (vec![(0x0a0a, vec![]), (0x0a0a, vec![])], HelloError::TwoOfAKind),
        (vec![names(&[(0, b"a.example"), (0, b"b.example")])], HelloError::TwoOfAKind),
        (vec![names(&[(0, b"a.example"), (7, b"?"), (0, b"a.example")])], HelloError::TwoOfAKind),
        (vec![behind(named(b"a.example"))], HelloError::Invalid),
        (vec![behind(alpn())], HelloError::Invalid),
        (vec![named(b"")], HelloError::Name),
        (vec![named(b".")], HelloError::Name),
        (vec![named(b".wild.example")], HelloError::Name),
        (vec![named(b"a..example")], HelloError::Name),
        (vec![named(b"a.example..")], HelloError::Name),
        (vec![named(b"*.wild.example")], HelloError::Name),
        (vec![named(b"a b")], HelloError::Name),
        (vec![named(b"a/b")], HelloError::Name),
        (vec![named(b"a\0.example")], HelloError::Name),
        (vec![named("ä.example".as_bytes())], HelloError::Name),
        (vec![named(&[[b'a'; 64], [b'.'; 64]].concat())], HelloError::Name),
        (vec![named(&[b'a'; 64])], HelloError::Name),
        (vec![named(&[b"abcdefg.".repeat(32), b"a".to_vec()].concat())], HelloError::Name),
    ] {
        assert_eq!(read(&made(&extensions)), Err(error), "{extensions:x?}");
    }
    for (name, expected) in [
        (&b"A.Example"[..], "a.example"),
        (b"a.example.", "a.example"),
        (b"_dmarc.x-y.example", "_dmarc.x-y.example"),
        (&[b'a'; 63], std::str::from_utf8(&[b'a'; 63]).unwrap()),
    ] {
        assert_eq!(complete(&made(&[named(name), alpn()])).server_name.as_deref(), Some(expected));
    }
    assert_eq!(complete(&made(&[(0x0a0a, vec![]), (0x1a1a, vec![])])), Hello::default(), "two of GREASE");
}
