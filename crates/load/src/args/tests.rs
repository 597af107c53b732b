//! The words of the command line and what becomes of them.

use super::*;
use crate::result::Role;
fn options(words: &str) -> Result<Options, String> {
    LoadArgs::from_words(words.split_whitespace())?.options().map_err(|error| error.to_string())
}

#[test]
fn words_become_options() {
    let o = options("http://a/x http://a/y -d 5s --settle 1s --think 20ms --seed 9").unwrap();
    let paths: Vec<&str> = o.requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!((paths, o.seed), (vec!["/x", "/y"], 9));
    assert_eq!(o.schedule, Schedule::Closed { think: Duration::from_millis(20) });
    let o = options("http://a/ --rate 100:2s,200:3s --arrivals poisson").unwrap();
    assert_eq!(o.phases.window, Duration::from_secs(5));
    assert!(
        matches!(o.schedule, Schedule::Open { arrivals: ArrivalKind::Poisson, steps } if steps.len() == 2)
    );
    let o =
        options("https://a/ --requests-per-connection 5-10 --resume 30 --resume-by id --close rst").unwrap();
    assert_eq!(o.policy.per_connection, PerConnection::Requests { least: 5, most: 10 });
    assert_eq!((o.policy.resume, o.policy.close, o.tls.ids_only), (30.0, Close::Reset, true));
    let o = options("https://a/ --tls 1.2-1.3 --group p256,x25519 --sni none --alpn http/1.1").unwrap();
    assert_eq!((o.tls.versions.len(), o.tls.groups.len(), o.tls.alpn.len()), (2, 2, 1));
    assert_eq!(o.tls.sni, Sni::None);
    let o = options("http://a/x http://a/y --weights 3,1 --source 127.0.0.1-127.0.0.3").unwrap();
    assert_eq!((o.requests[0].weight, o.requests[1].weight, o.route.sources.len()), (3, 1, 3));
    let o = options("http://a/ --resolve a:80:127.0.0.9 --connect-to b:81").unwrap();
    assert_eq!((o.route.resolve.len(), o.route.connect_to), (1, Some(("b".to_owned(), 81))));
    let chunk = |words: &str| {
        let o = options(&format!("http://a/ {words}")).unwrap();
        (o.requests[0].chunk, o.requests[0].body.as_ref().map(Vec::len))
    };
    assert_eq!(chunk("--data 5"), (None, Some(5)));
    assert_eq!(chunk("--chunked --data 5"), (Some(16 * 1024), Some(5)));
    assert_eq!(chunk("--data 0 --chunked=4KiB"), (Some(4096), Some(0)));
    let o = options("http://a/ --error-budget 0.1").unwrap();
    assert_eq!((o.error_budget, options("http://a/").unwrap().error_budget), (0.1, 0.0));
    assert_eq!(options("http://a/ --pid origin=7").unwrap().servers[0].role, Role::Origin);
}

#[test]
fn words_that_cannot_be_followed_say_what_is_allowed() {
    for (words, why) in [
        ("http://a/ --rate x", "1000:10s"),
        ("http://a/ --rate 10:5s -d 3s", "no -d beside a --rate in steps"),
        ("http://a/ --rate 1:10000000000000000000s,1:10000000000000000000s", "24h in all"),
        ("http://a/ --rate 10:5s,20:0s", "longer than nothing"),
        ("http://a/ --rate 5 --think 1s", "cannot be used with"),
        ("http://a/ --arrivals poisson", "--rate"),
        ("http://a/ --new-connection --resume 5", "an https URL"),
        ("http://a/ --handshake-only", "an https URL"),
        ("https://a/ --resume 5", "--new-connection"),
        ("https://a/ --new-connection --resume 101", "0 to 100 percent"),
        ("https://a/ --requests-per-connection 9-5", "a range such as 5-10"),
        ("https://a/ --tls 1.3-1.2", "lower one first"),
        ("https://a/ --tls 1.1", "1.2, 1.3"),
        ("https://a/ --suite aes", "aes128-gcm-sha256"),
        ("https://a/ --alpn h2", "--alpn: `h2` cannot be used; allowed: http/1.1, the only"),
        ("https://a/ --alpn http/1.1,h3", "--alpn: `h3`"),
        ("https://a/ --alpn http/1.0", "--alpn: `http/1.0`"),
        ("https://a/ --alpn=", "--alpn: ``"),
        ("https://a/ --group p-512", "x25519mlkem768"),
        ("https://a/ --signature rsa", "rsa-pss-sha256"),
        ("http://a/ --pid server=5", "origin=PID"),
        ("http://a/ --data /no/such/file", "/no/such/file"),
        ("http://a/ --chunked", "--chunked: `16384` cannot be used; allowed: beside --data"),
        ("http://a/ --data 5 --chunked=much", "--chunked: `much` cannot be used; allowed: 1 to 1GiB"),
        ("http://a/ --data 5 --chunked=0", "--chunked: `0` cannot be used; allowed: 1 to 1GiB"),
        ("http://a/ --requests f --chunked", "cannot be used with"),
        ("http://a/ -c many", "'many' for '--connections <N>': expected a whole number, 1 to 1000000"),
        ("http://a/ -c 1.5", "expected a whole number, 1 to 1000000"),
        ("http://a/ -c=-1", "expected a whole number, 1 to 1000000"),
        ("http://a/ -t 99999999999999999999", "expected a whole number, 1 to 1024"),
        ("http://a/ --weights 1,x", "'x' for '--weights <LIST>': expected a whole number, 1 to 1000000"),
        ("http://a/ --seed x", "expected a whole number from 0"),
        ("http://a/ --expect-status OK", "expected a whole number, 200 to 999"),
        ("http://a/ --expect-length 1KiB", "expected a whole number of bytes"),
        ("https://a/ --new-connection --resume all", "expected 0 to 100 percent"),
        ("http://a/ --error-budget few", "expected 0 to 100 percent"),
        ("http://a/ --error-budget 101", "0 to 100 percent"),
        ("http://a/ --error-budget=-1", "0 to 100 percent"),
        ("http://a/x http://b/y", "http://b"),
        ("http://a/x http://a/y --weights 3", "--weights"),
        ("http://a/ --requests /no/such/file", "/no/such/file"),
        ("http://a/ --source 127.0.0.9-127.0.0.1", "--source"),
        ("http://a/ --resolve a", "--resolve"),
        ("http://a/ --expect-sha256 00", "64"),
        ("http://a/ --unix-socket /x --source 127.0.0.1", "cannot be used with"),
        ("http://a/ --new-connection --handshake-only", "cannot be used with"),
    ] {
        let error = options(words).unwrap_err();
        assert!(error.contains(why), "{words}: {error}");
    }
}
