//! A ClientHello serialiser, for what TLS libraries do not offer: old versions, old suites, single values.

use crate::Version;
use crate::wire::{HANDSHAKE, numbers, vector};

const CLIENT_HELLO: u8 = 1;

// RFC 6066 3, RFC 8422 5.1, RFC 8446 4.2, RFC 5746 3.2.
const SERVER_NAME: u16 = 0;
const SUPPORTED_GROUPS: u16 = 10;
const EC_POINT_FORMATS: u16 = 11;
const SIGNATURE_ALGORITHMS: u16 = 13;
const SUPPORTED_VERSIONS: u16 = 43;
const KEY_SHARE: u16 = 51;
const RENEGOTIATION_INFO: u16 = 0xff01;

/// What one ClientHello offers.
///
/// In TLS 1.3 it has no key share. RFC 8446 4.2.8 allows an empty list to ask the server to
/// choose the group: the HelloRetryRequest names group and suite, and costs neither side a
/// key exchange.
#[derive(Clone, Copy, Debug)]
pub struct ClientHello<'a> {
    /// The only version.
    pub version: Version,
    /// The random, and the session ID that TLS 1.3 sends for middlebox compatibility (RFC
    /// 8446 D.4).
    pub random: [u8; 64],
    /// The suites, most preferred first; at most 30 000.
    pub suites: &'a [u16],
    /// The groups, most preferred first.
    pub groups: &'a [u16],
    /// The signature schemes, most preferred first; sent since TLS 1.2.
    pub schemes: &'a [u16],
    /// The server's name (RFC 6066 3), at most 253 bytes.
    pub server_name: Option<&'a str>,
}

impl ClientHello<'_> {
    /// The serialised record.
    pub fn record(&self) -> Vec<u8> {
        // RFC 8446 5.1: always 0x0301, for compatibility.
        let mut out = vec![HANDSHAKE, 3, 1];
        vector::<2>(&mut out, |out| {
            out.push(CLIENT_HELLO);
            vector::<3>(out, |out| self.body(out));
        });
        out
    }

    fn body(&self, out: &mut Vec<u8>) {
        let (random, session_id) = self.random.split_at(32);
        numbers(out, &[self.version.number().min(Version::Tls12.number())]);
        out.extend_from_slice(random);
        let session_id = if self.version == Version::Tls13 { session_id } else { &[] };
        vector::<1>(out, |out| out.extend_from_slice(session_id));
        vector::<2>(out, |out| numbers(out, self.suites));
        // No compression (RFC 8446 4.1.2).
        out.extend_from_slice(&[1, 0]);
        vector::<2>(out, |out| self.extensions(out));
    }

    fn extensions(&self, out: &mut Vec<u8>) {
        if let Some(name) = self.server_name {
            extension(out, SERVER_NAME, |out| {
                vector::<2>(out, |out| {
                    // The type of a host name.
                    out.push(0);
                    vector::<2>(out, |out| out.extend_from_slice(name.as_bytes()));
                });
            });
        }
        if !self.groups.is_empty() {
            extension(out, SUPPORTED_GROUPS, |out| vector::<2>(out, |out| numbers(out, self.groups)));
        }
        if self.version >= Version::Tls12 {
            extension(out, SIGNATURE_ALGORITHMS, |out| vector::<2>(out, |out| numbers(out, self.schemes)));
        }
        if self.version == Version::Tls13 {
            let version = [self.version.number()];
            extension(out, SUPPORTED_VERSIONS, |out| vector::<1>(out, |out| numbers(out, &version)));
            extension(out, KEY_SHARE, |out| vector::<2>(out, |_| {}));
        } else {
            // Uncompressed points; and no renegotiation.
            extension(out, EC_POINT_FORMATS, |out| vector::<1>(out, |out| out.push(0)));
            extension(out, RENEGOTIATION_INFO, |out| vector::<1>(out, |_| {}));
        }
    }
}

fn extension(out: &mut Vec<u8>, number: u16, body: impl FnOnce(&mut Vec<u8>)) {
    numbers(out, &[number]);
    vector::<2>(out, body);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(version: Version) -> Vec<u8> {
        ClientHello {
            version,
            random: [7; 64],
            suites: &[0x1301, 0xc02b],
            groups: &[0x001d],
            schemes: &[0x0403],
            server_name: Some("a.b"),
        }
        .record()
    }

    #[test]
    fn a_hello_of_tls_1_2_byte_by_byte() {
        let expected = [
            &[22, 3, 1, 0, 88, 1, 0, 0, 84, 3, 3][..],
            &[7; 32],
            &[0],
            &[0, 4, 0x13, 0x01, 0xc0, 0x2b, 1, 0],
            &[0, 39],
            &[0, 0, 0, 8, 0, 6, 0, 0, 3, b'a', b'.', b'b'],
            &[0, 10, 0, 4, 0, 2, 0, 0x1d],
            &[0, 13, 0, 4, 0, 2, 4, 3],
            &[0, 11, 0, 2, 1, 0],
            &[0xff, 1, 0, 1, 0],
        ]
        .concat();
        assert_eq!(hello(Version::Tls12), expected);
    }

    #[test]
    fn tls_1_3_hides_behind_1_2_and_brings_no_key_share() {
        let hello = hello(Version::Tls13);
        assert_eq!(hello[9..11], [3, 3]);
        assert_eq!(hello[43], 32);
        let end = [0, 43, 0, 3, 2, 3, 4, 0, 51, 0, 2, 0, 0];
        assert!(hello.ends_with(&end), "{hello:02x?}");
    }

    #[test]
    fn old_versions_name_themselves_and_no_schemes() {
        let hello = hello(Version::Tls10);
        assert_eq!(hello[9..11], [3, 1]);
        assert!(!hello.windows(4).any(|bytes| bytes == [0, 13, 0, 4]));
    }
}
