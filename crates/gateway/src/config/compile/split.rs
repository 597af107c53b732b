//! Routes that divide their requests among several services.

use super::beside::without_effect;
use super::routes::{edit, edits, trailers};
use super::services::ServicePlaces;
use super::sticky::check_cookie;
use super::{Fault, Findings, size};
use crate::config::document::{self, Edits};
use crate::config::snapshot::{Action, Route};
use crate::heads::set_cookie;
use crate::route::{Share, Split};
use std::collections::BTreeSet;

/// Returns the action of a route without the routes of its shares, which [`add_routes`] adds. Reports invalid shares to
/// `findings`.
pub(super) fn action(
    services: &ServicePlaces<'_>,
    written: &[document::Share],
    sticky: Option<&str>,
    key: &str,
    findings: &mut Findings,
) -> Option<Action> {
    if let Some(name) = sticky {
        findings.keep(check_cookie(name, format!("{key}.sticky")));
    }
    let key = format!("{key}.service");
    let mut names = BTreeSet::new();
    let mut shares = Vec::new();
    for (at, share) in written.iter().enumerate() {
        let key = format!("{key}.{at}");
        findings.keep(size(format!("{key}.weight"), share.weight.into(), document::Share::WEIGHT));
        match (&share.name, share.status) {
            (Some(name), None) => {
                findings.keep(services.for_requests(name, &format!("{key}.name")));
                if !names.insert(name) {
                    let why = format!("duplicate service `{name}`: expected one share of each");
                    findings.fault(Fault::new(format!("{key}.name"), why));
                }
            }
            (None, Some(status)) => {
                findings.keep(size(format!("{key}.status"), status.into(), document::Share::STATUSES));
                let set = [("request_headers", share.request_headers != Edits::default())];
                without_effect(&key, &set, "beside `status`: it is for requests to a service", findings);
            }
            (None, None) => findings.fault(Fault::new(&*key, "expected one of `name`, `status`")),
            (Some(_), Some(_)) => {
                findings.fault(Fault::new(&*key, "more than one action: expected one of `name`, `status`"));
            }
        }
        let name = share.name.as_deref().unwrap_or_default();
        let name = name.as_bytes().into();
        shares.push(Share { name, weight: share.weight, route: 0, first: 0, first_with_tls: 0 });
    }
    if shares.iter().all(|share| share.weight == 0) {
        findings.fault(Fault::new(&*key, "no share has a weight above 0, so no request has a service"));
        return None;
    }
    Some(Action::Split(Split { cookie: sticky.map(|name| name.as_bytes().into()), shares: shares.into() }))
}

/// Appends the routes of the shares to `routes`, without adding them to the index by host and path.
pub(super) fn add_routes(
    services: &ServicePlaces<'_>,
    written: &[document::Route],
    routes: &mut Vec<Route>,
    findings: &mut Findings,
) {
    for (index, written) in written.iter().enumerate() {
        let Some(document::Target::Split(shares)) = &written.service else { continue };
        let key = format!("route.{index}");
        for (at, share) in shares.iter().enumerate() {
            let own =
                of_share(&routes[index], written, services, share, &format!("{key}.service.{at}"), findings);
            let Some(own) = own else { continue };
            let with_cookie = match (&written.sticky, &share.name) {
                (Some(cookie), Some(name)) => {
                    findings.keep(with_cookie(&own, cookie, name, &format!("{key}.sticky")))
                }
                _ => None,
            };
            let place = routes.len();
            let [first, first_with_tls] =
                if with_cookie.is_some() { [place + 1, place + 2] } else { [place; 2] };
            routes.push(own);
            routes.extend(with_cookie.into_iter().flatten());
            if let Action::Split(split) = &mut routes[index].action {
                let share = &mut split.shares[at];
                (share.route, share.first, share.first_with_tls) = (place, first, first_with_tls);
            }
        }
    }
}

/// The route of a share: a copy of `whole` with the share's action and edits.
fn of_share(
    whole: &Route,
    written: &document::Route,
    services: &ServicePlaces<'_>,
    share: &document::Share,
    key: &str,
    findings: &mut Findings,
) -> Option<Route> {
    let mut route = whole.clone();
    // The whole route limits the rate, before requests are divided among the shares.
    route.rate = None;
    route.action = match (&share.name, share.status) {
        (Some(name), _) => Action::Pass { service: services.of(name, key).ok()? },
        (None, status) => Action::Respond { status: status?, content_type: "".into(), body: None },
    };
    let request = edits(&share.request_headers, &format!("{key}.request_headers"), true, findings);
    findings.keep(trailers(&written.request_trailers, Some(&request), key));
    let response = edits(&share.response_headers, &format!("{key}.response_headers"), false, findings);
    route.request.extend(request);
    route.response.extend(response);
    Some(route)
}

/// Returns two copies of `route` whose responses set the cookie of its share: one for clients in cleartext, one for
/// those that use TLS. Fails if the cookie's name or value is not valid in a cookie.
fn with_cookie(route: &Route, cookie: &str, name: &str, key: &str) -> Result<[Route; 2], Fault> {
    let setting = |secure: bool| -> Result<Route, Fault> {
        let value = set_cookie::of_share(cookie, name, secure);
        let mut route = route.clone();
        route.response.add.push(edit("add", "Set-Cookie", &value, key, false)?);
        Ok(route)
    };
    Ok([setting(false)?, setting(true)?])
}
