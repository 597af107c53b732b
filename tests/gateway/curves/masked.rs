//! A processor without AVX-512, emulated by valgrind, which kills a program that executes an AVX-512 instruction.

use super::{GET, config};
use crate::common::sessions::{connect, connector, resumes};
use crate::common::{Certificates, Client, DEADLINE, Ended, Weir, peer, poll_until};
use crate::gateway::named;
use std::fs;
use std::path::Path;
use std::process::Command;
use weir_tls::Version;

fn masked(valgrind: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(valgrind);
    command.args(["--tool=none", "--quiet", env!("CARGO_BIN_EXE_weir")]).args(args);
    command
}

fn ended(mut command: Command) -> Ended {
    let output = command.output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    Ended { code: output.status.code(), stdout, stderr }
}

#[test]
fn without_avx_512_the_defaults_are_valid_and_own_curves_are_refused_with_their_place() {
    let Some(valgrind) = peer("valgrind") else { return };
    let own = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let path = file.to_str().unwrap();
    // Each run takes a few seconds.
    let ended = |args: &[&str]| ended(masked(&valgrind, args));
    fs::write(&file, config(&own, "", "insecure = true", "https://127.0.0.1:1")).unwrap();
    let default = ended(&["check", "--config", path, "--explain"]);
    let curves = default.stdout.matches("curves              aws-lc").count();
    assert_eq!((default.code, curves), (Some(0), 2), "{}", default.stderr);
    for (command, curves, is_service, line, place) in [
        ("serve", "ifma", false, 4, "listener.web.tls.curves"),
        ("check", "ifma-x25519", true, 11, "service.app.tls.curves"),
    ] {
        let key = format!("curves = '{curves}'");
        let config = match is_service {
            false => config(&own, &key, "", "http://127.0.0.1:1"),
            true => config(&own, "", &format!("insecure = true, {key}"), "https://127.0.0.1:1"),
        };
        fs::write(&file, config).unwrap();
        let fault = format!("{path}:{line}: {place}: invalid value `{curves}`: this processor lacks AVX-512");
        let refused = ended(&[command, "--config", path]);
        assert!(refused.code == Some(2) && refused.stderr.contains(&fault), "{}", refused.stderr);
        assert_eq!(refused.stderr.matches("lacks AVX-512").count(), 1, "{}", refused.stderr);
    }
}

#[test]
fn without_avx_512_the_defaults_serve_and_a_reload_to_own_curves_is_refused() {
    let Some(valgrind) = peer("valgrind") else { return };
    let (own, upstream) = (Certificates::new(), named("a"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let url = format!("http://{}", upstream.address);
    fs::write(&file, config(&own, "", "", &url)).unwrap();
    let weir = Weir::of_command(masked(&valgrind, &["serve", "--config", file.to_str().unwrap()]), None, 1);
    // Until 3.20, valgrind lacks epoll_pwait2(2), which every worker needs.
    let (mut is_unable, mut is_ready) = (false, false);
    poll_until(DEADLINE, "the gateway is ready or has ended", || {
        is_unable = weir.stderr().contains("Function not implemented");
        is_ready = !is_unable && connect(weir.address(), &connector(&own.ca, &[])).is_ok();
        is_unable || is_ready
    });
    if is_unable {
        println!("skipped: this valgrind has no epoll_pwait2");
        return;
    }
    for version in Version::ALL {
        let connector = connector(&own.ca, &[version]);
        assert!(!resumes(weir.address(), &connector), "{version}");
        assert!(resumes(weir.address(), &connector), "{version}");
    }
    fs::write(&file, config(&own, "curves = 'ifma'", "", &url)).unwrap();
    let answer = weir.ask_admin("POST /reload");
    let text = answer.text();
    assert!(answer.status == 409 && text.contains("this processor lacks AVX-512"), "{text}");
    assert_eq!(Client::connect(weir.address(), Some(own.session())).ask(GET).status, 200);
}
