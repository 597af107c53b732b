//! Transfers certificates set at run time, with their keys, through the channel of an upgrade.

use super::channel::Channel;
use super::message::{FromOld, HandedCertificate};
use crate::config::{CertificateFrom, ServedCertificate, origin_at_run_time};
use std::io;
use std::sync::Arc;
use weir_tls::Certificate;

/// Sends a certificate. Errors: as for the channel, the certificate was not set at run time, or its key is not
/// available.
pub(super) fn send(channel: &Channel, name: &str, served: &ServedCertificate) -> io::Result<()> {
    let CertificateFrom::Admin { replaces } = served.from else {
        return Err(io::Error::other(format!("certificate `{name}`: the file has it")));
    };
    let bytes = served.certificate.to_bytes();
    let bytes = bytes.ok_or_else(|| {
        io::Error::other(format!("{}: its key cannot be handed over", origin_at_run_time(name)))
    })?;
    let handed = HandedCertificate { name: name.to_owned(), replaces, length: bytes.len() };
    channel.send(&FromOld::Certificate(handed), &[])?;
    channel.send_bytes(&bytes)
}

/// Receives the bytes of a certificate, and loads it. Errors: as for the channel, or this version does not accept the
/// certificate.
pub(super) fn receive(
    channel: &Channel,
    handed: HandedCertificate,
) -> io::Result<(Arc<str>, ServedCertificate)> {
    let HandedCertificate { name, replaces, length } = handed;
    if length > LONGEST {
        let origin = origin_at_run_time(&name);
        return Err(io::Error::other(format!(
            "{origin}: {length} bytes are too long: expected at most {LONGEST}"
        )));
    }
    let bytes = channel.receive_bytes(length)?;
    let certificate = Certificate::of_bytes(&bytes, origin_at_run_time(&name)).map_err(|error| {
        io::Error::other(format!(
            "{error}; return to the certificate of the file: DELETE /certificates/{name}"
        ))
    })?;
    let name: Arc<str> = name.into();
    Ok((Arc::clone(&name), ServedCertificate::set_at_run_time(name, certificate, replaces)))
}

