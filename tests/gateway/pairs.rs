//! Each pair of keys of a table: the gateway obeys both keys, or rejects the pair, or the keys are independent.
//! Accepting a pair but ignoring a key would be a vulnerability.

use crate::common::Certificates;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The relation of two keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    /// Each has its effect regardless of the other.
    Independent,
    /// One changes the other's effect, as this test shows.
    Obeyed(&'static str),
    /// Together they are an error with this text.
    Refused(&'static str),
}

use Pair::{Independent, Obeyed, Refused};

/// A table of the configuration.
struct Table {
    /// The lines before its keys.
    before: &'static str,
    /// The keys, each with a value and the keys of which it needs one. A pair that needs another key gets the first of
    /// these.
    keys: &'static [(&'static str, &'static str, &'static [&'static str])],
    /// Pairs of any key of the first list with any of the second; the first matching row applies, and an empty list
    /// matches all keys.
    rows: &'static [(&'static [&'static str], &'static [&'static str], Pair)],
}

const ALL: &[&str] = &[];

const CONDITIONS: &[&str] = &["host", "path", "method", "headers", "client", "listener"];
const ACTIONS: &[&str] = &["service", "redirect", "respond"];
/// Keys of a service's route, independent except in earlier rows.
const OF_SERVICE: &[&str] = &[
    "service",
    "strip_prefix",
    "add_prefix",
    "ambiguous_paths",
    "request_headers",
    "request_trailers",
    "trace",
    "mirror",
    "retry",
    "max_body",
    "request_buffer",
    "response_buffer",
    "timeouts",
    "min_rate",
];

const ROUTE: Table = Table {
    before: "[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://127.0.0.1:1'\n[[route]]\n",
    keys: &[
        ("name", "'a'", ACTIONS),
        ("host", "'a.test'", ACTIONS),
        ("path", "'/a/*'", ACTIONS),
        ("method", "['GET', 'TRACE']", ACTIONS),
        ("headers", "{ X-A = '*' }", ACTIONS),
        ("client", "'192.0.2.0/24'", ACTIONS),
        ("listener", "'web'", ACTIONS),
        ("service", "'app'", ALL),
        ("redirect", "{ to = '/x' }", ALL),
        ("respond", "{ status = 200 }", ALL),
        ("sticky", "'c'", &["service"]),
        ("strip_prefix", "'/a'", &["service"]),
        ("add_prefix", "'/b'", &["service"]),
        ("ambiguous_paths", "'pass'", &["service"]),
        ("request_headers", "{ set = { X-B = 'b' } }", &["service"]),
        ("request_trailers", "'X-C'", &["service"]),
        ("response_headers", "{ set = { X-D = 'd' } }", ACTIONS),
        ("trace", "true", &["service"]),
        ("mirror", "{ service = 'app' }", &["service"]),
        ("rate", "{ requests = 1 }", ACTIONS),
        ("retry", "'never'", &["service"]),
        ("max_body", "1000", &["service"]),
        ("request_buffer", "'64KiB'", &["service"]),
        ("response_buffer", "'1MiB'", &["service"]),
        ("timeouts", "{ response = '1s' }", &["service"]),
        ("min_rate", "{ request = 0 }", &["service"]),
    ],
    rows: &[
        (ACTIONS, ACTIONS, Refused("more than one action")),
        (&["sticky"], ALL, Refused("no effect without several services")),
        (&["redirect", "respond"], OF_SERVICE, Refused("no effect beside `re")),
        // Conditions select requests; the other keys handle them.
        (&["method"], &["trace"], Obeyed("trace_passes_where_that_is_set")),
        (CONDITIONS, ALL, Independent),
        // Keys for all actions.
        (&["rate"], &["respond"], Obeyed("requests_beyond_the_rate_are_declined_and_the_connection_goes_on")),
        (&["response_headers"], &["respond"], Obeyed("some_requests_are_answered_at_once")),
        (&["name", "rate", "response_headers"], ALL, Independent),
        (&["strip_prefix"], &["add_prefix"], Obeyed("prefixes_and_fields_are_changed")),
        (&["request_buffer"], &["max_body"], Obeyed("a_body_that_goes_wrong_reaches_no_server")),
        (
            &["mirror"],
            &["strip_prefix", "request_headers"],
            Obeyed("copies_are_complete_and_their_answers_are_dropped"),
        ),
        (OF_SERVICE, OF_SERVICE, Independent),
    ],
};

const LISTENER: Table = Table {
    before: "[[certificate]]\nname = 'a'\nchain = 'CHAIN'\nkey = 'KEY'\n[service.app]\nservers = 'http://127.0.0.1:1'\n[[route]]\nservice = 'app'\n\
             [service.db]\nservers = 'tcp://127.0.0.1:1'\n[listener.web]\n",
    keys: &[
        ("bind", "['127.0.0.1:0', 'unix:/tmp/weir-pairs.sock']", ALL),
        ("mode", "'600'", &["bind"]),
        ("trusted_proxies", "'10.0.0.0/8'", &["bind"]),
        ("proxy_field", "'forwarded'", &["trusted_proxies"]),
        ("proxy_protocol", "'10.0.0.0/8'", &["bind"]),
        ("allow", "'192.0.2.0/24'", &["bind"]),
        ("deny", "'192.0.2.7'", &["bind"]),
        ("half_close", "'serve'", &["bind"]),
        ("underscores_in_headers", "'pass'", &["bind"]),
        ("http2", "false", &["bind"]),
        ("http2_priorities", "true", &["bind"]),
        ("accept", "'http-1.2'", &["bind"]),
        ("limits", "{ head = '16KiB' }", &["bind"]),
        ("redirect", "'https'", &["bind"]),
        ("passthrough", "[{ name = '*', service = 'app' }]", &["bind"]),
        ("tcp", "{ service = 'db' }", &["bind"]),
        ("certificates", "'a'", &["tls"]),
        ("tls", "{}", &["bind"]),
    ],
    rows: &[
        (&["tcp"], &["redirect", "passthrough"], Refused("conflicts with `tcp`")),
        (
            &["tcp"],
            &[
                "trusted_proxies",
                "proxy_field",
                "half_close",
                "underscores_in_headers",
                "http2",
                "http2_priorities",
                "accept",
                "limits",
            ],
            Refused("no effect beside `tcp`"),
        ),
        (&["tcp"], &["tls"], Obeyed("tls_is_terminated_and_originated")),
        (&["tcp"], &["certificates"], Independent),
        (&["tcp"], &["proxy_protocol", "allow"], Obeyed("both_headers_name_the_client")),
        (&["redirect"], &["certificates"], Refused("no effect without `tls`")),
        (&["redirect"], &["tls", "passthrough"], Refused("this listener has TLS already")),
        (&["bind"], &["mode"], Obeyed("requests_pass_through_a_socket_and_keep_what_a_trusted_proxy_says")),
        (&["bind"], ALL, Independent),
        (
            &["passthrough"],
            &[
                "trusted_proxies",
                "proxy_field",
                "half_close",
                "underscores_in_headers",
                "http2",
                "http2_priorities",
                "accept",
                "limits",
            ],
            Refused("no effect beside `passthrough` without `tls`"),
        ),
        (
            &["passthrough"],
            &["tls", "proxy_protocol"],
            Obeyed("connections_are_passed_on_by_name_without_being_decrypted"),
        ),
        (&["allow", "deny"], &["proxy_protocol"], Obeyed("the_address_that_a_proxy_header_names_counts")),
        (&["allow"], &["deny"], Obeyed("clients_are_let_in_by_their_network")),
        (
            &["trusted_proxies"],
            &["underscores_in_headers"],
            Obeyed("fields_with_an_underscore_are_dropped_passed_or_refused"),
        ),
        (&["trusted_proxies"], &["proxy_field"], Obeyed("trusted_proxies_name_the_client")),
        (&["proxy_protocol"], &["tls", "trusted_proxies"], Obeyed("a_load_balancer_says_who_the_client_is")),
        (&["http2"], &["http2_priorities"], Refused("no effect beside `http2 = false`")),
        (&["certificates"], &["tls"], Obeyed("each_listener_presents_its_own_certificates")),
        (&["passthrough"], &["certificates"], Independent),
        // Access control, connection prefaces, and rules for requests.
        (
            &[
                "mode",
                "trusted_proxies",
                "proxy_field",
                "proxy_protocol",
                "allow",
                "deny",
                "half_close",
                "underscores_in_headers",
                "http2",
                "http2_priorities",
                "accept",
                "limits",
                "redirect",
            ],
            &[
                "mode",
                "trusted_proxies",
                "proxy_field",
                "proxy_protocol",
                "allow",
                "deny",
                "half_close",
                "underscores_in_headers",
                "http2",
                "http2_priorities",
                "accept",
                "limits",
                "redirect",
                "passthrough",
                "tcp",
                "certificates",
                "tls",
            ],
            Independent,
        ),
    ],
};

const LISTENER_TLS: Table = Table {
    before: "[[certificate]]\nchain = 'CHAIN'\nkey = 'KEY'\n[[route]]\nrespond.status = 200\n[listener.web]\nbind = '127.0.0.1:0'\n\
             [listener.web.tls]\n",
    keys: &[
        ("versions", "'1.3'", ALL),
        ("suites", "'aes128-gcm-sha256'", ALL),
        ("suite_order", "'client'", ALL),
        ("groups", "'x25519'", ALL),
        // The only value that works on every processor.
        ("curves", "'aws-lc'", ALL),
        ("tickets", "0", ALL),
        ("ticket_lifetime", "'1h'", ALL),
        ("ticket_secrets", "'SECRETS'", ALL),
        ("sessions", "100", ALL),
        ("client_ca", "'CA'", ALL),
        ("client_certificates", "'optional'", &["client_ca"]),
        ("client_crl", "'CRL'", &["client_ca"]),
        ("client_crl_expired", "'use'", &["client_crl"]),
        ("strict_names", "true", ALL),
        ("record_size", "'4KiB'", ALL),
        ("key_log", "'KEYLOG'", ALL),
    ],
    rows: &[
        (&["tickets"], &["ticket_secrets"], Refused("no effect beside `tickets = 0`")),
        (&["versions"], &["sessions"], Refused("no effect without TLS 1.2")),
        (&["suites"], &["sessions"], Refused("no effect without TLS 1.2")),
        (
            &["suites"],
            &["suite_order"],
            Obeyed("the_gateways_order_of_suites_decides_unless_the_clients_is_to"),
        ),
        (
            &["client_ca"],
            &["client_certificates"],
            Obeyed("the_subject_of_a_clients_certificate_reaches_the_server_and_cannot_be_forged"),
        ),
        // The configuration rejects a version without its suites or groups, in any pair.
        (LISTENER_TLS_KEYS, LISTENER_TLS_KEYS, Independent),
    ],
};

const LISTENER_TLS_KEYS: &[&str] = &[
    "versions",
    "suites",
    "suite_order",
    "groups",
    "curves",
    "tickets",
    "ticket_lifetime",
    "ticket_secrets",
    "sessions",
    "client_ca",
    "client_certificates",
    "client_crl",
    "client_crl_expired",
    "strict_names",
    "record_size",
    "key_log",
];

const SERVICE: Table = Table {
    before: "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nservice = 'app'\n[service.app]\n",
    keys: &[
        ("servers", "['https://127.0.0.1:1', 'https://127.0.0.1:2']", ALL),
        ("balance", "'hash'", &["servers"]),
        ("hash", "'header:X-A'", &["balance"]),
        ("sticky", "'c'", &["servers"]),
        ("eject", "{ failures = 2 }", &["servers"]),
        ("health", "{ path = '/' }", &["servers"]),
        ("max_connections", "10", &["servers"]),
        ("max_waiting", "10", &["max_connections"]),
        ("retry_percent", "5", &["servers"]),
        ("proxy_protocol", "'v2'", &["servers"]),
        ("http2", "true", &["servers"]),
        ("accept", "'bare-lf'", &["servers"]),
        ("limits", "{ head = '16KiB' }", &["servers"]),
        ("pool", "{ max_idle = 1 }", &["servers"]),
        ("tls", "{ insecure = true }", &["servers"]),
    ],
    rows: &[
        (&["proxy_protocol"], &["pool"], Refused("no effect beside `proxy_protocol`")),
        (&["http2"], &["proxy_protocol"], Refused("conflicts with `proxy_protocol`")),
        (&["http2"], &["accept"], Refused("no effect beside `http2`")),
        (&["servers"], &["tls"], Obeyed("what_a_service_cannot_be_is_refused")),
        (&["balance"], &["hash"], Obeyed("a_hash_keeps_a_user_on_one_server")),
        (&["sticky"], &["balance", "hash"], Obeyed("a_cookie_brings_a_client_back_to_its_server")),
        (&["max_connections"], &["max_waiting"], Obeyed("a_queue_is_bounded_in_length_and_time")),
        (&["health"], &["http2"], Obeyed("a_server_that_speaks_http2_is_checked_by_http2")),
        (&["health"], &["accept"], Obeyed("health_checks_accept_what_their_service_does")),
        (&["proxy_protocol"], &["tls"], Obeyed("a_server_with_tls_gets_the_header_in_the_clear")),
        // Server selection, connection limits, and protocol settings.
        (SERVICE_KEYS, SERVICE_KEYS, Independent),
    ],
};

const SERVICE_KEYS: &[&str] = &[
    "servers",
    "balance",
    "hash",
    "sticky",
    "eject",
    "health",
    "max_connections",
    "max_waiting",
    "retry_percent",
    "proxy_protocol",
    "http2",
    "accept",
    "limits",
    "pool",
    "tls",
];

const SERVICE_TLS: Table = Table {
    before: "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nservice = 'app'\n[service.app]\nservers = 'https://127.0.0.1:1'\n\
             [service.app.tls]\n",
    keys: &[
        ("ca", "'CA'", ALL),
        ("insecure", "true", ALL),
        ("name", "'a.test'", ALL),
        ("certificate", "'CHAIN'", &["key"]),
        ("key", "'KEY'", &["certificate"]),
        ("versions", "'1.3'", ALL),
        ("suites", "'aes128-gcm-sha256'", ALL),
        ("groups", "'x25519'", ALL),
        ("curves", "'aws-lc'", ALL),
        ("record_size", "'4KiB'", ALL),
    ],
    rows: &[
        (&["ca"], &["insecure"], Refused("conflicts with `ca`")),
        // The name is sent as SNI even if verification is off.
        (SERVICE_TLS_KEYS, SERVICE_TLS_KEYS, Independent),
    ],
};

const SERVICE_TLS_KEYS: &[&str] = &[
    "ca",
    "insecure",
    "name",
    "certificate",
    "key",
    "versions",
    "suites",
    "groups",
    "curves",
    "record_size",
];

const HEALTH: Table = Table {
    before: "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nservice = 'app'\n[service.app]\nservers = 'http://127.0.0.1:1'\n\
             http2 = true\n[service.app.health]\n",
    keys: &[
        ("path", "'/health'", ALL),
        ("grpc", "''", ALL),
        ("host", "'a.test'", &["path", "grpc"]),
        ("status", "'200'", &["path"]),
        ("every", "'1s'", ALL),
        ("timeout", "'1s'", ALL),
        ("rise", "1", ALL),
        ("fall", "1", ALL),
    ],
    rows: &[
        (&["grpc"], &["path"], Refused("conflicts with `path`")),
        (&["grpc"], &["status"], Refused("no effect beside `grpc`")),
        (HEALTH_KEYS, HEALTH_KEYS, Independent),
    ],
};

const HEALTH_KEYS: &[&str] = &["path", "grpc", "host", "status", "every", "timeout", "rise", "fall"];

const RESPOND: Table = Table {
    before: "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\n[route.respond]\n",
    keys: &[("status", "200", ALL), ("body", "'x'", &["status"]), ("content_type", "'text/x'", &["status"])],
    rows: &[(&["status", "body"], &["body", "content_type"], Obeyed("some_requests_are_answered_at_once"))],
};

/// Keys that every table of this kind needs.
const REQUIRED: [&str; 2] = ["bind", "servers"];

const TABLES: [Table; 7] = [ROUTE, LISTENER, LISTENER_TLS, SERVICE, SERVICE_TLS, HEALTH, RESPOND];

/// A directory in which to write and check configurations.
struct Checks {
    folder: tempfile::TempDir,
    certificates: Certificates,
}

impl Checks {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secrets"), "01".repeat(32)).unwrap();
        fs::write(folder.path().join("crl.pem"), CRL).unwrap();
        Self { folder, certificates: Certificates::new() }
    }

    /// The errors of a configuration.
    fn faults(&self, config: &str) -> String {
        let Certificates { ca, cert, key, .. } = &self.certificates;
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let config = [
            ("'CHAIN'", cert.display().to_string()),
            ("'KEY'", key.display().to_string()),
            ("'CA'", ca.display().to_string()),
            ("'CRL'", path("crl.pem")),
            ("'SECRETS'", path("secrets")),
            ("'KEYLOG'", path("keys.log")),
        ]
        .into_iter()
        .fold(config.to_owned(), |config, (name, path)| config.replace(name, &format!("'{path}'")));
        let file = self.folder.path().join("weir.toml");
        fs::write(&file, config).unwrap();
        weir_gateway::read(&file).err().map(|findings| findings.to_string()).unwrap_or_default()
    }

    /// The table's keys, from the error about an unknown key.
    fn keys_of(&self, table: &Table) -> Vec<String> {
        let faults = self.faults(&format!("{}no_such_key = 1\n", table.before));
        let (_, known) = faults.split_once("unknown field `no_such_key`, expected ").expect(&faults);
        let known = known.lines().next().unwrap_or_default();
        known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }
}

impl Table {
    /// Lines that set these keys and those that they need.
    fn config(&self, keys: &[&str]) -> String {
        let mut keys = keys.to_vec();
        let mut at = 0;
        while let Some(key) = keys.get(at) {
            let (_, _, needs) = self.keys.iter().find(|(name, ..)| name == key).unwrap();
            if !needs.is_empty() && !needs.iter().any(|need| keys.contains(need)) {
                keys.push(needs[0]);
            }
            at += 1;
        }
        self.exactly(&keys)
    }

    /// Lines that set exactly these keys and the required ones.
    fn exactly(&self, keys: &[&str]) -> String {
        let required = |key: &&str| REQUIRED.contains(key) && !keys.contains(key);
        let required: Vec<_> = self.keys.iter().map(|(name, ..)| *name).filter(required).collect();
        let keys = [&required, keys].concat();
        let value = |key: &str| self.keys.iter().find(|(name, ..)| *name == key).unwrap().1;
        let lines = keys.iter().map(|key| format!("{key} = {}\n", value(key)));
        format!("{}{}", self.before, lines.collect::<String>())
    }

    fn row(&self, one: &str, other: &str) -> Option<usize> {
        let has = |keys: &[&str], key: &str| keys.is_empty() || keys.contains(&key);
        self.rows.iter().position(|(some, others, _)| {
            (has(some, one) && has(others, other)) || (has(some, other) && has(others, one))
        })
    }
}

#[test]
fn each_pair_of_keys_is_obeyed_refused_or_independent() {
    let checks = Checks::new();
    let tests = sources(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").as_path());
    for table in TABLES {
        let known = checks.keys_of(&table);
        let listed: BTreeSet<_> = table.keys.iter().map(|(name, ..)| (*name).to_owned()).collect();
        assert_eq!(
            known.iter().cloned().collect::<BTreeSet<_>>(),
            listed,
            "a key of {} needs a value here",
            table.before
        );
        let mut used = BTreeSet::new();
        for (index, one) in known.iter().enumerate() {
            for other in &known[..index] {
                let row = table.row(one, other).unwrap_or_else(|| panic!("{one} beside {other}: no row"));
                used.insert(row);
                match table.rows[row].2 {
                    Refused(words) => {
                        let faults = checks.faults(&table.exactly(&[one, other]));
                        assert!(faults.contains(words), "{one} beside {other} is accepted: {faults}");
                    }
                    pair => {
                        let config = table.config(&[one, other]);
                        assert_eq!(checks.faults(&config), "", "{one} beside {other}: {config}");
                        if let Obeyed(test) = pair {
                            assert!(
                                tests.contains(&format!("fn {test}(")),
                                "{one} beside {other}: there is no {test}"
                            );
                        }
                    }
                }
            }
        }
        assert_eq!(used.len(), table.rows.len(), "a row is for no pair: {:?} of {}", used, table.before);
    }
}

/// A key that needs another one would have no effect alone.
#[test]
fn a_key_without_what_it_needs_is_refused() {
    let checks = Checks::new();
    for table in TABLES {
        for (key, _, needs) in table.keys.iter().filter(|(.., needs)| !needs.is_empty()) {
            if needs.iter().all(|need| REQUIRED.contains(need)) {
                continue;
            }
            let config = table.exactly(&[key]);
            assert_ne!(checks.faults(&config), "", "{key} without {needs:?} is accepted: {config}");
        }
    }
}

/// Values that disable another key.
#[test]
fn a_value_without_effect_is_refused() {
    let checks = Checks::new();
    let web = "[[route]]\nrespond.status = 200\n[listener.web]\n";
    for (config, fault) in [
        (
            "bind = '127.0.0.1:0'\n[[route]]\nhost = 'a.test'\nrespond = { status = 204, body = 'x' }",
            "respond.body: no effect beside `status = 204`",
        ),
        (
            "bind = '127.0.0.1:0'\n[[route]]\nhost = 'a.test'\nrespond = { status = 304, content_type = 'a/b' }",
            "respond.content_type: no effect beside `status = 304`",
        ),
        (
            "bind = 'unix:/tmp/a.sock'\nallow = '10.0.0.0/8'",
            "allow.0: invalid network `10.0.0.0/8`: no client has an address",
        ),
        ("bind = 'unix:/tmp/a.sock'\ndeny = ['unix', '10.0.0.0/8']", "deny.1: invalid network `10.0.0.0/8`"),
        (
            "bind = 'unix:/tmp/a.sock'\ntrusted_proxies = '10.0.0.0/8'",
            "trusted_proxies.0: invalid network `10.0.0.0/8`",
        ),
        (
            "bind = 'unix:/tmp/a.sock'\nproxy_protocol = '10.0.0.0/8'",
            "proxy_protocol.0: invalid network `10.0.0.0/8`",
        ),
        (
            "bind = '127.0.0.1:0'\nallow = 'unix'",
            "allow.0: invalid network `unix`: no client connects over a Unix socket",
        ),
        (
            "bind = '127.0.0.1:0'\ntrusted_proxies = ['10.0.0.0/8', 'unix']",
            "trusted_proxies.1: invalid network `unix`",
        ),
        ("bind = '127.0.0.1:0'\nproxy_protocol = 'unix'", "proxy_protocol.0: invalid network `unix`"),
        ("bind = '127.0.0.1:0'\nmode = '600'", "mode: no Unix socket in `bind` has permissions"),
        // Both kinds of addresses can appear in a header.
        ("bind = 'unix:/tmp/a.sock'\nproxy_protocol = 'unix'\nallow = '10.0.0.0/8'", ""),
        ("bind = '127.0.0.1:0'\nproxy_protocol = '10.0.0.0/8'\ntrusted_proxies = 'unix'", ""),
        ("bind = ['127.0.0.1:0', 'unix:/tmp/a.sock']\nallow = ['unix', '10.0.0.0/8']", ""),
    ] {
        let faults = checks.faults(&format!("{web}{config}\n"));
        assert!(faults.contains(fault) && faults.is_empty() == fault.is_empty(), "{config}: {faults}");
    }
}

/// An empty revocation list of its own CA, valid for a hundred years.
const CRL: &str = "\
-----BEGIN X509 CRL-----
MIHNMHQCAQEwCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHVGVzdCBDQRcNMjAwMTAx
MDAwMDAwWhgPMjExOTEyMDgwMDAwMDBaoC8wLTAfBgNVHSMEGDAWgBSwJPqLt2W2
cUeRfQVOY9nBsIzFODAKBgNVHRQEAwIBAjAKBggqhkjOPQQDAgNJADBGAiEA4Qs/
/LkN2ixXHDD0+sWWjQgmrGfpn7nV8FTZt0qA/U4CIQDCtWfMmROePWL93ZnQd114
gtbk+TC2cSxUhRb+oQMK+w==
-----END X509 CRL-----
";

/// The source text of all tests.
fn sources(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            all += &sources(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all += &fs::read_to_string(path).unwrap();
        }
    }
    all
}
