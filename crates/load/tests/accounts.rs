//! The costs and the bottleneck of a run: the engine against the test server, both in this process.

use std::fs;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use weir_load::ceiling::{Ceilings, Cell, Connection, Kind, SCHEMA, Spread};
use weir_load::result::{Limit, LoadResult, Role};
use weir_load::{Machine, Options, PerConnection, meter, run};
use weir_origin::{Handle, Origin, Settings, Totals};

struct Server {
    handle: Handle,
    urls: [String; 2],
    ca: PathBuf,
    thread: JoinHandle<Totals>,
}

impl Server {
    fn start(null: Option<u64>) -> Self {
        let listen = ["http://127.0.0.1:0", "https://127.0.0.1:0"].map(|url| url.parse().unwrap());
        let settings = Settings { listen: listen.into(), workers: Some(1), null, ..Settings::default() };
        let origin = Origin::bind(&settings).unwrap();
        let urls: Vec<String> = origin.endpoints().map(ToString::to_string).collect();
        let (handle, ca) = (origin.handle(), origin.ca_file().unwrap());
        let thread = thread::spawn(move || origin.run().unwrap());
        Self { handle, urls: urls.try_into().unwrap(), ca, thread }
    }

    fn options(&self, tls: bool, path: &str) -> Options {
        let mut options = Options::new(format!("{}{path}", self.urls[usize::from(tls)]).parse().unwrap());
        options.connections = 8;
        options.phases.window = Duration::from_millis(200);
        options.phases.warmup = Duration::from_millis(50);
        options.tls.ca = Some(self.ca.clone());
        options
    }

    fn stop(self) -> Totals {
        self.handle.drain();
        self.thread.join().unwrap()
    }
}

fn load(options: &Options) -> LoadResult {
    let result = run(options, &std::sync::mpsc::channel().1, |_| {}).unwrap();
    assert_eq!(result.validity, "valid", "{:?}", result.error_examples);
    result
}

#[test]
fn every_part_of_a_run_has_its_cost() {
    let server = Server::start(None);
    let mut options = server.options(true, "/bytes/10");
    options.workers = 2;
    let own = std::process::id();
    options.servers = vec![
        meter::process(&format!("origin={own}")).unwrap(),
        // Any shell command that prints seconds.
        meter::command(&format!("awk '{{printf \"%.2f\", ($14 + $15) / 100}}' /proc/{own}/stat")).unwrap(),
    ];
    options.policy.per_connection = PerConnection::Requests { least: 1, most: 1 };
    let new = load(&options);
    assert_eq!(new.engine.workers.len(), 2);
    assert!(new.engine.workers.iter().all(|worker| worker.cpu_us > 0.0), "{:?}", new.engine.workers);
    let workers: f64 = new.engine.workers.iter().map(|worker| worker.cpu_us).sum();
    assert!(workers <= new.engine.cost.cpu_us * 1.01, "the process includes its workers and the server");
    let roles: Vec<Role> = new.servers.iter().map(|server| server.role).collect();
    assert_eq!(roles, [Role::Origin, Role::Gateway]);
    assert!(new.servers[1].source.contains("/stat (scaled from 0."), "{}", new.servers[1].source);
    for cost in [&new.engine.cost, &new.servers[0].cost, &new.servers[1].cost] {
        assert!(cost.cpu_us > 0.0 && cost.cpu_us_per_request > Some(0.0), "{cost:?}");
        assert_eq!(cost.cpu_us_per_handshake, Some(cost.cpu_us / new.handshakes.in_window as f64));
    }

    options.policy.per_connection = PerConnection::Unlimited;
    let kept = load(&options);
    assert_eq!(kept.engine.cost.cpu_us_per_handshake, None, "no handshake in the window");
    server.stop();
}

#[test]
fn the_engine_works_with_the_null_server() {
    let server = Server::start(Some(65_536));
    let mut answered = 0;
    for tls in [false, true] {
        let mut options = server.options(tls, "/bytes/65536");
        let kept = load(&options);
        assert_eq!(kept.connections_opened, 8);
        options.policy.per_connection = PerConnection::Requests { least: 1, most: 1 };
        options.policy.resume = if tls { 100.0 } else { 0.0 };
        let new = load(&options);
        assert_eq!(new.handshakes.resumed.is_empty(), !tls);
        answered += kept.answered_in_all + new.answered_in_all;
    }
    let totals = server.stop();
    assert_eq!((totals.requests, totals.answers, totals.failed), (answered, answered, 0));
}

#[test]
fn a_run_near_its_ceiling_is_limited_by_load() {
    let server = Server::start(None);
    let mut options = server.options(false, "/bytes/10");
    let file = std::env::temp_dir().join(format!("weir-accounts-{}", std::process::id()));
    options.ceilings = Some(file.clone());
    let with = |per_worker: f64, machine: Machine| {
        let rate = Spread { median: per_worker, min: per_worker, max: per_worker };
        let cell = Cell {
            kind: Kind::new(None, Connection::KeepAlive, 0),
            per_worker: rate,
            cpu_us: Spread::default(),
            server_cpu_us: Spread::default(),
            limit: Limit::Load,
            extrapolated: false,
        };
        let weir = env!("CARGO_PKG_VERSION").to_owned();
        let ceilings = Ceilings { schema: SCHEMA, weir, machine, cells: vec![cell], ..Ceilings::default() };
        fs::write(&file, serde_json::to_string(&ceilings).unwrap()).unwrap();
        load(&options)
    };
    let near = with(1.0, Machine::read());
    let ceiling = near.ceiling.unwrap();
    assert_eq!((ceiling.cell.as_str(), ceiling.per_worker), ("cleartext-keep-alive-0", 1.0));
    assert_eq!((ceiling.share, near.limit), (near.requests_per_second, Limit::Load));

    let far = with(1e12, Machine::read());
    assert!(far.ceiling.unwrap().share < 0.01 && far.warnings.is_empty());

    let elsewhere = with(1.0, Machine { cpu: "another".into(), ..Machine::read() });
    assert_eq!(elsewhere.ceiling, None);
    assert!(elsewhere.warnings[0].contains("on another machine (another"), "{:?}", elsewhere.warnings);
    fs::remove_file(&file).unwrap();
    server.stop();
}
