//! An upgrade keeps settings made at run time.

use super::stand_in::StandIn;
use super::{GET, Line, RELOAD, UPGRADE, named};
use crate::common::{Client, DEADLINE, Upstream, poll_until};
use serde_json::Value;
use std::fs;
use std::thread;

/// More servers than fit into one message of the hand-over.
const MANY: u16 = 100;

fn config(servers: &[&Upstream]) -> String {
    let urls = |addresses: Vec<String>| {
        addresses.iter().map(|address| format!("'http://{address}'")).collect::<Vec<_>>().join(", ")
    };
    let app = urls(servers.iter().map(|server| server.address.to_string()).collect());
    let many = urls((1..=MANY).map(|port| format!("127.0.0.1:{port}")).collect());
    format!(
        "workers = 2\n[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nservice = 'app'\n\
         [service.app]\nservers = [{app}]\n[service.many]\nservers = [{many}]\n"
    )
}

/// The status and text of a response about a server.
fn server(line: &Line, method: &str, service: &str, server: &str) -> (u16, String) {
    let answer = line
        .ask(&format!("{method} /services/{service}/servers/{server} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    (answer.status, answer.text().to_owned())
}

fn shown(line: &Line, name: &str) -> Value {
    let (status, text) = server(line, "GET", "app", name);
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn servers_that_were_drained_or_weighted_stay_so() {
    let [a, b] = ["a", "b"].map(named);
    let [first, second] = [&a, &b].map(|server| server.address.to_string());
    let line = Line::new(&config(&[&a, &b]), 1);
    for (name, query) in [(&first, "state=drain"), (&second, "weight=7")] {
        assert_eq!(server(&line, "POST", "app", &format!("{name}?{query}")).0, 200);
    }
    for port in 1..=MANY {
        assert_eq!(server(&line, "POST", "many", &format!("127.0.0.1:{port}?weight={port}")).0, 200);
    }
    for _ in 0..2 {
        line.upgrade();
        for _ in 0..20 {
            // On new connections, so that each worker gets some.
            assert_eq!(Client::connect(line.weir.address(), None).ask(GET).fields("x-server"), ["b"]);
        }
        assert_eq!(shown(&line, &first)["state"], "drained");
        assert_eq!(shown(&line, &second)["weight"], 7);
        for port in 1..=MANY {
            let (_, text) = server(&line, "GET", "many", &format!("127.0.0.1:{port}"));
            assert!(text.contains(&format!("\"weight\":{port},")), "{text}");
        }
        assert_eq!(line.ask(RELOAD).status, 200);
        assert_eq!(shown(&line, &first)["state"], "drained", "a reload keeps it, too");
    }
    assert!(a.requests().is_empty());
    // A server that was once removed from the file returns as a new one.
    line.write(&config(&[&b]));
    line.upgrade();
    line.write(&config(&[&a, &b]));
    line.upgrade();
    assert_eq!(shown(&line, &first)["state"], "up");
    assert_eq!(shown(&line, &second)["weight"], 7);
    line.stop();
}

/// The gateway rejects a change that an upgrade would lose.
#[test]
fn no_server_is_changed_while_an_upgrade_goes_on() {
    if let Some((_, mut stand_in)) = StandIn::of_process() {
        stand_in.take_turn();
        stand_in.mark("went", "");
        stand_in.wait_for("on");
        return stand_in.say("{\"failed\":{\"why\":\"no room\"}}");
    }
    let a = named("a");
    let line = Line::new(&config(&[&a]), 1);
    line.play("gateway::upgrade::state::no_server_is_changed_while_an_upgrade_goes_on", "waits");
    let name = a.address.to_string();
    let drain = || server(&line, "POST", "app", &format!("{name}?state=drain"));
    thread::scope(|scope| {
        let asked = scope.spawn(|| line.ask(UPGRADE));
        poll_until(DEADLINE, "its turn", || line.file("went").exists());
        assert_eq!(drain(), (409, "an upgrade is going on: ask again when it is over\n".to_owned()));
        assert_eq!(shown(&line, &name)["state"], "up");
        fs::write(line.file("on"), "").unwrap();
        assert_eq!(asked.join().unwrap().status, 409);
    });
    assert_eq!(drain().0, 200);
    assert_eq!(shown(&line, &name)["state"], "drained");
}
