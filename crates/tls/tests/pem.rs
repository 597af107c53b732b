//! PEM files: the reader uses every block, or rejects the file.

use std::fs;
use std::path::{Path, PathBuf};

use weir_tls::issue::KeyKind;
use weir_tls::{Client, ClientAuth, ClientSettings, Identity, Roots, Server, ServerSettings, authorities_in};

use crate::common::Pki;

/// A PKI and a directory for files made from it.
struct Files {
    pki: Pki,
    list: String,
    directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let pki = Pki::new(KeyKind::EcdsaP256);
        let list = pki.authority.revocation_list(&[&pki.issued], (2020, 2049)).unwrap();
        Self { pki, list, directory: tempfile::tempdir().unwrap() }
    }

    fn write(&self, content: &str) -> PathBuf {
        let path = self.directory.path().join("file.pem");
        fs::write(&path, content).unwrap();
        path
    }

    fn server(&self, change: impl FnOnce(&mut ServerSettings)) -> Result<(), String> {
        let mut settings = self.pki.server_settings();
        change(&mut settings);
        Server::new(&settings).map(drop).map_err(|error| error.to_string())
    }

    fn of_chain_and_key(&self, chain: &Path, key: &Path) -> Result<(), String> {
        let as_server = self.server(|settings| settings.identities = vec![Identity::files(chain, key)]);
        let identity = Some(Identity::files(chain, key));
        let settings = ClientSettings { identity, ..self.pki.client_settings() };
        let as_client = Client::new(&settings).map(drop).map_err(|error| error.to_string());
        assert_eq!(as_server, as_client);
        as_server
    }
}

/// The readers of PEM files.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reader {
    Chain,
    Key,
    Authorities,
    Lists,
    /// One file as chain and key.
    Combined,
}

const READERS: [Reader; 5] =
    [Reader::Chain, Reader::Key, Reader::Authorities, Reader::Lists, Reader::Combined];

impl Reader {
    /// A valid file for this reader.
    fn good(self, files: &Files) -> String {
        let issued = &files.pki.issued;
        match self {
            Self::Chain => issued.certificates.clone(),
            Self::Key => issued.key.clone(),
            Self::Authorities => issued.ca.clone(),
            Self::Lists => files.list.clone(),
            Self::Combined => issued.certificates.clone() + &issued.key,
        }
    }

    /// Reads `content` in every place that uses this reader; all must agree.
    fn read(self, files: &Files, content: &str) -> Result<(), String> {
        let path = files.write(content);
        let own = &files.pki.files;
        match self {
            Self::Chain => files.of_chain_and_key(&path, &own.key),
            Self::Key => files.of_chain_and_key(&own.certificates, &path),
            Self::Combined => files.of_chain_and_key(&path, &path),
            Self::Authorities => {
                let roots = Roots::File(path.clone());
                let as_client = Client::new(&ClientSettings { roots, ..ClientSettings::default() });
                let as_client = as_client.map(drop).map_err(|error| error.to_string());
                let as_probe = authorities_in(&path).map(drop).map_err(|error| error.to_string());
                let auth = ClientAuth::required(path);
                let as_server = files.server(|settings| settings.client_auth = Some(auth));
                assert!(as_client == as_server && as_client == as_probe, "{as_client:?}, {as_probe:?}");
                as_client
            }
            Self::Lists => {
                let auth = ClientAuth { crls: vec![path], ..ClientAuth::required(&own.ca) };
                files.server(|settings| settings.client_auth = Some(auth))
            }
        }
    }
}

#[test]
fn every_reader_accepts_text_around_blocks_and_rejects_a_damaged_boundary() {
    let files = Files::new();
    for reader in READERS {
        let good = reader.good(&files);
        for accepted in [
            good.clone(),
            good.replace('\n', "\r\n"),
            good.replace('\n', "\r"),
            good.trim_end().to_owned(),
            format!("Subject: CN=a\n\n{good}\nIssued for a test - see -- the notes ---\n"),
        ] {
            assert_eq!(reader.read(&files, &accepted), Ok(()), "{reader:?}: {accepted}");
        }
        let last = good.lines().count();
        let begin = good.lines().next().unwrap();
        for (rejected, line, why) in [
            (format!("{}{good}", good.trim_end()), last, "more than one boundary of a block"),
            (format!("\u{feff}{good}"), 1, "a byte order mark precedes the block; save the file without one"),
            (format!("{good}\u{feff}{good}"), last + 1, "a byte order mark"),
            (format!("  {good}"), 1, "blanks precede the boundary"),
            (format!("{good}\t{good}"), last + 1, "blanks precede the boundary"),
            (good.replace('\n', " "), 1, "more than one boundary of a block"),
            (good.replacen("-----", "----", 1), 1, "a damaged boundary of a block"),
            (format!("{good}{begin}\nAAAA\n"), last + 1, "missing line -----END "),
            (
                format!("{good}{begin}\nAAAA\n-----END NOTHING-----\n"),
                last + 3,
                "-----END NOTHING-----: expected",
            ),
            (
                good.lines().skip(1).collect::<Vec<_>>().join("\n"),
                good.lines().position(|line| line.starts_with("-----END")).unwrap(),
                "without its -----BEGIN",
            ),
            (good.replacen(good.lines().nth(1).unwrap(), "?", 1), 1, "is not base64"),
            (
                format!(
                    "{good}-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"
                ),
                last + 1,
                "-----BEGIN CERTIFICATE REQUEST----- has no use here: expected -----BEGIN ",
            ),
            (
                format!(
                    "{good}-----BEGIN TRUSTED CERTIFICATE-----\nAAAA\n-----END TRUSTED CERTIFICATE-----\n"
                ),
                last + 1,
                "-----BEGIN TRUSTED CERTIFICATE----- has no use here",
            ),
            (format!("{good}-\0-\0-\0-\0-\0B\0E\0G\0I\0N\0"), last + 1, "a NUL byte"),
        ] {
            let error = reader.read(&files, &rejected).expect_err(&format!("{reader:?}: {rejected}"));
            assert!(error.contains("file.pem: "), "{error}");
            assert!(
                error.contains(&format!(": line {line}: ")) && error.contains(why),
                "{reader:?}, {line}, {why}: {error}"
            );
        }
    }
}

