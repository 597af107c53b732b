//! Rules for the process.

use super::{GET, OK, cleartext};
use crate::common::{Client, DEADLINE, Peer, Switch, Upstream, Weir, poll_until};
use crate::gateway::dns::server::{NameServer, Says};
use crate::gateway::{config_to, metric};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::net::Ipv4Addr;
use weir_http::Method;

#[test]
fn rule_23_a_drain_announces_the_end_and_closes_idle_connections_a_little_later() {
    let answer = Switch::default();
    let gate = answer.clone();
    let case = cleartext(&[], move |peer| {
        while let Some(request) = peer.request() {
            if request.head.contains("/slow") {
                gate.wait();
            }
            peer.answer(OK);
        }
    });
    let (mut idle, mut busy) = (case.client(), case.client());
    assert!(!idle.ask(GET).says_close());
    busy.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    case.upstream.wait_for_requests(2);
    case.weir.terminate();
    idle.expect_end();
    answer.throw();
    let last = busy.answer(Method::Get);
    assert!(last.status == 200 && last.says_close(), "{}", last.head);
    busy.expect_end();
    case.stop();
}

#[test]
fn rule_26_names_are_resolved_in_the_background_and_the_last_good_answer_stays() {
    const NAME: &str = "rule.test";
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
    let names = NameServer::start();
    names.say_addresses(NAME, 1, &[Ipv4Addr::LOCALHOST]);
    let weir = Weir::configured(
        &format!(
            "workers = 1
            [listener.web]
            bind = '127.0.0.1:0'
            [service.app]
            servers = 'http://{NAME}:{}'
            [[route]]
            service = 'app'
            [dns]
            timeout = '200ms'
            servers = '{}'",
            upstream.address.port(),
            names.address
        ),
        1,
    );
    names.say(NAME, Says::Nothing);
    let asked = names.asked(NAME);
    // Requests get responses while the name server does not respond, and do not cause queries.
    let mut requests = 0;
    poll_until(DEADLINE, "questions in the background", || {
        assert_eq!(Client::connect(weir.address(), None).ask(GET).status, 200);
        requests += 1;
        names.asked(NAME) >= asked + 2
    });
    weir.wait_for_stderr(&[NAME, "stay"]);
    assert_eq!(Client::connect(weir.address(), None).ask(GET).status, 200);
    assert!(requests >= 2);
}

#[test]
fn rule_27_there_is_a_worker_for_each_allowed_core() {
    // The allowed cores of this thread, which its child processes inherit.
    let allowed = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|core| allowed.is_set(*core)).unwrap();
    let mut one = CpuSet::new();
    one.set(first);
    let workers = || {
        let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
        let weir = Weir::start(&[
            "serve",
            "--listen",
            "http://127.0.0.1:0",
            "--to",
            &format!("http://{}", upstream.address),
        ]);
        let tasks = std::fs::read_dir(format!("/proc/{}/task", weir.pid())).unwrap();
        let name =
            |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        tasks.flatten().map(name).filter(|name| name.starts_with("worker")).count()
    };
    let all = workers();
    assert!((1..=allowed.count() as usize).contains(&all), "a quota may leave fewer: {all}");
    sched_setaffinity(None, &one).unwrap();
    let alone = workers();
    sched_setaffinity(None, &allowed).unwrap();
    assert_eq!(alone, 1);
}

#[test]
fn rule_29_a_process_without_descriptors_goes_on_when_it_has_some_again() {
    let upstream = Upstream::start(None, |peer: &mut Peer| peer.serve(OK));
    let weir = Weir::limited(64, &config_to(&upstream, "[admin]\nbind = '127.0.0.1:0'"), 1);
    // Each client has begun a request, since the gateway may close idle connections.
    let begun = || {
        let mut client = Client::connect(weir.address(), None);
        client.send("GET / HTTP/1.1\r\n");
        client
    };
    let asked = |client: &mut Client| {
        client.send("Host: h\r\n\r\n");
        client.answer(Method::Get).status
    };
    let mut crowd: Vec<_> = (0..60).map(|_| begun()).collect();
    weir.wait_for_stderr(&["accept"]);
    assert!(metric(&weir, "weir_accept_rests_total") >= 1, "the admin address answers");
    // Accepted clients are served: descriptors are reserved for their server connections.
    assert_eq!(asked(&mut crowd[0]), 200);
    crowd.drain(..40);
    let mut last = crowd.pop().unwrap();
    assert_eq!(asked(&mut last), 200, "it has waited in the queue");
    drop((crowd, last));
    poll_until(DEADLINE, "the admin address answers", || metric(&weir, "weir_clients") == 0);
}
