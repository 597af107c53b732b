//! A certificate as JSON: an object with `chain` and `key`, both PEM.

use super::finding::Fault;
use serde_json::Value;
use weir_tls::{Certificate, Identity, SystemTime};

/// Loads the certificate in a JSON object, and checks that its key matches. Errors: the field, and its fault. No error contains a
/// value, which may be a key.
pub(crate) fn certificate(json: &[u8]) -> Result<Certificate, Fault> {
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
    Certificate::load(&Identity::Pem { certificates, key }, &SystemTime).map_err(|error| {
        let error = error.to_string();
        let field = if error.starts_with("the given certificates") { "chain" } else { "key" };
        Fault::new(field, error)
    })
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
        let loaded = certificate(body(&one.certificates, &one.key).as_bytes()).unwrap();
        assert_eq!(loaded.presented().names, ["a.example"]);
        let damaged = one.key.replacen("\n", "\n!", 1);
        for (body, expected) in [
            (body(&one.certificates, &other.key), "key: the key in the given key does not match"),
            (body(&one.key, &one.key), "chain: the given certificates: "),
            (body(&one.certificates, &damaged), "key: the given key: "),
            (body("", ""), "chain: the given certificates: it contains no certificate"),
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
            let fault = certificate(body.as_bytes()).unwrap_err().to_string();
            assert!(fault.starts_with(expected), "{expected}: {fault}");
            let secret = one.key.lines().nth(1).unwrap();
            assert!(!fault.contains(&secret[..20]), "the key is not shown: {fault}");
        }
    }
}
