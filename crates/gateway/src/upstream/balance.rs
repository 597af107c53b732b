//! Load balancing: the choice of a request's server.

use super::{PickContext, Server, Service, mix};
use crate::config::document::Balance;
use crate::keys::{OfServer, ServerId, Store};
use std::time::Instant;

/// Groups of candidates, in order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    Regular,
    Backup,
    /// All servers with [`Server::is_open`]: even an ejected one may respond.
    Any,
}

type Servers = Store<OfServer, Server>;

impl Service {
    /// The server for a request; `None` if every server is closed to requests, at its connection limit, or excluded by
    /// `context`. `context` does not exclude a service's only server.
    #[inline]
    pub(crate) fn choose(
        &mut self,
        servers: &mut Servers,
        now: Instant,
        context: PickContext,
    ) -> Option<ServerId> {
        match self.servers[..] {
            [only] => servers.get(only).filter(|server| server.is_open() && server.has_room()).map(|_| only),
            _ => self.choose_of_many(servers, now, context),
        }
    }

    /// Whether at least one server of the service can take another request now.
    pub(crate) fn has_room(&self, servers: &Servers) -> bool {
        let mut all = self.servers.iter().filter_map(|id| servers.get(*id));
        all.any(|server| server.is_open() && server.has_room())
    }

    fn choose_of_many(
        &mut self,
        servers: &mut Servers,
        now: Instant,
        context: PickContext,
    ) -> Option<ServerId> {
        if let Some(found) = context.sticky.and_then(|value| self.bound(servers, now, value))
            && Some(found) != context.avoid
        {
            return Some(found);
        }
        let asks_again = context.asked != [None; 2];
        let tiers = [Tier::Regular, Tier::Backup, Tier::Any];
        for tier in if asks_again { &tiers[..2] } else { &tiers[..] } {
            self.round.clear();
            for id in &self.servers {
                let Some(server) = servers.get_mut(*id) else { continue };
                let fits = match tier {
                    Tier::Regular => !server.config.backup && server.is_available(now),
                    Tier::Backup => server.config.backup && server.is_available(now),
                    Tier::Any => server.is_open(),
                };
                if fits
                    && server.has_room()
                    && Some(*id) != context.avoid
                    && !context.asked.contains(&Some(*id))
                {
                    self.round.push((*id, server.share(now, self.config.eject.slow_return)));
                }
            }
            if !self.round.is_empty() {
                return self.choose_in_round(servers, context);
            }
        }
        if asks_again {
            return None;
        }
        // The server to avoid may be the only one left.
        let is_left =
            |id: &ServerId| servers.get(*id).is_some_and(|server| server.is_open() && server.has_room());
        context.avoid.filter(is_left)
    }

    /// The server that a sticky cookie names, if it can take requests. A backup qualifies only while no regular server
    /// is available.
    fn bound(&self, servers: &mut Servers, now: Instant, cookie: u64) -> Option<ServerId> {
        let bound = self.servers.get(self.config.sticky.as_ref()?.server(cookie)?).copied()?;
        let server = servers.get_mut(bound)?;
        let is_backup = server.config.backup;
        if !server.has_room() || !server.is_available_to_bound(now) {
            return None;
        }
        let mut is_other = |id: &ServerId| {
            let server = servers.get_mut(*id);
            server
                .is_some_and(|server| !server.config.backup && server.has_room() && server.is_available(now))
        };
        (!is_backup || !self.servers.iter().any(&mut is_other)).then_some(bound)
    }

    /// The sticky cookie's value for a server; `None` if the service sets no cookie.
    pub(crate) fn cookie_of(&self, server: ServerId) -> Option<u64> {
        let place = self.servers.iter().position(|known| *known == server)?;
        self.config.sticky.as_ref()?.value(place)
    }

    fn choose_in_round(&mut self, servers: &mut Servers, context: PickContext) -> Option<ServerId> {
        match self.config.balance {
            Balance::RoundRobin => self.in_turn(servers),
            Balance::LeastInFlight => self.least(servers),
            Balance::TwoChoices => {
                let two = [self.draw(), self.draw()];
                two.into_iter()
                    .flatten()
                    .min_by_key(|(id, share)| load(servers, *id, *share))
                    .map(|(id, _)| id)
            }
            Balance::Hash => self.by_hash(servers, context.key),
        }
    }

