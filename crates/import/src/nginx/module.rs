//! The nginx modules that forward by HTTP. The directives for `grpc_pass` are those for `proxy_pass`, with another
//! prefix.

use std::borrow::Cow;
use weir_syntax::nginx::{Directive, Scope};

/// A module that forwards requests to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Module {
    Proxy,
    Grpc,
}

impl Module {
    /// The module that forwards the requests of the innermost block, and the directive that selects it.
    pub(super) fn here<'a>(scope: &Scope<'a>) -> Option<(Self, &'a Directive)> {
        let of = |module: Self| Some((module, scope.here(&module.name("proxy_pass"))?));
        of(Self::Proxy).or_else(|| of(Self::Grpc))
    }

    /// The name of a directive in this module, from its name in the proxy module.
    pub(super) fn name(self, of_proxy: &str) -> Cow<'_, str> {
        match (self, of_proxy.strip_prefix("proxy_")) {
            (Self::Grpc, Some(rest)) => format!("grpc_{rest}").into(),
            _ => of_proxy.into(),
        }
    }

    /// As [`Scope::find`], for a directive's name in the proxy module.
    pub(super) fn find<'a>(self, scope: &Scope<'a>, of_proxy: &str) -> Option<&'a Directive> {
        scope.find(&self.name(of_proxy))
    }

    /// As [`Scope::arg`], for a directive's name in the proxy module.
    pub(super) fn arg<'a>(self, scope: &Scope<'a>, of_proxy: &str) -> &'a str {
        self.find(scope, of_proxy).map_or("", Directive::arg)
    }

    /// As [`Scope::all`], for a directive's name in the proxy module.
    pub(super) fn all<'a>(self, scope: &Scope<'a>, of_proxy: &str) -> Vec<&'a Directive> {
        scope.all(&self.name(of_proxy))
    }
}

/// Maps a directive of the gRPC module to its name in the proxy module; returns other names unchanged.
pub(super) fn in_proxy(name: &str) -> Cow<'_, str> {
    name.strip_prefix("grpc_").map_or(Cow::Borrowed(name), |rest| format!("proxy_{rest}").into())
}
