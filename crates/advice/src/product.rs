//! The products whose configuration terms a finding can use.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// `weir serve`.
    Weir,
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
    /// Node.js.
    Node,
    /// The JVM.
    Java,
    /// Go.
    Go,
    /// Any other product, with generic terms.
    #[default]
    Generic,
}

impl Product {
    /// All products.
    pub const ALL: [Self; 7] =
        [Self::Weir, Self::Nginx, Self::Haproxy, Self::Node, Self::Java, Self::Go, Self::Generic];

    /// The product with this program name, such as that of `/proc/PID/exe`.
    pub fn of_program(name: &str) -> Self {
        match name {
            "weir" => Self::Weir,
            "nginx" => Self::Nginx,
            "haproxy" => Self::Haproxy,
            "node" | "nodejs" => Self::Node,
            "java" => Self::Java,
            _ => Self::Generic,
        }
    }

    /// The product with this name in the `Server` field, such as `nginx/1.28.0`.
    pub fn of_server(server: &str) -> Self {
        Self::of_program(server.split(['/', ' ']).next().unwrap_or_default())
    }

    /// The name in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weir => "weir",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Node => "node",
            Self::Java => "java",
            Self::Go => "go",
            Self::Generic => "generic",
        }
    }

    /// The title in text; `None` for the generic product.
    pub(crate) fn title(self) -> Option<&'static str> {
        match self {
            Self::Weir => Some("Weir"),
            Self::Nginx => Some("nginx"),
            Self::Haproxy => Some("HAProxy"),
            Self::Node => Some("Node.js"),
            Self::Java => Some("Java"),
            Self::Go => Some("Go"),
            Self::Generic => None,
        }
    }
}

impl FromStr for Product {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name);
        Self::ALL
            .into_iter()
            .find(|product| product.name() == name)
            .ok_or_else(|| format!("expected one of {}", names.join(", ")))
    }
}