    /// Smooth weighted round robin. The credit (`turn`) of each candidate grows by its share; the candidate with the
    /// most credit is chosen, and its credit decreases by the sum of all shares. This spreads out the turns of a heavy
    /// server.
    fn in_turn(&self, servers: &mut Servers) -> Option<ServerId> {
        let (mut total, mut best) = (0, None);
        for (id, share) in &self.round {
            let Some(server) = servers.get_mut(*id) else { continue };
            server.turn += *share as i64;
            total += *share as i64;
            if best.is_none_or(|(_, turn)| server.turn > turn) {
                best = Some((*id, server.turn));
            }
        }
        let (best, _) = best?;
        servers.get_mut(best)?.turn -= total;
        Some(best)
    }

    /// The candidate with the lowest load; candidates of equal load take turns.
    fn least(&mut self, servers: &mut Servers) -> Option<ServerId> {
        let least = self.round.iter().map(|(id, share)| load(servers, *id, *share)).min()?;
        self.round.retain(|(id, share)| load(servers, *id, *share) == least);
        self.in_turn(servers)
    }

    fn draw(&mut self) -> Option<(ServerId, u64)> {
        let total: u64 = self.round.iter().map(|(_, share)| share).sum();
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut left = mix(self.random) % total.max(1);
        self.round.iter().copied().find(|(_, share)| match left.checked_sub(*share) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        })
    }

    /// Rendezvous hashing: each candidate's score is computed from the key, the server's ID and its share, and the
    /// highest score wins. The removal of a server thus moves only its own keys.
    fn by_hash(&self, servers: &Servers, key: u64) -> Option<ServerId> {
        let score = |(id, share): &(ServerId, u64)| {
            let server = servers.get(*id).map_or(0, |server| server.config.id);
            // The number is in (0, 1), with the 53 bits of a double's precision.
            let drawn = ((mix(key ^ server) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            *share as f64 / -drawn.ln()
        };
        let best = self.round.iter().max_by(|a, b| score(a).total_cmp(&score(b)));
        best.map(|(id, _)| *id)
    }
}

/// The server's load if it gets the request: requests in flight per unit of its share, in millionths.
fn load(servers: &Servers, id: ServerId, share: u64) -> u64 {
    let in_flight = servers.get(id).map_or(0, |server| server.in_flight.count()) as u64;
    (in_flight + 1) * 1_000_000 / share.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::config::document::{self, Config};
    use crate::upstream::{Counted, InFlight};
    use std::collections::BTreeMap;

    /// A service with servers of these weights; a negative weight marks a backup.
    fn service(balance: Balance, weights: &[i32]) -> (Service, Servers) {
        let entry = |(at, weight): (usize, &i32)| document::Server {
            weight: weight.unsigned_abs(),
            backup: *weight < 0,
            ..document::Server::new(format!("http://192.0.2.{at}").parse().unwrap())
        };
        let servers = weights.iter().enumerate().map(entry).collect();
        let sticky = Some("SRV".to_owned());
        let written = document::Service { balance, sticky, ..document::Service::new(servers) };
        let config = Config {
            listeners: [("web".to_owned(), toml::from_str("bind = '127.0.0.1:0'").unwrap())].into(),
            services: [("app".to_owned(), written)].into(),
            ..Config::default()
        };
        let snapshot = config::compile(&config, &mut config::Findings::default()).unwrap();
        let mut store = Store::new();
        let (service, _) = Service::new(&snapshot.services[0], &[], None, &mut store);
        (service, store)
    }

    fn chosen(service: &mut Service, servers: &mut Servers, context: PickContext) -> usize {
        let id = service.choose(servers, Instant::now(), context).unwrap();
        service.servers.iter().position(|known| *known == id).unwrap()
    }

    fn shares(
        service: &mut Service,
        servers: &mut Servers,
        wishes: impl Iterator<Item = PickContext>,
    ) -> Vec<usize> {
        let mut counts = BTreeMap::new();
        for context in wishes {
            *counts.entry(chosen(service, servers, context)).or_insert(0) += 1;
        }
        (0..service.servers.len()).map(|at| counts.get(&at).copied().unwrap_or_default()).collect()
    }

    fn any(count: usize) -> impl Iterator<Item = PickContext> {
        std::iter::repeat_n(PickContext::default(), count)
    }

    #[test]
    fn turns_are_spread_by_weight() {
        let (mut service, mut servers) = service(Balance::RoundRobin, &[5, 1, 1]);
        let order: Vec<_> =
            (0..7).map(|_| chosen(&mut service, &mut servers, PickContext::default())).collect();
        assert_eq!(order, [0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(shares(&mut service, &mut servers, any(700)), [500, 100, 100]);
    }

    #[test]
    fn a_server_that_has_responded_is_not_asked_again_nor_one_that_is_ejected() {
        let (mut service, mut servers) = service(Balance::RoundRobin, &[1, 1, 1, -1]);
        let [one, two, three, backup] = service.servers[..] else { panic!("four servers") };
        let (now, eject) = (Instant::now(), document::Eject { failures: 1, ..document::Eject::default() });
        let mut next = |servers: &mut Servers, avoid, asked| {
            service.choose(servers, now, PickContext { avoid, asked, ..PickContext::default() })
        };
        for _ in 0..3 {
            assert_eq!(next(&mut servers, None, [Some(one), Some(two)]), Some(three));
            assert_eq!(next(&mut servers, Some(two), [Some(one), None]), Some(three));
        }
        servers.get_mut(three).unwrap().failed(now, &eject, Counted::No);
        assert_eq!(next(&mut servers, None, [Some(one), Some(two)]), Some(backup));
        servers.get_mut(backup).unwrap().failed(now, &eject, Counted::No);
        assert_eq!(next(&mut servers, None, [Some(one), Some(two)]), None);
        assert_eq!(next(&mut servers, Some(two), [Some(one), None]), None);
    }

    #[test]
    fn the_least_busy_server_is_taken() {
        let (mut service, mut servers) = service(Balance::LeastInFlight, &[1, 1, 2]);
        for (at, in_flight) in [(0, 3), (1, 2), (2, 5)] {
            servers.get_mut(service.servers[at]).unwrap().in_flight = InFlight::of(in_flight);
        }
        assert_eq!(
            shares(&mut service, &mut servers, any(9)),
            [0, 3, 6],
            "3 for 1, and 6 for 2, are the same"
        );
        servers.get_mut(service.servers[2]).unwrap().in_flight = InFlight::of(4);
        assert_eq!(shares(&mut service, &mut servers, any(10)), [0, 0, 10]);
    }

    #[test]
    fn two_choices_avoid_the_busiest_server() {
        let (mut service, mut servers) = service(Balance::TwoChoices, &[1, 1, 1]);
        servers.get_mut(service.servers[1]).unwrap().in_flight = InFlight::of(100);
        let shares = shares(&mut service, &mut servers, any(900));
        // The busiest server is chosen only if both draws select it.
        assert!((50..150).contains(&shares[1]) && shares[0] > 300 && shares[2] > 300, "{shares:?}");
    }

    #[test]
    fn a_key_keeps_its_server_when_others_go() {
        let (mut service, mut servers) = service(Balance::Hash, &[1, 1, 2]);
        let context = |key: u64| PickContext { key: mix(key), ..PickContext::default() };
        let before: Vec<_> = (0..4000).map(|key| chosen(&mut service, &mut servers, context(key))).collect();
        let of_last = before.iter().filter(|at| **at == 2).count();
        assert!((1800..2200).contains(&of_last), "{of_last}");
        let avoid = Some(service.servers[2]);
        for (key, before) in before.into_iter().enumerate() {
            let now = chosen(&mut service, &mut servers, PickContext { avoid, ..context(key as u64) });
            assert!(now == before || before == 2, "{key}");
        }
    }

    #[test]
    fn backups_get_requests_when_no_other_is_left() {
        let (mut service, mut servers) = service(Balance::RoundRobin, &[1, 1, -1]);
        assert_eq!(shares(&mut service, &mut servers, any(10)), [5, 5, 0]);
        let eject = document::Eject { failures: 1, ..document::Eject::default() };
        let now = Instant::now();
        for at in 0..2 {
            servers.get_mut(service.servers[at]).unwrap().failed(now, &eject, Counted::No);
        }
        assert_eq!(shares(&mut service, &mut servers, any(10)), [0, 0, 10]);
        servers.get_mut(service.servers[2]).unwrap().failed(now, &eject, Counted::No);
        let all = shares(&mut service, &mut servers, any(30));
        assert!(all.iter().all(|count| *count > 0), "a response may come: {all:?}");
    }

    #[test]
    fn a_cookie_leads_to_its_server_unless_that_has_failed() {
        let (mut service, mut servers) = service(Balance::RoundRobin, &[1, 1, 1]);
        let sticky = service.cookie_of(service.servers[1]);
        let context = PickContext { sticky, ..PickContext::default() };
        assert_eq!(shares(&mut service, &mut servers, std::iter::repeat_n(context, 10)), [0, 10, 0]);
        let context = PickContext { avoid: Some(service.servers[1]), ..context };
        assert_eq!(shares(&mut service, &mut servers, std::iter::repeat_n(context, 10)), [5, 0, 5]);
    }

    /// Regression test: the sticky cookie hashed the server's URL, so a client could forge the cookie of a backup.
    #[test]
    fn no_cookie_leads_to_a_backup_while_others_are_there_nor_is_one_made_up() {
        let (mut service, mut servers) = service(Balance::RoundRobin, &[1, 1, -1]);
        let context = |sticky: Option<u64>| PickContext { sticky, ..PickContext::default() };
        for at in 0..3 {
            let forged = servers.get(service.servers[at]).map(|server| server.config.id);
            let wishes = std::iter::repeat_n(context(forged), 10);
            assert_eq!(shares(&mut service, &mut servers, wishes), [5, 5, 0]);
        }
        let bound = context(service.cookie_of(service.servers[2]));
        assert!(bound.sticky.is_some());
        assert_eq!(shares(&mut service, &mut servers, std::iter::repeat_n(bound, 10)), [5, 5, 0]);
        set(&service, &mut servers, 0, true, None);
        assert_eq!(shares(&mut service, &mut servers, std::iter::repeat_n(bound, 10)), [0, 10, 0]);
        set(&service, &mut servers, 1, true, None);
        assert_eq!(shares(&mut service, &mut servers, std::iter::repeat_n(bound, 10)), [0, 0, 10]);
    }

    fn set(service: &Service, servers: &mut Servers, at: usize, is_drained: bool, weight: Option<u32>) {
        let server = servers.get_mut(service.servers[at]).unwrap();
        server.apply_override(config::Override { is_drained, weight }, Instant::now());
    }

    #[test]
    fn a_drained_server_gets_only_those_whom_its_cookie_leads_to_it() {
        let (mut service, mut servers) = service(Balance::RoundRobin, &[1, 1, -1]);
        let sticky = service.cookie_of(service.servers[1]);
        let bound = PickContext { sticky, ..PickContext::default() };
        set(&service, &mut servers, 1, true, None);
        assert_eq!(shares(&mut service, &mut servers, any(10)), [10, 0, 0]);
        assert_eq!(chosen(&mut service, &mut servers, bound), 1);
        set(&service, &mut servers, 1, false, Some(0));
        assert_eq!(chosen(&mut service, &mut servers, bound), 0, "a weight of 0 is no requests at all");
        set(&service, &mut servers, 0, true, None);
        assert_eq!(shares(&mut service, &mut servers, any(10)), [0, 0, 10]);
        set(&service, &mut servers, 2, true, None);
        assert_eq!(
            service.choose(&mut servers, Instant::now(), PickContext::default()),
            None,
            "not tried for want of others"
        );
        assert!(!service.has_room(&servers));
    }

    #[test]
    fn a_drained_server_takes_only_its_own_keys_along() {
        let (mut service, mut servers) = service(Balance::Hash, &[1, 1, 2]);
        let context = |key: u64| PickContext { key: mix(key), ..PickContext::default() };
        let before: Vec<_> = (0..1000).map(|key| chosen(&mut service, &mut servers, context(key))).collect();
        set(&service, &mut servers, 2, true, None);
        for (key, before) in before.iter().enumerate() {
            let now = chosen(&mut service, &mut servers, context(key as u64));
            assert!(now != 2 && (now == *before || *before == 2), "{key}");
        }
    }

    #[test]
    fn a_weight_set_at_run_time_is_a_share_until_it_is_taken_back() {
        let (mut service, mut servers) = service(Balance::RoundRobin, &[1, 1]);
        set(&service, &mut servers, 0, false, Some(4));
        assert_eq!(shares(&mut service, &mut servers, any(100)), [80, 20]);
        set(&service, &mut servers, 0, false, None);
        assert_eq!(shares(&mut service, &mut servers, any(100)), [50, 50]);
    }
}
