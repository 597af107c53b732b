//! Lookups of a name's addresses: the hosts file, then the name servers, then the system's other sources.

use super::system::{Files, Search, Settings};
use super::{Family, Found, NameServers};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct Resolver {
    configured: NameServers,
    files: Arc<Files>,
    /// The name servers, or the reason why there are none.
    servers: Result<Arc<Servers>, String>,
}

impl Resolver {
    pub(crate) fn new(configured: &NameServers) -> Self {
        Self::with(configured, Files::read())
    }

    fn with(configured: &NameServers, files: Files) -> Self {
        let servers = Servers::new(configured, &files).map(Arc::new);
        Self { configured: configured.clone(), files: Arc::new(files), servers }
    }

    /// Reads the system's files again, and adopts their changes.
    pub(crate) fn refresh(&mut self) {
        let files = Files::read();
        if files != *self.files {
            *self = Self::with(&self.configured, files);
        }
    }

    /// Finds the addresses of a name within [`WITHIN`]. Errors: the reason why the lookup found none.
    pub(crate) fn find(&self, name: &str) -> impl Future<Output = Result<Found, String>> + Send + 'static {
        let (name, files, servers) = (name.to_owned(), Arc::clone(&self.files), self.servers.clone());
        let knows_more = self.configured.addresses.is_empty();
        let find = async move {
            let addresses = files.addresses(&name);
            if !addresses.is_empty() {
                return Ok(Found { addresses, ttl: OF_HOSTS, unknown: None });
            }
            let failure = match servers {
                Ok(servers) => match servers.find(&name).await {
                    Ok(found) => return Ok(found),
                    Err(failure) => failure,
                },
                Err(why) => Failure::Nothing(why),
            };
            match failure {
                // The system's modules (nsswitch.conf(5)) may know names that DNS does not: multicast DNS, or the
                // machine's own name.
                Failure::Nothing(why) if knows_more => of_system(name).await.ok_or(why),
                Failure::Nothing(why) | Failure::Trouble(why) => Err(why),
            }
        };
        async move { timeout(WITHIN, find).await.unwrap_or_else(|_| Err(format!("no answer within {WITHIN:?}"))) }
    }
}

/// Name servers, each with its own resolver. A lookup queries the name servers in order; if one fails, the next gets
/// the query.
#[derive(Debug)]
struct Servers {
    each: Vec<(SocketAddr, TokioResolver)>,
    attempts: usize,
    timeout: Duration,
    search: Search,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Failure {
    /// A name server responded that the name has no addresses.
    Nothing(String),
    /// All name servers failed, so it is unknown whether the name has addresses.
    Trouble(String),
}

/// The addresses of one family with their TTL, or the failure.
type Answer = Result<(Vec<IpAddr>, Duration), Failure>;

impl Servers {
    fn new(configured: &NameServers, files: &Files) -> Result<Self, String> {
        let settings = match configured.addresses.as_slice() {
            [] => Settings::parse(&files.resolv)?,
            addresses => Settings::of(addresses.to_vec()),
        };
        let wait = configured.timeout.unwrap_or(settings.timeout);
        let resolver = |at: SocketAddr| {
            let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
                connection.port = at.port();
                connection
            });
            let server = NameServerConfig::new(at.ip(), true, connections.into());
            let config = ResolverConfig::from_name_servers(vec![server]);
            let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
            let options = builder.options_mut();
            options.timeout = wait;
            options.edns0 = settings.edns0;
            // This module handles attempts, the hosts file and caching itself.
            (options.attempts, options.use_hosts_file, options.cache_size) = (0, ResolveHosts::Never, 0);
            builder.build().map(|resolver| (at, resolver)).map_err(|error| error.to_string())
        };
        let each = settings.servers.iter().map(|at| resolver(*at)).collect::<Result<_, _>>()?;
        Ok(Self { each, attempts: settings.attempts, timeout: wait, search: settings.search })
    }

    async fn find(&self, name: &str) -> Result<Found, Failure> {
        let mut worst = None;
        for candidate in self.search.candidates(name).map_err(Failure::Nothing)? {
            let (ipv6, ipv4) = tokio::join!(
                self.ask(candidate.clone(), RecordType::AAAA),
                self.ask(candidate, RecordType::A)
            );
            match both(ipv6, ipv4) {
                Ok(found) => return Ok(found),
                // As in the C library, a failure for one candidate does not end the search.
                Err(trouble @ Failure::Trouble(_)) => worst = Some(trouble),
                Err(nothing @ Failure::Nothing(_)) => worst = worst.or(Some(nothing)),
            }
        }
        Err(worst.unwrap_or_else(|| Failure::Nothing(NO_NAME.to_owned())))
    }

    async fn ask(&self, name: Name, kind: RecordType) -> Answer {
        let mut last = String::new();
        for _ in 0..self.attempts {
            for (at, resolver) in &self.each {
                let error = match resolver.lookup(name.clone(), kind).await {
                    Ok(lookup) => return addresses(&lookup),
                    Err(error) => error,
                };
                last = match error {
                    NetError::Dns(DnsError::NoRecordsFound(none)) => {
                        let why =
                            if none.response_code == ResponseCode::NXDomain { NO_NAME } else { NO_ADDRESS };
                        return Err(Failure::Nothing(why.to_owned()));
                    }
                    NetError::Dns(DnsError::ResponseCode(code)) => format!("name server {at}: {code}"),
                    NetError::Timeout => format!("name server {at}: no answer within {:?}", self.timeout),
                    error => format!("name server {at}: {error}"),
                };
            }
        }
        Err(Failure::Trouble(last))
    }
}

