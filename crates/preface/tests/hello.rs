//! ClientHellos, of a real client and by hand.

use weir_preface::Look;
use weir_preface::hello::{Hello, HelloError, LONGEST, read};
use weir_tls::{Client, ClientSettings, Group, Roots};

/// The first flight of our own client.
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

/// The message of a record, in records of so many bytes.
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

/// A record with a ClientHello of these extensions.
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

/// A hybrid key share makes a hello larger than a packet, and than what fits into a first read.
#[test]
fn a_hello_may_come_one_byte_at_a_time_and_in_many_records() {
    let whole = real("db.example.org", vec![Group::X25519Mlkem768, Group::X25519]);
    assert!(whole.len() > 1300, "{} bytes", whole.len());
    let expected = complete(&whole);
    for bytes in [whole.clone(), in_records(&whole, 1), in_records(&whole, 3), in_records(&whole, 500)] {
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
        (made(&[named(b"")]), HelloError::Invalid),
        (made(&[named(b"a b")]), HelloError::Invalid),
        (made(&[named("ä".as_bytes())]), HelloError::Invalid),
        (made(&[named(&[b'a'; 256])]), HelloError::Invalid),
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
