//! Text with variables such as `{host}`. `{{` and `}}` stand for single braces.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(Box<str>),
    /// The index of a variable among the `known` ones of [`parse`].
    Variable(usize),
}

/// Parses a text into pieces. Errors: a message with the fault and the known variables.
pub(crate) fn parse(text: &str, known: &[&str]) -> Result<Vec<Piece>, String> {
    if text.chars().any(|c| c.is_control() && c != '\t') {
        return Err(format!("invalid value {text:?}: control characters end a field"));
    }
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let brace = &rest[at..];
        if let Some(after) = brace.strip_prefix("{{").or_else(|| brace.strip_prefix("}}")) {
            plain.push_str(&brace[..1]);
            rest = after;
            continue;
        }
        let name = brace.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, after) = name.ok_or_else(|| {
            format!("invalid value `{text}`: a brace alone: expected {{{{ or }}}} for a brace")
        })?;
        let variable = known.iter().position(|known| *known == name).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|name| format!("{{{name}}}")).collect();
            let names = names.join(", ");
            format!("invalid value `{text}`: unknown variable `{{{name}}}`: expected one of {names}")
        })?;
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain).into()));
        }
        pieces.push(Piece::Variable(variable));
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain.into()));
    }
    Ok(pieces)
}
