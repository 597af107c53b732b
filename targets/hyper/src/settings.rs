//! The program's flags: `--name value`, each of [`NAMES`] once.

use std::collections::HashMap;

/// Every flag there is.
const NAMES: [&str; 13] = [
    "listen-port",
    "upstream-port",
    "client-side",
    "upstream-side",
    "workers",
    "pool",
    "cert",
    "key",
    "ca",
    "tickets",
    "tls-version",
    "suite",
    "group",
];

/// The flags' values.
#[derive(Clone, Debug)]
pub struct Settings(HashMap<String, String>);

impl Settings {
    /// Reads the flags.
    ///
    /// # Errors
    ///
    /// Names the flag that is unknown, missing or without a value.
    pub fn read(mut flags: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut values = HashMap::new();
        while let Some(flag) = flags.next() {
            let name = flag.strip_prefix("--").filter(|name| NAMES.contains(name));
            let name =
                name.ok_or_else(|| format!("{flag}: not a flag; there are --{}", NAMES.join(", --")))?;
            values
                .insert(name.to_owned(), flags.next().ok_or_else(|| format!("{flag}: a value is missing"))?);
        }
        match NAMES.iter().find(|name| !values.contains_key(**name)) {
            Some(missing) => Err(format!("--{missing} is missing")),
            None => Ok(Self(values)),
        }
    }

    /// The value of a flag.
    pub fn text(&self, name: &str) -> &str {
        &self.0[name]
    }

    /// The value of a flag that is a number.
    ///
    /// # Errors
    ///
    /// Names the flag whose value is no number of that type.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, String> {
        self.text(name).parse().map_err(|_| format!("--{name} {}: not such a number", self.text(name)))
    }

    /// Whether that side speaks TLS.
    ///
    /// # Errors
    ///
    /// Names the flag that is neither `h1` nor `h1c`.
    pub fn tls(&self, side: &str) -> Result<bool, String> {
        match self.text(side) {
            "h1" => Ok(true),
            "h1c" => Ok(false),
            other => Err(format!("--{side} {other}: h1 or h1c")),
        }
    }
}
