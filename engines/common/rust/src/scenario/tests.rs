use super::*;
use crate::error::Fault;

const HANDSHAKE: &str = "do handshake\nversion 1.3\nresumption psk\nsuite aes128-gcm\ngroup x25519\n\
    certificate ecdsa-p256\nchain /a b/chain.pem\nkey k.pem\nca ca.pem\ntickets 2\nthreads 2\nwarmup 10\ncount 100\n";

#[test]
fn a_complete_scenario_is_parsed() {
    let Ok(Scenario::Handshake(handshake)) = Scenario::parse(HANDSHAKE) else { panic!("not a handshake") };
    assert_eq!(handshake.connection.chain, PathBuf::from("/a b/chain.pem"));
    assert_eq!(handshake.connection.suite_code(), 0x1301);
    assert_eq!((handshake.connection.tickets, handshake.cold), (2, false));
    assert_eq!(handshake.load, Load { threads: 2, warmup: 10, until: Until::Count(100) });
}

#[test]
fn facts_accept_no_other_keys() {
    assert_eq!(Scenario::parse("do facts"), Ok(Scenario::Facts));
    refused("do facts\ncount 1\n", &["`count`", "`do`"]);
}

#[test]
fn unknown_keys_and_values_are_rejected_by_name() {
    refused("", &["`do`", "`handshake`"]);
    refused("do nothing\n", &["`nothing`", "`facts`", "`primitive`"]);
    refused(&format!("{HANDSHAKE}colour red\n"), &["`colour`", "`tickets`"]);
    refused(&format!("{HANDSHAKE}version 1.3\n"), &["`version`", "duplicate key"]);
    refused(&format!("{HANDSHAKE}bytes 1\n"), &["`bytes`", "`resumption`"]);
    refused(&format!("{HANDSHAKE}\n"), &["line 14"]);
    refused("do\n", &["line 1 `do`"]);
    refused(&changed("suite aes128-gcm", "suite AES128"), &["suite `AES128`", "`chacha20-poly1305`"]);
    refused(&changed("group x25519", "group x25519 "), &["group `x25519 `"]);
    refused(&changed("warmup 10", "warmup +10"), &["warmup `+10`", "0 to"]);
    refused(&changed("warmup 10", "warmup 010"), &["warmup `010`", "0 to"]);
    refused("do facts\r\n", &["do `facts\r`", "`facts`"]);
    refused(&changed("threads 2", "threads 0"), &["threads `0`", "1 to"]);
    refused(&changed("tickets 2", "tickets 99999999999999999999"), &["tickets", "1 to 4"]);
}

#[test]
fn contradictions_are_rejected() {
    refused(&changed("version 1.3", "version 1.2"), &["resumption `psk`", "1.2", "`ticket`"]);
    refused(&changed("resumption psk", "resumption id"), &["resumption `id`", "1.3", "`psk`"]);
    refused(&changed("tickets 2", "tickets 0"), &["tickets `0`", "1 to 4"]);
    refused(&changed("tickets 2\n", ""), &["missing key `tickets`"]);
    refused(&changed("count 100\n", ""), &["`window_ms`", "`count`"]);
    refused(&format!("{HANDSHAKE}window_ms 5\n"), &["`window_ms`", "`count`"]);
    refused(&format!("{HANDSHAKE}config cold\n"), &["config `cold`", "`none`"]);
    refused(&changed("resumption psk", "resumption none\nlocks time"), &["locks `time`", "`none`"]);
    let hybrid = changed("version 1.3\nresumption psk", "version 1.2\nresumption none");
    refused(&hybrid.replace("group x25519", "group x25519mlkem768"), &["`x25519mlkem768`", "`p256`"]);
}

#[test]
fn resumption_implies_the_tickets_of_tls_12() {
    for (resumption, tickets) in [("none", 0), ("id", 0), ("ticket", 1)] {
        let text = changed("version 1.3\nresumption psk", &format!("version 1.2\nresumption {resumption}"));
        let Ok(Scenario::Handshake(handshake)) = Scenario::parse(&text.replace("tickets 2\n", "")) else {
            panic!("{resumption}: not a handshake")
        };
        assert_eq!(handshake.connection.tickets, tickets);
    }
}

#[test]
fn primitives_accept_the_keys_of_their_operation() {
    let text = "do primitive\noperation aes256-gcm-seal\nrecord 1000\nwindow_ms 50\n";
    let Ok(Scenario::Primitive(primitive)) = Scenario::parse(text) else { panic!("not a primitive") };
    assert_eq!((primitive.operation, primitive.record), (Operation::Seal(Suite::Aes256Gcm), 1000));
    assert_eq!(primitive.load.until, Until::Window(Duration::from_millis(50)));
    refused("do primitive\noperation x25519\nrecord 32\ncount 1\n", &["`record`"]);
    refused("do primitive\noperation rsa-2048-sign\ncount 1\n", &["missing key `key`"]);
    refused("do primitive\noperation rsa-2048-sign\nkey k\nrecord 64\ncount 1\n", &["record `64`", "32"]);
    refused("do primitive\noperation rsa-4096-sign\ncount 1\n", &["`rsa-4096-sign`", "`x25519`"]);
}

#[test]
fn transfers_and_memory_need_their_sizes() {
    let connection =
        "version 1.2\nsuite aes256-gcm\ngroup p256\ncertificate rsa-2048\nchain c\nkey k\nca a\n";
    let transfer = format!("do transfer\n{connection}record 512\nwrite 70000\nbytes 1000000\nwindow_ms 9\n");
    let Ok(Scenario::Transfer(transfer)) = Scenario::parse(&transfer) else { panic!("not a transfer") };
    assert_eq!((transfer.connection.record, transfer.write, transfer.bytes), (512, 70000, 1_000_000));
    refused(
        &format!("do transfer\n{connection}record 511\nwrite 1\nbytes 1\ncount 1\n"),
        &["record `511`", "512"],
    );

    let Ok(Scenario::Memory(memory)) = Scenario::parse(&format!("do memory\n{connection}sessions 10\n"))
    else {
        panic!("not memory")
    };
    assert_eq!(memory.pairs, 5);
    refused(&format!("do memory\n{connection}sessions 3\n"), &["sessions `3`", "even"]);
    refused(&format!("do memory\n{connection}sessions 4\nthreads 1\n"), &["`threads`", "`sessions`"]);
}

fn changed(from: &str, to: &str) -> String {
    assert!(HANDSHAKE.contains(from));
    HANDSHAKE.replace(from, to)
}

fn refused(text: &str, words: &[&str]) {
    let error = Scenario::parse(text).expect_err("is refused");
    assert_eq!(error.fault, Fault::Scenario);
    for word in words {
        assert!(error.message.contains(word), "{word} is not in: {}", error.message);
    }
}
