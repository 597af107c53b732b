//! Translation of nginx's variables to Weir's.

use std::collections::BTreeMap;

/// Values of variables at a place in the configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Variables that `set` defines.
    pub set: BTreeMap<String, String>,
    /// The server's first name.
    pub server_name: Option<String>,
    /// The listener's port, if there is only one.
    pub port: Option<u16>,
    /// The authority of `proxy_pass`.
    pub proxy_host: Option<String>,
}

/// A piece of an nginx text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Variable(String),
}

/// Splits a text into pieces.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find('$') {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, behind) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, behind)) => (name, behind),
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                after.split_at(end)
            }
        };
        if name.is_empty() {
            plain.push('$');
            rest = after;
            continue;
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Variable(name.to_owned()));
        rest = behind;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    pieces
}

/// Substitutes known variables, repeatedly if their values contain other variables.
pub(super) fn resolved(text: &str, known: &Known) -> String {
    let mut text = text.to_owned();
    // Limits for variables that refer to each other endlessly or grow the text exponentially.
    const DEEPEST: usize = 8;
    const LONGEST: usize = 64 * 1024;
    for _ in 0..DEEPEST {
        let mut changed = false;
        let mut out = String::new();
        for piece in pieces(&text) {
            match piece {
                Piece::Text(plain) => out.push_str(&plain),
                Piece::Variable(name) => match known.set.get(&name) {
                    Some(value) => {
                        changed = true;
                        out.push_str(value);
                    }
                    None => out.push_str(&format!("${{{name}}}")),
                },
            }
        }
        if out.len() > LONGEST {
            break;
        }
        text = out;
        if !changed {
            break;
        }
    }
    text
}

/// Translates a text into a one-line template. The error is a variable without a counterpart, or a control character.
pub(super) fn line(text: &str, known: &Known) -> Result<String, String> {
    let template = template(text, known)?;
    match template.chars().any(|c| c.is_control() && c != '\t') {
        true => Err("a control character".to_owned()),
        false => Ok(template),
    }
}

/// Translates a text into a template. The error is the variable without a counterpart.
pub(super) fn template(text: &str, known: &Known) -> Result<String, String> {
    let pieces = pieces(&resolved(text, known));
    let mut out = String::new();
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        at += 1;
        match piece {
            Piece::Text(plain) => out.push_str(&plain.replace('{', "{{").replace('}', "}}")),
            Piece::Variable(name) if is_path(name) && is_query(&pieces[at..]) => {
                out.push_str("{target}");
                at += 2;
            }
            Piece::Variable(name) => out.push_str(&variable(name, known).ok_or_else(|| format!("${name}"))?),
        }
    }
    Ok(out)
}

fn is_path(name: &str) -> bool {
    matches!(name, "uri" | "document_uri")
}

/// Whether the pieces begin with `$is_args$args`, the query with its question mark.
fn is_query(rest: &[Piece]) -> bool {
    let [Piece::Variable(mark), Piece::Variable(query), ..] = rest else { return false };
    mark == "is_args" && matches!(query.as_str(), "args" | "query_string")
}

fn variable(name: &str, known: &Known) -> Option<String> {
    let text = match name {
        "remote_addr" | "realip_remote_addr" | "proxy_protocol_addr" => "{client_ip}",
        "remote_port" | "proxy_protocol_port" => "{client_port}",
        "scheme" => "{scheme}",
        "host" => "{host}",
        "http_host" => "{authority}",
        "request_uri" => "{target}",
        "uri" | "document_uri" => "{path}",
        "request_method" => "{method}",
        "ssl_client_s_dn" | "ssl_client_s_dn_legacy" => "{client_subject}",
        "ssl_client_serial" => "{client_serial}",
        "request_id" => "{request_id}",
        "server_name" => return known.server_name.clone(),
        "server_port" => return known.port.map(|port| port.to_string()),
        "proxy_host" => return known.proxy_host.clone(),
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_templates() {
        let set = [("a", "b$c"), ("c", "d"), ("loop", "$loop$loop")];
        let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let known = Known { set, port: Some(443), ..Known::default() };
        for (text, template_text) in [
            ("https://$host$request_uri", "https://{host}{target}"),
            ("https://$host$uri$is_args$args", "https://{host}{target}"),
            ("${scheme}x", "{scheme}x"),
            ("$a/{x}", "bd/{{x}}"),
            ("$server_port $", "443 $"),
            ("$$host", "${host}"),
        ] {
            assert_eq!(template(text, &known).as_deref(), Ok(template_text), "{text}");
        }
        assert_eq!(template("$nothing", &known), Err("$nothing".to_owned()));
        assert!(template("$loop", &known).is_err());
    }
}
