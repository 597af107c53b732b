//! The program's flags: `--name value`, each of [`NAMES`] once.

use std::collections::HashMap;

/// All flags.
const NAMES: &str = "listen-port upstream-port client-side upstream-side workers pool cert key ca tickets tls-version \
                     suite group";

/// What a side speaks.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// TLS, not cleartext.
    pub tls: bool,
    /// HTTP/2, not HTTP/1.1.
    pub http2: bool,
}

/// The flags' values.
#[derive(Clone, Debug)]
pub struct Settings(HashMap<String, String>);

impl Settings {
    /// Parses the flags; an error names the flag that is unknown, missing or without a value.
    pub fn read(mut flags: impl Iterator<Item = String>) -> Result<Self, String> {
        let names: Vec<&str> = NAMES.split(' ').collect();
        let mut values = HashMap::new();
        while let Some(flag) = flags.next() {
            let name = flag.strip_prefix("--").filter(|name| names.contains(name));
            let name =
                name.ok_or_else(|| format!("{flag}: unknown flag; expected --{}", names.join(", --")))?;
            values.insert(name.to_owned(), flags.next().ok_or_else(|| format!("{flag}: missing value"))?);
        }
        match names.iter().find(|name| !values.contains_key(**name)) {
            Some(missing) => Err(format!("--{missing}: missing")),
            None => Ok(Self(values)),
        }
    }

    /// The value of a flag.
    pub fn text(&self, name: &str) -> &str {
        &self.0[name]
    }

    /// The numeric value of a flag; an error names the flag and the invalid value.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, String> {
        self.text(name)
            .parse()
            .map_err(|_| format!("--{name}: invalid value `{}`: expected a number", self.text(name)))
    }

    /// What this side speaks; an error names a flag that is no side.
    pub fn side(&self, side: &str) -> Result<Side, String> {
        match self.text(side) {
            "h1" => Ok(Side { tls: true, http2: false }),
            "h1c" => Ok(Side { tls: false, http2: false }),
            "h2" => Ok(Side { tls: true, http2: true }),
            "h2c" => Ok(Side { tls: false, http2: true }),
            other => Err(format!("--{side}: invalid value `{other}`: expected h1, h1c, h2 or h2c")),
        }
    }
}
