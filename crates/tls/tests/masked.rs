//! Tests on a processor that seems to lack AVX-512: valgrind hides the feature, and terminates a program that executes
//! an AVX-512 instruction. Skipped, with a message, if `valgrind` is not on the PATH.

use std::process::Command;

/// Runs these tests under valgrind; returns their output. `None` without valgrind.
fn masked(tests: &[&str]) -> Option<String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=none", "--quiet"]).arg(std::env::current_exe().unwrap());
    let Ok(output) = command.args(["--exact", "--nocapture", "--test-threads=1"]).args(tests).output() else {
        println!("skipped: valgrind is not on the PATH");
        return None;
    };
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{}: {stdout}{stderr}", output.status);
    assert!(stdout.contains(&format!("running {} test", tests.len())), "{stdout}");
    Some(stdout)
}

#[test]
fn the_defaults_connect_and_resume_without_avx_512() {
    masked(&[
        "handshake::defaults_negotiate_tls_1_3_with_the_hybrid_group_and_the_cheapest_suite",
        "handshake::every_group_in_both_versions",
        "reconnect::each_handshake_is_of_the_requested_kind",
    ]);
}

#[test]
fn own_curves_are_an_error_without_avx_512() {
    let Some(said) = masked(&[
        "curves::curves_that_this_process_cannot_use_are_an_error_of_the_settings",
        "curves::handshakes_in_both_versions_with_every_group_full_and_resumed",
    ]) else {
        return;
    };
    assert!(said.contains("skipped: invalid value `ifma`: this processor lacks AVX-512"), "{said}");
}
