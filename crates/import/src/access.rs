//! Rules that admit or reject clients, translated to the `allow` and `deny` of a listener.

use crate::model::Table;
use crate::values::narrower;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The clients to which a rule applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Clients {
    All,
    In(Vec<String>),
    Except(Vec<String>),
}

/// A rule; for each client, the first rule that applies decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub clients: Clients,
    pub admits: bool,
}

/// The admitted clients: those in `allow`, or all, except those in `deny`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Admitted {
    /// `None`: all.
    allow: Option<Vec<String>>,
    deny: Vec<String>,
    /// Whether the lists admit fewer clients than the rules do, since lists cannot express these rules.
    pub is_narrowed: bool,
}

impl Admitted {
    /// The clients that a list of rules admits. Clients to which no rule applies are admitted.
    pub(crate) fn of(rules: &[Rule]) -> Self {
        rules.iter().rev().fold(Self::default(), |rest, rule| match (&rule.clients, rule.admits) {
            (Clients::All, true) => Self::default(),
            (Clients::All, false) => Self { allow: Some(Vec::new()), ..Self::default() },
            (Clients::In(networks), false) => rest.without(networks),
            (Clients::Except(networks), false) => rest.within(networks),
            (Clients::In(networks), true) => rest.with(networks),
            (Clients::Except(networks), true) => rest.with_all_but(networks),
        })
    }

    /// The clients that both this and `other` admit.
    pub(crate) fn and(self, other: &Self) -> Self {
        let both = match &other.allow {
            Some(networks) => self.within(networks),
            None => self,
        };
        let is_narrowed = both.is_narrowed || other.is_narrowed;
        let deny = [both.deny, other.deny.clone()].concat();
        Self { is_narrowed, deny, ..both }
    }

    fn admits_none(&self) -> bool {
        self.allow.as_ref().is_some_and(Vec::is_empty)
    }

    fn without(mut self, networks: &[String]) -> Self {
        self.deny.splice(0..0, networks.iter().cloned());
        self
    }

    fn within(mut self, networks: &[String]) -> Self {
        self.allow = Some(match self.allow {
            None => networks.to_vec(),
            Some(known) => common(&known, networks),
        });
        self
    }

    fn with(mut self, networks: &[String]) -> Self {
        if self.admits_none() {
            self.deny.clear();
        }
        if let Some(allow) = &mut self.allow {
            allow.splice(0..0, networks.iter().cloned());
        }
        // `deny` has precedence, so a denied network must not overlap with an admitted one.
        let is_inside = |denied: &String| {
            networks.iter().any(|network| narrower(network, denied).as_ref() == Some(denied))
        };
        self.deny.retain(|denied| !is_inside(denied));
        let overlaps = |denied: &String| networks.iter().any(|network| narrower(network, denied).is_some());
        self.is_narrowed |= self.deny.iter().any(overlaps);
        self
    }

    fn with_all_but(mut self, networks: &[String]) -> Self {
        if self.admits_none() {
            return Self { allow: None, deny: networks.to_vec(), ..self };
        }
        match self.allow {
            None => self.deny = common(&self.deny, networks),
            Some(_) => self.is_narrowed = true,
        }
        self
    }

    /// Writes the lists of a listener with these addresses. With `is_announced`, a PROXY protocol header names the
    /// client. Returns false if the listener would admit no client.
    #[must_use]
    pub(crate) fn write(&self, bind: &[String], is_announced: bool, settings: &mut Table) -> bool {
        // The gateway rejects networks in which the listener cannot have clients.
        let may_come = |network: &String| is_announced || bind.iter().any(|bind| may_connect(network, bind));
        let of_listener = |networks: &[String]| -> Vec<String> {
            let mut found = Vec::new();
            for network in networks.iter().flat_map(|network| without_ipv4(network)) {
                if may_come(&network) && !found.contains(&network) {
                    found.push(network);
                }
            }
            found
        };
        if let Some(allow) = &self.allow {
            let allow = of_listener(allow);
            if allow.is_empty() {
                return false;
            }
            settings.texts("allow", allow);
        }
        let deny = of_listener(&self.deny);
        if !deny.is_empty() {
            settings.texts("deny", deny);
        }
        true
    }
}

