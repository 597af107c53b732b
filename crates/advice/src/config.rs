//! Configurations of nginx and HAProxy.

pub(crate) mod haproxy;
pub(crate) mod nginx;

use crate::product::Product;
use haproxy::Section;
use nginx::Directive;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A parsed configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config(pub(crate) Parsed);

/// By its product.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Parsed {
    /// nginx's directives.
    Nginx(Vec<Directive>),
    /// HAProxy's sections.
    Haproxy(Vec<Section>),
}

/// Why a configuration was not read.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not a configuration.
    #[error("{}:{line}: {detail}", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, and what was expected.
        detail: String,
    },
    /// It is of neither product.
    #[error("{}: expected a configuration of nginx (`http {{ .. }}`) or HAProxy (`frontend NAME`)", file.display())]
    Unknown {
        /// The file.
        file: PathBuf,
    },
}

impl Config {
    /// Reads a configuration with the files that it includes; its content says whether it is nginx's or HAProxy's.
    ///
    /// # Errors
    /// A file is unreadable, or not such a configuration.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let text = read(file)?;
        if text.lines().any(haproxy::starts_section) {
            return Ok(Self(Parsed::Haproxy(haproxy::parse(file)?)));
        }
        if !text.contains([';', '{']) {
            return Err(ConfigError::Unknown { file: file.into() });
        }
        Ok(Self(Parsed::Nginx(nginx::parse(file)?)))
    }

    /// The product it configures.
    pub fn product(&self) -> Product {
        match self.0 {
            Parsed::Nginx(_) => Product::Nginx,
            Parsed::Haproxy(_) => Product::Haproxy,
        }
    }
}

fn read(file: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(file).map_err(|source| ConfigError::Unreadable { file: file.into(), source })
}

#[cfg(test)]
mod tests;
