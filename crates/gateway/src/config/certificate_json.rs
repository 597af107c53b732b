//! A certificate as JSON: an object with `chain` and `key`, both PEM.

use super::finding::Fault;
use super::served_certificates::origin_at_run_time;
use serde_json::Value;
use weir_tls::{Certificate, Identity};

/// Loads a certificate from a JSON object, and checks that its key matches. `name` is the certificate's name in errors.
/// Errors name the field and its fault, but contain no value, which could be a key.
pub(crate) fn certificate(name: &str, json: &[u8]) -> Result<Certificate, Fault> {
    let value = serde_json::from_slice(json).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Fault::new(
            "certificate",
            format!("invalid JSON at line {line}, column {column}: expected {EXPECTED}"),
        )
    })?;
    let Value::Object(mut fields) = value else {
        return Err(Fault::new("certificate", format!("expected {EXPECTED}")));
    };
    let (certificates, key) = (text(&mut fields, "chain")?, text(&mut fields, "key")?);
    if let Some(name) = fields.keys().next() {
        return Err(Fault::new("certificate", format!("unknown field {name:?}: expected {EXPECTED}")));
    }
    Certificate::load_portable(&Identity::Pem { certificates, key }, origin_at_run_time(name)).map_err(
        |error| {
            let error = error.to_string();
            let field = if error.starts_with("the given certificates") { "chain" } else { "key" };
            Fault::new(field, error)
        },
    )
}

fn text(fields: &mut serde_json::Map<String, Value>, name: &str) -> Result<String, Fault> {
    match fields.remove(name) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(Fault::new(name, "expected a string: PEM")),
        None => Err(Fault::new(name, "missing: expected a string: PEM")),
    }
}

const EXPECTED: &str = "an object with `chain` and `key`, both PEM";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_tls::issue::{Authority, KeyKind};

    #[test]
    fn a_chain_and_its_key_are_checked() {
        let authority = Authority::new().unwrap();
        let [one, other] =
            [["a.example"], ["b.example"]].map(|names| authority.issue(&names, KeyKind::EcdsaP256).unwrap());
        let body = |chain: &str, key: &str| json!({ "chain": chain, "key": key }).to_string();
        let loaded = certificate("web", body(&one.certificates, &one.key).as_bytes()).unwrap();
        assert_eq!(loaded.presented().names, ["a.example"]);
        let damaged = one.key.replacen("\n", "\n!", 1);
        let encrypted = one.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        let trusted = one.certificates.replace("CERTIFICATE", "TRUSTED CERTIFICATE");
        let chain = one.certificates.clone() + authority.ca_pem();
        let reversed = authority.ca_pem().to_owned() + &one.certificates;
        assert!(certificate("web", body(&chain, &one.key).as_bytes()).is_ok());
        let joined = chain.clone() + &one.key;
        assert!(certificate("web", body(&joined, &joined).as_bytes()).is_ok(), "as in one file");
        for (body, expected) in [
            (body(&one.certificates, &other.key), "key: the key in the given PEM does not match"),
            (body(&one.key, &one.key), "chain: the given certificates: "),
            (body(&one.certificates, &damaged), "key: the given PEM: "),
            (body("", ""), "chain: the given certificates: it contains no certificate"),
            (body(&reversed, &one.key), "key: the key in the given PEM does not match the first certificate"),
            (
                body(&one.certificates, &(one.key.clone() + &other.key)),
                "key: the given PEM: no usable private key: line 6: a second",
            ),
            (body(&joined, &one.key), "chain: the given certificates: not a valid certificate: line "),
            // A suggested command must not name a file that does not exist.
            (
                body(&one.certificates, &encrypted),
                "key: the given PEM: no usable private key: line 1: it is encrypted; `openssl pkey -in FILE -out FILE.plain` decrypts it",
            ),
            (
                body(&trusted, &one.key),
                "chain: the given certificates: not a valid certificate: line 1: -----BEGIN TRUSTED CERTIFICATE----- has no use here: \
                 expected -----BEGIN CERTIFICATE-----; `openssl x509 -in FILE -out FILE.pem` converts one",
            ),
            (json!({ "chain": one.certificates }).to_string(), "key: missing: expected a string: PEM"),
            (json!({ "chain": 1, "key": one.key }).to_string(), "chain: expected a string: PEM"),
            (
                json!({ "chain": one.certificates, "key": one.key, "x": one.key }).to_string(),
                "certificate: unknown field \"x\"",
            ),
            (json!([one.key]).to_string(), "certificate: expected an object"),
            (json!(one.key).to_string(), "certificate: expected an object"),
            (one.key.clone(), "certificate: invalid JSON at line 1, column "),
            (String::new(), "certificate: invalid JSON at line 1, column 0"),
        ] {
            let fault = certificate("web", body.as_bytes()).unwrap_err().to_string();
            assert!(fault.starts_with(expected), "{expected}: {fault}");
            let secret = one.key.lines().nth(1).unwrap();
            assert!(!fault.contains(&secret[..20]), "the key is not shown: {fault}");
        }
    }
}
