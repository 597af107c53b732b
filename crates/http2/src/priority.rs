//! Priorities of responses (RFC 9218).

/// The priority that a client assigns to a response (RFC 9218, section 4). [`Priority::default`] applies to a request
/// without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0, the most urgent, to 7.
    pub urgency: u8,
    /// Whether the client can use parts of the response as they arrive.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// Applies the value of a `priority` field, or of a PRIORITY_UPDATE frame: a dictionary of structured fields (RFC
    /// 9651, section 3.2). Ignores a value of another form, and a parameter that is unknown, of another type, or out of
    /// range (RFC 9218, section 4).
    #[must_use]
    pub fn updated(self, value: &[u8]) -> Self {
        let (mut urgency, mut incremental) = (None, None);
        let is_dictionary = Dictionary(value.trim_ascii()).visit(|key, item| match (key, item) {
            (b"u", Item::Integer(number @ 0..=7)) => urgency = Some(number),
            (b"u", _) => urgency = None,
            (b"i", Item::Boolean(value)) => incremental = Some(value),
            (b"i", _) => incremental = None,
            _ => {}
        });
        match is_dictionary {
            Some(()) => Self {
                urgency: urgency.unwrap_or(self.urgency),
                incremental: incremental.unwrap_or(self.incremental),
            },
            None => self,
        }
    }
}

/// An item of a dictionary. Numbers above 255 and other types are [`Item::Other`], since no priority parameter uses
/// them.
#[derive(Clone, Copy)]
enum Item {
    Integer(u8),
    Boolean(bool),
    Other,
}

/// The unparsed part of a dictionary. The methods return `None` for a violation of the syntax.
struct Dictionary<'a>(&'a [u8]);