/// Regression test: the error for an RSA-PSS key reported an unsupported size.
#[test]
fn a_key_that_cannot_sign_is_called_what_it_is() {
    let files = Files::new();
    for (args, kind) in [
        (
            &["-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"][..],
            "an RSA-PSS key (id-RSASSA-PSS)",
        ),
        (&["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"], "an RSA key of an unsupported size"),
        (
            &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"],
            "an ECDSA key on an unsupported curve",
        ),
        (&["-algorithm", "ED448"], "an Ed448 key"),
        (&["-algorithm", "X25519"], "an X25519 key"),
    ] {
        let made = std::process::Command::new("openssl").arg("genpkey").args(args).output();
        let Ok(made) = made else {
            println!("not tested: openssl is missing");
            return;
        };
        let key = String::from_utf8(made.stdout).unwrap();
        let error = Reader::Key.read(&files, &key).unwrap_err();
        let expected = format!("no usable private key: line 1: {kind}");
        assert!(error.contains(&expected) && error.contains("expected an RSA key of 2048"), "{error}");
    }
}

#[test]
fn a_block_of_another_kind_is_rejected_with_the_next_step() {
    let files = Files::new();
    let issued = &files.pki.issued;
    let (ca, key, list) = (&issued.ca, &issued.key, &files.list);
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
    let junk = |label: &str| format!("-----BEGIN {label}-----\nMAAA\n-----END {label}-----\n");
    let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    for (reader, content, expected) in [
        (Reader::Authorities, format!("{ca}{key}"), Err("a private key has a file of its own")),
        (Reader::Authorities, format!("{ca}{encrypted}"), Err("a private key has a file of its own")),
        (Reader::Authorities, format!("{ca}{list}"), Err("revocation lists have a file of their own")),
        (Reader::Authorities, ca.replace("CERTIFICATE", "TRUSTED CERTIFICATE"), Err("`openssl x509 -in ")),
        (Reader::Authorities, ca.replace("CERTIFICATE", "X509 CERTIFICATE"), Err("change its label")),
        (Reader::Authorities, ca.replace("CERTIFICATE", "PKCS7"), Err("`openssl pkcs7 -print_certs")),
        (Reader::Authorities, format!("{ca}{}", junk("CERTIFICATE")), Err("not X.509")),
        (Reader::Authorities, String::new(), Err("it is empty: expected PEM")),
        (Reader::Authorities, format!("{ca}{ca}"), Ok(())),
        (
            Reader::Chain,
            format!("{}{}", issued.certificates, issued.key),
            Err("a private key has a file of its own"),
        ),
        (Reader::Chain, format!("{}{}", issued.certificates, junk("CERTIFICATE")), Err("not X.509")),
        (Reader::Chain, format!("{}{list}", issued.certificates), Err("revocation lists have a file")),
        (Reader::Chain, String::new(), Err("it is empty: expected PEM")),
        (Reader::Key, format!("{key}{key}"), Err("a second private key, after that of line 1")),
        (Reader::Key, encrypted.to_owned(), Err("decrypts it")),
        (Reader::Key, old.to_owned(), Err("decrypts it")),
        (Reader::Key, format!("{key}{encrypted}"), Err("decrypts it")),
        (Reader::Key, format!("{key}{ca}"), Err("name the same file as the chain's")),
        (Reader::Key, format!("{parameters}{key}"), Ok(())),
        (Reader::Key, key.replace("PRIVATE", "PUBLIC"), Err("expected -----BEGIN PRIVATE KEY-----")),
        (Reader::Key, String::new(), Err("it is empty: expected PEM")),
        (Reader::Combined, format!("{key}{parameters}{}", issued.certificates), Ok(())),
        (Reader::Combined, format!("{key}{}{key}", issued.certificates), Err("a second private key")),
        (Reader::Combined, key.clone(), Err("it contains no certificate")),
        (Reader::Combined, issued.certificates.clone(), Err("no usable private key: it contains other PEM")),
        (Reader::Lists, format!("{list}{list}"), Ok(())),
        (Reader::Lists, format!("{list}{ca}"), Err("CAs have a file of their own")),
        (Reader::Lists, list.replace("X509 CRL", "CRL"), Err("expected -----BEGIN X509 CRL-----")),
        (Reader::Lists, format!("{list}{}", junk("X509 CRL")), Err("not X.509")),
        (Reader::Lists, String::new(), Err("it is empty: expected PEM")),
    ] {
        match (reader.read(&files, &content), expected) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(part)) if error.contains(part) => {}
            (found, _) => panic!("{reader:?}, {content}: {found:?} for {expected:?}"),
        }
    }
}