/// The addresses in a response, with the smallest TTL of the records, aliases included.
fn addresses(lookup: &Lookup) -> Answer {
    let (mut found, mut ttl) = (Vec::new(), u32::MAX);
    for record in lookup.answers() {
        match &record.data {
            RData::A(address) => found.push(IpAddr::V4(address.0)),
            RData::AAAA(address) => found.push(IpAddr::V6(address.0)),
            RData::CNAME(_) => {}
            _ => continue,
        }
        ttl = ttl.min(record.ttl);
    }
    match found.is_empty() {
        true => Err(Failure::Nothing(NO_ADDRESS.to_owned())),
        false => Ok((found, Duration::from_secs(ttl.into()))),
    }
}

/// Combines both families. If a lookup failed, its family is unknown, not empty.
fn both(ipv6: Answer, ipv4: Answer) -> Result<Found, Failure> {
    match (ipv6, ipv4) {
        (Ok((mut addresses, ttl)), Ok((more, other))) => {
            addresses.extend(more);
            Ok(Found { addresses, ttl: ttl.min(other), unknown: None })
        }
        (Ok((addresses, ttl)), Err(failure)) => {
            Ok(Found { addresses, ttl, unknown: failure.trouble().map(|why| (Family::Ipv4, why)) })
        }
        (Err(failure), Ok((addresses, ttl))) => {
            Ok(Found { addresses, ttl, unknown: failure.trouble().map(|why| (Family::Ipv6, why)) })
        }
        (Err(trouble @ Failure::Trouble(_)), Err(Failure::Nothing(_))) | (Err(_), Err(trouble)) => {
            Err(trouble)
        }
    }
}

impl Failure {
    fn trouble(self) -> Option<String> {
        match self {
            Self::Trouble(why) => Some(why),
            Self::Nothing(_) => None,
        }
    }
}

/// Queries the system's resolver, on a separate thread since the call blocks.
async fn of_system(name: String) -> Option<Found> {
    let found = tokio::task::spawn_blocking(move || {
        (name.as_str(), 0).to_socket_addrs().map(|found| found.map(|at| at.ip()).collect::<Vec<_>>())
    });
    let addresses = found.await.ok()?.ok().filter(|addresses| !addresses.is_empty())?;
    Some(Found { addresses, ttl: OF_SYSTEM, unknown: None })
}

