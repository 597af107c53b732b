//! The share of each worker: its version of HTTP, its connections, and its arrivals in an open loop.
//!
//! A worker speaks one version. With both versions each has workers of its own, in proportion to its connections but at
//! least one; so neither waits behind the other's responses. Arrivals are divided in proportion to connections, too.

mod turns;

pub(crate) use turns::Turns;

use crate::options::{HttpVersion, Options};
use crate::result::ByVersion;

/// The share of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) version: HttpVersion,
    pub(crate) connections: u32,
    pub(crate) turns: Turns,
}

/// The shares of all workers, those of HTTP/1.1 first.
pub(crate) fn shares(options: &Options) -> Vec<Share> {
    let connections = options.http.divide(options.connections);
    let workers = workers(options, connections);
    let of_version = |version| {
        let (connections, workers) = (connections.of(version), workers.of(version));
        (0..workers).map(move |index| Share {
            version,
            connections: connections / workers + u32::from(index < connections % workers),
            turns: Turns::new(options.connections, connections, version, index, workers),
        })
    };
    HttpVersion::ALL.into_iter().flat_map(of_version).collect()
}

/// Divides the workers, at most one per connection.
fn workers(options: &Options, connections: ByVersion<u32>) -> ByVersion<u32> {
    let all = options.workers as u32;
    let ByVersion { http1: most, http2: others } = connections;
    if most == 0 || others == 0 {
        return options.http.divide(all);
    }
    let least = all.saturating_sub(others).max(1);
    let http1 = options.http.divide(all).http1.min(all.saturating_sub(1)).min(most).max(least);
    ByVersion { http1, http2: all.saturating_sub(http1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(http: &str, connections: u32, workers: usize) -> Vec<Share> {
        let mut options = Options::new("http://a/".parse().unwrap());
        (options.http, options.connections, options.workers) = (http.parse().unwrap(), connections, workers);
        assert_eq!(options.check(), Ok(()), "{http} {connections} {workers}");
        shares(&options)
    }

    #[test]
    fn workers_and_their_connections() {
        type Row<'a> = (&'a str, u32, usize, &'a [u32], &'a [u32]);
        let table: [Row<'_>; 10] = [
            ("1.1", 5, 2, &[3, 2], &[]),
            ("2", 5, 3, &[], &[2, 2, 1]),
            ("1=3,2=1", 4, 2, &[3], &[1]),
            ("1=3,2=1", 64, 4, &[16, 16, 16], &[16]),
            ("1=3,2=1", 64, 2, &[48], &[16]),
            ("1=1,2=3", 64, 4, &[16], &[16, 16, 16]),
            ("1=1,2=1", 5, 3, &[2, 1], &[2]),
            // At most one worker per connection.
            ("1=9,2=1", 10, 10, &[1; 9], &[1]),
            ("1=1,2=9", 10, 10, &[1], &[1; 9]),
            ("1=9,2=1", 1000, 2, &[900], &[100]),
        ];
        for (http, connections, workers, http1, http2) in table {
            let of = |shares: &[Share], version| {
                let shares = shares.iter().filter(|share| share.version == version);
                shares.map(|share| share.connections).collect::<Vec<_>>()
            };
            let shares = divided(http, connections, workers);
            assert!(shares.is_sorted_by_key(|share| share.version == HttpVersion::Http2));
            assert_eq!(of(&shares, HttpVersion::Http1), http1, "{http} {connections} {workers}");
            assert_eq!(of(&shares, HttpVersion::Http2), http2, "{http} {connections} {workers}");
        }
    }

    #[test]
    fn every_connection_and_worker_counts_once() {
        for http in ["1.1", "2", "1=1,2=1", "1=3,2=1", "1=1,2=3", "1=5,2=7", "1=9,2=1", "1=1,2=9"] {
            for connections in 10..40 {
                for workers in 2..=10 {
                    let shares = divided(http, connections, workers);
                    assert_eq!(shares, divided(http, connections, workers), "it is deterministic");
                    assert_eq!(shares.len(), workers);
                    assert_eq!(shares.iter().map(|share| share.connections).sum::<u32>(), connections);
                    assert!(
                        shares.iter().all(|share| share.connections > 0),
                        "{http} {connections} {workers}"
                    );
                }
            }
        }
    }

    /// Each arrival has one worker, and every run of arrivals divides as the connections do.
    #[test]
    fn every_arrival_has_one_worker() {
        for (http, connections, workers) in [
            ("1.1", 7, 3),
            ("2", 7, 2),
            ("1=3,2=1", 4, 2),
            ("1=3,2=1", 64, 5),
            ("1=5,2=7", 31, 10),
            ("1=1,2=9", 10, 3),
        ] {
            let most = u64::from(connections) * 20;
            let mut seen = vec![None; most as usize];
            for share in divided(http, connections, workers) {
                let mut turns = share.turns.clone();
                let mut at = turns.first();
                while at < most {
                    let before = seen[at as usize].replace(share.version);
                    assert_eq!(before, None, "arrival {at} of {http} {connections} {workers}");
                    at += turns.skip();
                }
            }
            let http1 = |arrivals: &[Option<HttpVersion>]| {
                arrivals.iter().filter(|version| **version == Some(HttpVersion::Http1)).count()
            };
            assert!(seen.iter().all(Option::is_some), "{http} {connections} {workers}");
            let versions: crate::options::HttpVersions = http.parse().unwrap();
            let exact = versions.divide(connections).http1 as usize;
            for arrivals in seen.windows(connections as usize) {
                assert_eq!(http1(arrivals), exact, "{http} {connections} {workers}");
            }
        }
    }
}
