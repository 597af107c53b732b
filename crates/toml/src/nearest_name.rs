//! Suggestions for mistyped names: did you mean `listener`?

/// Adds the nearest known name to the message about an unknown field or variant. For a field, it replaces the list of
/// all fields, which is long. `None` if no name is near.
pub(crate) fn with_nearest(message: &str) -> Option<String> {
    let at = message.find("unknown field `").or_else(|| message.find("unknown variant `"))?;
    let (before, unknown) = message.split_at(at);
    let (what, rest) = unknown.split_once('`')?;
    let (name, rest) = rest.split_once('`')?;
    // Names are quoted, so every second part is a name.
    let nearest = nearest(name, rest.split('`').skip(1).step_by(2))?;
    let all = if what.contains("variant") {
        message.trim_end_matches(": ")
    } else {
        &format!("{before}{what}`{name}`")
    };
    Some(format!("{all}; did you mean `{nearest}`?"))
}

/// The known name that is most similar to a mistyped one; `None` if none is similar enough. Ignores case, and treats
/// `_` as `-`.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_ascii_lowercase().replace('_', "-");
    let name = plain(name);
    let distances = known.map(|known| (strsim::damerau_levenshtein(&name, &plain(known)), known));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    // A third of the characters may differ, but at least one: beyond that, most words resemble some other word.
    (distance <= (name.chars().count() / 3).max(1) && name.len() > 1).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use crate::parser_messages::in_words;

    #[test]
    fn a_mistyped_name_is_known_again() {
        let known = ["workers", "listener", "service", "servers", "timeouts", "max_body", "x"];
        for (name, nearest) in [
            ("workres", Some("workers")),
            ("listeners", Some("listener")),
            ("services", Some("service")),
            ("server", Some("servers")),
            ("timeout", Some("timeouts")),
            ("Max-Body", Some("max_body")),
            ("wrokers", Some("workers")),
            ("backend", None),
            ("port", None),
            ("y", None),
            ("", None),
        ] {
            assert_eq!(super::nearest(name, known.into_iter()), nearest, "{name}");
        }
        assert_eq!(
            in_words("unknown field `hots`, expected one of `host`, `path`"),
            "unknown field `hots`; did you mean `host`?"
        );
        assert_eq!(
            in_words("unknown variant `hsah`, expected `hash` or `random`"),
            "unknown variant `hsah`, expected `hash` or `random`; did you mean `hash`?"
        );
        let other = "unknown field `backend`, expected one of `host`, `path`";
        assert_eq!(in_words(other), other);
    }
}