/// Whether clients of the network can connect to the address.
fn may_connect(network: &str, bind: &str) -> bool {
    let is_unix = bind.starts_with("unix:");
    if network == "unix" || is_unix {
        return (network == "unix") == is_unix;
    }
    let host = bind.rsplit_once(':').map_or(bind, |(host, _)| host);
    match (network.contains(':'), host.starts_with('['), host.parse::<Ipv4Addr>()) {
        (is_ipv6, true, _) => is_ipv6,
        (is_ipv6, false, Ok(_)) => !is_ipv6,
        // A name may resolve to IPv4 and IPv6 addresses.
        (_, false, Err(_)) => true,
    }
}

/// The networks of the load balancers that start connections to these addresses with a PROXY protocol header: those in
/// `trusted` that can connect, or all networks if none of these can. Also returns whether the result is all networks.
pub(crate) fn announced_by(trusted: &[String], bind: &[String]) -> (Vec<String>, bool) {
    let own = of_kind(trusted, bind);
    if !own.is_empty() {
        return (own, false);
    }
    let all = ["0.0.0.0/0", "::/0", "unix"].map(str::to_owned);
    (of_kind(&all, bind), true)
}

/// The networks whose clients can connect: drops IP networks if all addresses are Unix sockets, and `unix` if no
/// address is one.
pub(crate) fn of_kind(networks: &[String], bind: &[String]) -> Vec<String> {
    let is_unix = |bind: &String| bind.starts_with("unix:");
    let may_be = |network: &&String| bind.iter().any(|bind| is_unix(bind) == (*network == "unix"));
    networks.iter().filter(may_be).cloned().collect()
}

/// Replaces a network that includes IPv4 addresses with the networks that IPv6 clients use. Weir maps IPv4 into IPv6,
/// so a short prefix such as `::/0` includes all of IPv4; in nginx and HAProxy it does not.
fn without_ipv4(network: &str) -> Vec<String> {
    let covers_ipv4 = network.split_once('/').is_some_and(|(address, length)| {
        let mapped = Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().to_bits();
        let (Ok(address), Ok(length)) = (address.parse::<Ipv6Addr>(), length.parse::<u32>()) else {
            return false;
        };
        length <= 96 && (address.to_bits() ^ mapped).leading_zeros() >= length
    });
    let clients = ["2000::/3", "fc00::/7", "fe80::/10", "::1"];
    match covers_ipv4 {
        false => vec![network.to_owned()],
        true => clients.iter().filter_map(|own| narrower(network, own)).collect(),
    }
}

