//! Configurations of nginx and HAProxy.

use crate::product::Product;
use std::io;
use std::path::{Path, PathBuf};
use weir_syntax::haproxy::{self, Section};
use weir_syntax::nginx::{self, Directive};
use weir_syntax::{At, Files, Kind, Reader as _, SyntaxError};

/// A parsed configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config(pub(crate) Parsed);

/// The configuration by product.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Parsed {
    /// nginx's directives.
    Nginx(Vec<Directive>),
    /// HAProxy's sections.
    Haproxy(Vec<Section>),
}

/// The reason why a configuration was not read.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is not a configuration.
    #[error(transparent)]
    Invalid(#[from] SyntaxError),
    /// An included file cannot be read.
    #[error(
        "{at}: `{directive}`: the file cannot be read; advise on the configuration where it is, or copy the file beside it"
    )]
    Missing {
        /// The place of the directive.
        at: At,
        /// The directive.
        directive: String,
    },
    /// The configuration belongs to neither product.
    #[error("{}: expected a configuration of nginx (`http {{ .. }}`) or HAProxy (`frontend NAME`)", file.display())]
    Unknown {
        /// The file.
        file: PathBuf,
    },
}

impl Config {
    /// Reads a configuration with the files that it includes; detects nginx or HAProxy by the content.
    ///
    /// # Errors
    /// A file is unreadable, or not a configuration of nginx or HAProxy.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { file: file.into(), source };
        let text = Files.read(file).map_err(unreadable)?;
        match Kind::of(&text) {
            None => Err(ConfigError::Unknown { file: file.into() }),
            Some(Kind::Haproxy) => Ok(Self(Parsed::Haproxy(haproxy::parse(&text, file)?.sections))),
            Some(Kind::Nginx) => {
                let parsed = nginx::parse(&text, file, &Files)?;
                match parsed.missing.first() {
                    Some(include) => {
                        Err(ConfigError::Missing { at: include.at.clone(), directive: include.text() })
                    }
                    None => Ok(Self(Parsed::Nginx(parsed.directives))),
                }
            }
        }
    }

    /// The product it configures.
    pub fn product(&self) -> Product {
        match self.0 {
            Parsed::Nginx(_) => Product::Nginx,
            Parsed::Haproxy(_) => Product::Haproxy,
        }
    }
}

/// A place with the file's base name: `nginx.conf:12`.
pub(crate) fn place(at: &At) -> String {
    format!("{}:{}", at.file.rsplit('/').next().unwrap_or_default(), at.line)
}

#[cfg(test)]
mod tests;
