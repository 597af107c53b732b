//! Translates HAProxy's log formats to Weir's templates.

/// A placeholder for the listener's port, for which Weir has no variable.
pub(super) const PORT: &str = "\u{1}";

/// Translates a text with `%[fetch]` and variables. The error is the part without a counterpart.
pub(super) fn template(text: &str) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('%') {
        out.push_str(&escaped(&rest[..at]));
        let after = &rest[at + 1..];
        if let Some(behind) = after.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        // `%{+Q}[fetch]` has flags.
        let after = match after.strip_prefix('{').and_then(|flags| flags.split_once('}')) {
            Some((_, behind)) => behind,
            None => after,
        };
        let (name, behind) = match after.strip_prefix('[') {
            Some(fetch) => bracketed(fetch).ok_or_else(|| format!("%{after}"))?,
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len());
                after.split_at(end)
            }
        };
        out.push_str(variable(name).ok_or_else(|| format!("%[{name}]"))?);
        rest = behind;
    }
    out.push_str(&escaped(rest));
    match out.chars().any(|c| c.is_control() && c != '\t' && c != '\u{1}') {
        true => Err("a control character".to_owned()),
        false => Ok(out),
    }
}

fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// Splits at the matching bracket; expressions may contain brackets.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            ']' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn variable(name: &str) -> Option<&'static str> {
    Some(match name {
        "src" | "ci" => "{client_ip}",
        "src_port" | "cp" => "{client_port}",
        "req.hdr(host)" | "hdr(host)" | "req.hdr(Host)" | "hdr(Host)" | "req.fhdr(host)" => "{authority}",
        "method" | "HM" => "{method}",
        "path" | "HP" | "HPO" => "{path}",
        "pathq" | "url" | "capture.req.uri" | "HU" | "HPQ" => "{target}",
        "ssl_fc,iif(https,http)" => "{scheme}",
        "ssl_c_s_dn" => "{client_subject}",
        "ssl_c_serial,hex" => "{client_serial}",
        "unique-id" | "ID" | "uuid" | "uuid()" => "{request_id}",
        "dst_port" | "fc_dst_port" | "fp" => PORT,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_become_templates() {
        for (text, expected) in [
            ("%[src]", Ok("{client_ip}")),
            ("https://%[hdr(host)]%[capture.req.uri]", Ok("https://{authority}{target}")),
            ("max-age={1}; 100%%", Ok("max-age={{1}}; 100%")),
            ("%{+Q}[ssl_c_s_dn]", Ok("{client_subject}")),
            ("%[rand]", Err("%[rand]")),
            ("%[src", Err("%[src")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(template(text), expected, "{text}");
        }
    }
}