/// The networks that both lists contain.
pub(crate) fn common(a: &[String], b: &[String]) -> Vec<String> {
    let mut networks: Vec<_> = a.iter().flat_map(|a| b.iter().filter_map(|b| narrower(a, b))).collect();
    networks.sort();
    networks.dedup();
    networks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;

    /// Parses rules such as `+10.0.0.0/8`, `-!10.0.0.0/8` (deny all but these) and `-` (deny all).
    fn rules(text: &str) -> Vec<Rule> {
        let rule = |word: &str| {
            let (sign, rest) = word.split_at(1);
            let networks = |text: &str| text.split(',').map(str::to_owned).collect();
            let clients = match (rest, rest.strip_prefix('!')) {
                ("", _) => Clients::All,
                (_, Some(text)) => Clients::Except(networks(text)),
                (text, None) => Clients::In(networks(text)),
            };
            Rule { clients, admits: sign == "+" }
        };
        text.split_whitespace().map(rule).collect()
    }

    fn written(admitted: &Admitted, bind: &[&str], is_announced: bool) -> String {
        let mut settings = Table::default();
        let bind: Vec<_> = bind.iter().map(|bind| (*bind).to_owned()).collect();
        if !admitted.write(&bind, is_announced, &mut settings) {
            return "none".to_owned();
        }
        let list = |key: &str| match settings.get(key) {
            Some(Value::Text(one)) => one.clone(),
            Some(Value::List(many)) => {
                let texts = many.iter().filter_map(|value| match value {
                    Value::Text(text) => Some(text.as_str()),
                    _ => None,
                });
                texts.collect::<Vec<_>>().join(",")
            }
            _ => "-".to_owned(),
        };
        let narrowed = if admitted.is_narrowed { " narrowed" } else { "" };
        format!("{} {}{narrowed}", list("allow"), list("deny"))
    }

    #[test]
    fn rules_in_turn_become_two_lists() {
        for (text, lists) in [
            ("", "- -"),
            ("+10.0.0.0/8", "- -"),
            ("-", "none"),
            ("+ -", "- -"),
            ("- +", "none"),
            ("-10.0.0.1", "- 10.0.0.1"),
            ("+10.0.0.0/8 -", "10.0.0.0/8 -"),
            ("-10.0.0.1 +10.0.0.0/8 -", "10.0.0.0/8 10.0.0.1"),
            ("+10.0.0.0/8 -10.0.0.1 -", "10.0.0.0/8 -"),
            ("+10.0.0.1 +192.0.2.0/24 -", "10.0.0.1,192.0.2.0/24 -"),
            // The exception inside a denied network is lost, so more clients are denied.
            ("+10.0.0.1 -10.0.0.0/8", "- 10.0.0.0/8 narrowed"),
            ("+10.0.0.1 -10.0.0.0/8 +10.0.0.0/7 -", "10.0.0.1,10.0.0.0/7 10.0.0.0/8 narrowed"),
            ("-!10.0.0.0/8", "10.0.0.0/8 -"),
            ("-!10.0.0.0/8 -!10.1.0.0/16", "10.1.0.0/16 -"),
            ("-!10.0.0.0/8 -!11.0.0.0/8", "none"),
            ("+!10.0.0.0/8 -", "- 10.0.0.0/8"),
            ("+!10.0.0.0/8 -10.1.0.0/16,11.0.0.0/8", "- 10.1.0.0/16"),
            ("+!10.0.0.0/8 -!11.0.0.0/8", "11.0.0.0/8 - narrowed"),
        ] {
            assert_eq!(written(&Admitted::of(&rules(text)), &["0.0.0.0:1"], false), lists, "{text}");
        }
    }

    #[test]
    fn both_of_two_lists_of_rules_decide() {
        for (a, b, lists) in [
            ("", "", "- -"),
            ("-10.0.0.1", "-10.0.0.2", "- 10.0.0.1,10.0.0.2"),
            ("+10.0.0.0/8 -", "+10.1.0.0/16 -", "10.1.0.0/16 -"),
            ("+10.0.0.0/8 -", "-10.0.0.1", "10.0.0.0/8 10.0.0.1"),
            ("-", "", "none"),
            ("", "-", "none"),
        ] {
            let both = Admitted::of(&rules(a)).and(&Admitted::of(&rules(b)));
            assert_eq!(written(&both, &["0.0.0.0:1"], false), lists, "{a}; {b}");
        }
    }

    #[test]
    fn lists_have_the_networks_of_the_listener() {
        for (text, bind, is_announced, lists) in [
            ("+unix -", &["0.0.0.0:1"][..], false, "none"),
            ("+unix -", &["unix:/a"], false, "unix -"),
            ("+10.0.0.0/8 -", &["unix:/a"], false, "none"),
            ("+10.0.0.0/8 -", &["unix:/a"], true, "10.0.0.0/8 -"),
            ("+10.0.0.0/8 +2001:db8::/32 -", &["0.0.0.0:1"], false, "10.0.0.0/8 -"),
            ("+10.0.0.0/8 +2001:db8::/32 -", &["[::]:1", "0.0.0.0:1"], false, "10.0.0.0/8,2001:db8::/32 -"),
            ("+10.0.0.0/8 -", &["localhost:1"], false, "10.0.0.0/8 -"),
            ("+::/0 -", &["0.0.0.0:1"], false, "none"),
            ("+::/0 -", &["[::]:1", "0.0.0.0:1"], false, "2000::/3,fc00::/7,fe80::/10,::1 -"),
            ("-::/1", &["[::]:1"], false, "- 2000::/3,::1"),
            ("-10.0.0.0/8", &["unix:/a"], false, "- -"),
        ] {
            assert_eq!(written(&Admitted::of(&rules(text)), bind, is_announced), lists, "{text} {bind:?}");
        }
    }
}