impl<'a> Dictionary<'a> {
    fn visit(mut self, mut member: impl FnMut(&'a [u8], Item)) -> Option<()> {
        while !self.0.is_empty() {
            let key = self.key()?;
            let item = if self.take(b'=') { self.item_or_list()? } else { Item::Boolean(true) };
            self.parameters()?;
            member(key, item);
            self.skip(|byte| matches!(byte, b' ' | b'\t'));
            if self.0.is_empty() {
                break;
            }
            self.expect(b',')?;
            self.skip(|byte| matches!(byte, b' ' | b'\t'));
            // A dictionary must not end with a comma.
            self.0.first()?;
        }
        Some(())
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        self.0.first().filter(|byte| matches!(byte, b'a'..=b'z' | b'*'))?;
        Some(self.skip(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*')))
    }

    fn item_or_list(&mut self) -> Option<Item> {
        if !self.take(b'(') {
            return self.item();
        }
        loop {
            self.skip(|byte| byte == b' ');
            if self.take(b')') {
                return Some(Item::Other);
            }
            self.item()?;
            self.parameters()?;
            self.0.first().filter(|byte| matches!(byte, b' ' | b')'))?;
        }
    }

    fn parameters(&mut self) -> Option<()> {
        while self.take(b';') {
            self.skip(|byte| byte == b' ');
            self.key()?;
            if self.take(b'=') {
                self.item()?;
            }
        }
        Some(())
    }

    fn item(&mut self) -> Option<Item> {
        match self.0.first()? {
            b'?' => {
                self.expect(b'?')?;
                let is_true = self.take(b'1');
                if !is_true {
                    self.expect(b'0')?;
                }
                Some(Item::Boolean(is_true))
            }
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b':' => {
                self.expect(b':')?;
                self.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
                self.expect(b':')?;
                Some(Item::Other)
            }
            b'@' => {
                self.expect(b'@')?;
                self.number().map(|_| Item::Other)
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'*' => {
                let is_token =
                    |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
                self.skip(is_token);
                Some(Item::Other)
            }
            _ => None,
        }
    }

    /// Parses an integer or a decimal number.
    fn number(&mut self) -> Option<Item> {
        let is_negative = self.take(b'-');
        let digits = self.skip(|byte| byte.is_ascii_digit());
        if !(1..=15).contains(&digits.len()) {
            return None;
        }
        if self.take(b'.') {
            let decimals = self.skip(|byte| byte.is_ascii_digit()).len();
            return ((1..=3).contains(&decimals) && digits.len() <= 12).then_some(Item::Other);
        }
        let number = std::str::from_utf8(digits).ok()?.parse().ok();
        // Only a zero may carry a minus sign.
        let number = number.filter(|number| !is_negative || *number == 0);
        Some(number.map_or(Item::Other, Item::Integer))
    }

    fn string(&mut self) -> Option<Item> {
        self.expect(b'"')?;
        loop {
            self.skip(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
            if self.take(b'"') {
                return Some(Item::Other);
            }
            self.expect(b'\\')?;
            if !self.take(b'"') {
                self.expect(b'\\')?;
            }
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.expect(byte).is_some()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    /// Takes the bytes up to the first one of another kind.
    fn skip(&mut self, of_kind: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !of_kind(*byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> (u8, bool) {
        let Priority { urgency, incremental } = Priority::default().updated(value.as_bytes());
        (urgency, incremental)
    }

    #[test]
    fn parameters_are_read() {
        for (value, expected) in [
            ("", (3, false)),
            ("u=0", (0, false)),
            ("u=7, i", (7, true)),
            ("i", (3, true)),
            ("i=?0", (3, false)),
            ("  u=5\t,\t i=?1 ", (5, true)),
            ("u=0,i,u=2,i=?0", (2, false)),
            ("u=1;x;y=2, i;z=\"a, \\\" b\"", (1, true)),
            ("x=\"u=1, i\", u=6", (6, false)),
            ("x=(1 \"(\";a :YQ==:), *y.-_=tok/en, z=@-1, w=-1.5, v=:YQ==:, v=?1, u=4", (4, false)),
            ("x=(), u=-0", (0, false)),
        ] {
            assert_eq!(of(value), expected, "{value}");
        }
    }

    #[test]
    fn parameters_of_other_types_have_no_effect() {
        for value in ["u=8", "u=-1", "u=999999999999999", "u=1.0", "u", "u=?1", "u=\"1\"", "u=(1)", "u=a"] {
            assert_eq!(of(&format!("{value}, i")), (3, true), "{value}");
        }
        for value in ["i=1", "i=a", "i=()", "u=1, u=9", "i, i=1"] {
            assert_eq!(of(value), (3, false), "{value}");
        }
    }

    #[test]
    fn values_of_another_form_have_no_effect() {
        for value in [
            "u=1,",
            "u=1,,i",
            ",u=1",
            "u=1 i",
            "U=1",
            "u =1",
            "u= 1",
            "u=1;",
            "u=1;X",
            "u=1, i=?2",
            "u=1, x=\"",
            "u=1, x=\"\\a\"",
            "u=1, x=(1",
            "u=1, x=(1\"a\")",
            "u=1, x=:a",
            "u=1, x=-",
            "u=1, x=1.",
            "u=1, x=1.2345",
            "u=1, x=1234567890123456",
            "u=1, x=!",
            "u=1, \u{e4}",
            "u=1\0",
            "1=u",
            "u=",
        ] {
            assert_eq!(of(value), (3, false), "{value}");
        }
    }

    /// A parameter that a response's `priority` field omits keeps the client's value.
    #[test]
    fn an_absent_parameter_keeps_its_value() {
        let priority = Priority { urgency: 1, incremental: true };
        for (value, expected) in [
            ("u=5", Priority { urgency: 5, ..priority }),
            ("i=?0", Priority { incremental: false, ..priority }),
            ("x", priority),
            ("u=9, i=7", priority),
            ("u=5,", priority),
        ] {
            assert_eq!(priority.updated(value.as_bytes()), expected, "{value}");
        }
    }
}