/// The maximum number of bytes of a certificate. The admin address accepts at most this much PEM, and DER is shorter.
const LONGEST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_tls::issue::{Authority, KeyKind};
    use weir_tls::{Identity, SystemTime};

    /// A portable certificate for `web.example`, with a chain of this many certificates.
    fn portable(kind: KeyKind, count: usize) -> Certificate {
        let issued = Authority::new().unwrap().issue(&["web.example"], kind).unwrap();
        let identity = Identity::Pem { certificates: issued.certificates.repeat(count), key: issued.key };
        Certificate::load_portable(&identity, String::new()).unwrap()
    }

    fn served(certificate: Certificate) -> ServedCertificate {
        ServedCertificate::set_at_run_time("web".into(), certificate, u64::MAX - 1)
    }

    /// Receives a certificate whose message and packets are already in the channel.
    fn received(channel: &Channel) -> io::Result<(Arc<str>, ServedCertificate)> {
        match channel.receive()? {
            (FromOld::Certificate(handed), _) => receive(channel, handed),
            (other, _) => panic!("{other:?}"),
        }
    }

    #[test]
    fn certificates_arrive_as_they_were() {
        for (kind, count, packets) in [
            (KeyKind::EcdsaP256, 1, 1),
            (KeyKind::EcdsaP384, 1, 1),
            (KeyKind::Ed25519, 2, 1),
            (KeyKind::Rsa2048, 1, 1),
            (KeyKind::EcdsaP256, 220, 2),
        ] {
            let (ours, theirs) = Channel::both();
            let sent = served(portable(kind, count));
            send(&ours, "web", &sent).unwrap();
            let (name, came) = received(&theirs).unwrap();
            assert_eq!((&*name, came.from, &came.name), ("web", sent.from, &sent.name), "{kind:?}");
            assert_eq!(came.certificate.to_bytes(), sent.certificate.to_bytes(), "{kind:?}");
            let length = sent.certificate.to_bytes().unwrap().len();
            assert_eq!(length.div_ceil(64 << 10), packets, "{kind:?}: {length} bytes");
            let presented = came.certificate.presented();
            assert_eq!(presented.names, ["web.example"]);
            assert_eq!(presented.origin, "certificate `web` set at run time");
            assert_eq!(presented.key, sent.certificate.presented().key);
        }
    }

    #[test]
    fn a_certificate_of_a_file_is_not_handed_over() {
        let (ours, _theirs) = Channel::both();
        let issued = Authority::new().unwrap().issue(&["web.example"], KeyKind::EcdsaP256).unwrap();
        let loaded = Certificate::load(&issued.identity(), &SystemTime).unwrap();
        assert!(loaded.to_bytes().is_none());
        let error = send(&ours, "web", &served(loaded.clone())).unwrap_err().to_string();
        assert!(error.contains("its key cannot be handed over"), "{error}");
        let of_file = ServedCertificate { from: CertificateFrom::File, ..served(loaded) };
        assert!(send(&ours, "web", &of_file).unwrap_err().to_string().contains("the file has it"));
    }

    #[test]
    fn damage_is_an_error_that_names_the_certificate_and_shows_no_key() {
        let whole = portable(KeyKind::EcdsaP256, 1).to_bytes().unwrap();
        let other = portable(KeyKind::EcdsaP256, 1).to_bytes().unwrap();
        let key_of = |bytes: &[u8]| {
            let length = u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
            4 + length
        };
        let (key, other_key) = (key_of(&whole), key_of(&other));
        let value = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes(), bytes].concat();
        for (bytes, expected) in [
            (Vec::new(), "no key"),
            (whole[..3].to_vec(), "damaged lengths"),
            (whole[..whole.len() - 1].to_vec(), "damaged lengths"),
            ([&whole[..], &[0]].concat(), "damaged lengths"),
            (u32::MAX.to_be_bytes().to_vec(), "damaged lengths"),
            (whole[..key].to_vec(), "no certificate"),
            (whole[key..].to_vec(), "the key: "),
            ([&value(b""), &whole[key..]].concat(), "the key: "),
            ([&other[..other_key], &whole[key..]].concat(), "KeyMismatch"),
            ([&whole[..], &value(b"x")].concat(), "a certificate of the chain is not X.509"),
        ] {
            let (ours, theirs) = Channel::both();
            let handed = HandedCertificate { name: "web".to_owned(), replaces: 1, length: bytes.len() };
            ours.send(&FromOld::Certificate(handed), &[]).unwrap();
            ours.send_bytes(&bytes).unwrap();
            let error = received(&theirs).unwrap_err().to_string();
            assert!(error.starts_with("certificate `web` set at run time: not a certificate"), "{error}");
            assert!(error.contains(expected), "{expected}: {error}");
            assert!(error.ends_with("DELETE /certificates/web"), "{error}");
        }
    }

    #[test]
    fn lengths_that_do_not_fit_the_packets_are_errors() {
        for (length, packets, expected) in [
            (LONGEST + 1, vec![], "1048577 bytes are too long: expected at most 1048576"),
            (9, vec![8], "another length"),
            (7, vec![8], "another length"),
            ((64 << 10) + 1, vec![64 << 10, 2], "another length"),
        ] {
            let (ours, theirs) = Channel::both();
            let handed = HandedCertificate { name: "web".to_owned(), replaces: 1, length };
            ours.send(&FromOld::Certificate(handed), &[]).unwrap();
            for packet in packets {
                ours.send_bytes(&vec![1; packet]).unwrap();
            }
            let error = received(&theirs).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let (ours, theirs) = Channel::both();
        let handed = HandedCertificate { name: "web".to_owned(), replaces: 1, length: 1 };
        ours.send(&FromOld::Certificate(handed), &[]).unwrap();
        drop(ours);
        assert_eq!(received(&theirs).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
