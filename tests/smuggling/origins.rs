//! Real servers. Each reads the request's body, and returns its interpretation of the request line in the field
//! `X-Served`. Their programs are in the directory `origins`.

use crate::common::{Certificates, go_program, installed_peer, peer};
use crate::servers::Server;
use std::path::PathBuf;
use std::process::Command;

pub(super) fn nginx() -> Option<Server> {
    let program = peer("nginx")?;
    let configuration = std::fs::read_to_string(own("nginx.conf")).unwrap();
    Some(Server::nginx_with(&program, tempfile::tempdir().unwrap(), &configuration, &Certificates::new()))
}

pub(super) fn go() -> Option<Server> {
    let program = go_program("smuggling-server", &own("main.go"), &[])?;
    Some(Server::script(&mut Command::new(program), None))
}

pub(super) fn node() -> Option<Server> {
    Some(Server::script(Command::new(peer("node")?).arg(own("node.js")), None))
}

pub(super) fn python() -> Option<Server> {
    Some(Server::script(Command::new(peer("python3")?).arg(own("python.py")), None))
}

pub(super) fn h11() -> Option<Server> {
    Some(Server::script(Command::new(installed_peer("python/bin/python")?).arg(own("with_h11.py")), None))
}

fn own(name: &str) -> PathBuf {
    super::own("origins").join(name)
}
