//! Listeners that redirect all requests to https: a listener setting in place of a route.

use crate::model::{Action, Conditions, Document, Handler, Route, Table, Value};

/// If the only route of a cleartext listener redirects all requests to `https`, replaces it with the listener's
/// `redirect` setting. Does nothing without a listener with TLS.
pub(crate) fn listeners(document: &mut Document) {
    let with_tls: Vec<_> =
        document.listeners.iter().filter(|listener| listener.is_http() && listener.tls.is_some()).collect();
    if with_tls.is_empty() {
        return;
    }
    let is_standard = with_tls.iter().flat_map(|listener| &listener.bind).any(|bind| bind.ends_with(":443"));
    let cleartext =
        document.listeners.iter_mut().filter(|listener| listener.tls.is_none() && listener.is_http());
    for listener in cleartext {
        let comes_here =
            |route: &&Route| route.when.listener.is_empty() || route.when.listener.contains(&listener.name);
        let mut routes = document.routes.iter().filter(comes_here);
        let (Some(route), None) = (routes.next(), routes.next()) else { continue };
        let Some(status) = status_of(route) else { continue };
        let mut redirect = Table::default();
        redirect.text("to", "https");
        if !is_standard {
            redirect.number("port", 443);
        }
        redirect.number("status", status);
        listener.settings.set("redirect", Value::Table(redirect));
        listener.notes.push(format!("{}: all requests", route.from));
        for route in &mut document.routes {
            route.when.listener.retain(|name| *name != listener.name);
        }
        // Drop redirects that no longer name a listener: otherwise they would apply to all listeners, including those
        // with TLS.
        document.routes.retain(|route| !(route.when.listener.is_empty() && status_of(route).is_some()));
    }
}

/// The status of a route that redirects all requests of its listeners and does nothing else.
fn status_of(route: &Route) -> Option<u64> {
    let Action::Redirect { to, status } = &route.then.action else { return None };
    let then =
        Handler { action: route.then.action.clone(), notes: route.then.notes.clone(), ..Handler::default() };
    let when = Conditions { listener: route.when.listener.clone(), ..Conditions::default() };
    let is_all = route.host.is_empty() && route.path.is_empty() && route.when == when && route.then == then;
    let is_same = matches!(to.as_str(), "https://{host}{target}" | "https://{authority}{target}");
    (is_all && is_same).then_some(*status)
}