/// The timeout of a name's lookup, regardless of the number of servers and domains.
const WITHIN: Duration = Duration::from_secs(30);

/// The TTL of addresses from the hosts file, which has none.
const OF_HOSTS: Duration = Duration::from_secs(60);

/// The TTL of addresses from the system's resolver, which does not report one.
const OF_SYSTEM: Duration = Duration::from_secs(30);

const NO_NAME: &str = "there is no such name";
const NO_ADDRESS: &str = "it has no address";

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_resolver::proto::op::Query;
    use hickory_resolver::proto::rr::Record;
    use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME, TXT};
    use std::time::Instant;

    fn answer(addresses: &[&str], ttl: u64) -> Answer {
        Ok((addresses.iter().map(|text| text.parse().unwrap()).collect(), Duration::from_secs(ttl)))
    }

    fn nothing() -> Answer {
        Err(Failure::Nothing("nothing".to_owned()))
    }

    fn trouble() -> Answer {
        Err(Failure::Trouble("trouble".to_owned()))
    }

    #[test]
    fn an_answer_holds_as_long_as_its_shortest_record() {
        let name = |text: &str| Name::from_ascii(text).unwrap();
        let records = [
            Record::from_rdata(name("app."), 20, RData::CNAME(CNAME(name("a.cdn.")))),
            Record::from_rdata(name("a.cdn."), 30, RData::A(A::new(192, 0, 2, 1))),
            Record::from_rdata(name("a.cdn."), 40, RData::A(A::new(192, 0, 2, 2))),
            Record::from_rdata(name("a.cdn."), 1, RData::TXT(TXT::new(vec!["x".to_owned()]))),
        ];
        let lookup = |records: &[Record]| {
            let query = Query::query(name("app."), RecordType::A);
            Lookup::new_with_deadline(query, records.to_vec(), Instant::now())
        };
        assert_eq!(addresses(&lookup(&records)), answer(&["192.0.2.1", "192.0.2.2"], 20));
        assert_eq!(addresses(&lookup(&records[1..])), answer(&["192.0.2.1", "192.0.2.2"], 30));
        let ipv6 = Record::from_rdata(name("app."), 0, RData::AAAA(AAAA::new(0, 0, 0, 0, 0, 0, 0, 1)));
        assert_eq!(addresses(&lookup(&[ipv6])), answer(&["::1"], 0));
        assert_eq!(addresses(&lookup(&records[..1])), Err(Failure::Nothing(NO_ADDRESS.to_owned())));
    }

    #[test]
    fn a_family_in_trouble_is_unknown_and_one_without_addresses_is_not() {
        let found = |ipv6: Answer, ipv4: Answer| {
            both(ipv6, ipv4).map(|found| {
                let unknown = found.unknown.map(|(family, _)| family);
                (found.addresses.len(), found.ttl.as_secs(), unknown)
            })
        };
        let (ipv6, ipv4) = (|| answer(&["::1"], 5), || answer(&["127.0.0.1", "127.0.0.2"], 7));
        assert_eq!(found(ipv6(), ipv4()), Ok((3, 5, None)));
        assert_eq!(found(ipv6(), nothing()), Ok((1, 5, None)));
        assert_eq!(found(nothing(), ipv4()), Ok((2, 7, None)));
        assert_eq!(found(ipv6(), trouble()), Ok((1, 5, Some(Family::Ipv4))));
        assert_eq!(found(trouble(), ipv4()), Ok((2, 7, Some(Family::Ipv6))));
        assert_eq!(found(trouble(), nothing()).unwrap_err().trouble().as_deref(), Some("trouble"));
        assert_eq!(found(nothing(), trouble()).unwrap_err().trouble().as_deref(), Some("trouble"));
        assert_eq!(found(nothing(), nothing()).unwrap_err().trouble(), None);
    }
}
