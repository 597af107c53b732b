//! A full disk.

use super::GET;
use crate::common::{Client, DEADLINE, Weir, poll_until};
use crate::gateway::metric;
use std::os::unix::fs::symlink;

#[test]
fn with_a_full_disk_lines_of_the_access_log_are_lost_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let [link, file] = ["access.log", "file"].map(|name| folder.path().join(name));
    symlink("/dev/full", &link).unwrap();
    let config = format!(
        "workers = 2
        [listener.web]
        bind = '127.0.0.1:0'
        [[route]]
        respond.status = 200
        [log]
        access = '{}'
        [admin]
        bind = '127.0.0.1:0'",
        link.display()
    );
    let weir = Weir::configured(&config, 1);
    let lost = || metric(&weir, "weir_access_log_lost_lines_total");
    let mut asked = 0;
    let mut ask = || {
        assert_eq!(Client::connect(weir.address(), None).ask(GET).status, 200);
        asked += 1;
    };
    poll_until(DEADLINE, "several writes fail", || {
        ask();
        lost() > 100
    });
    weir.wait_for_stderr(&["log.access", "No space left on device", "lines are lost"]);
    // The disk has free space again.
    let next = folder.path().join("next");
    symlink(&file, &next).unwrap();
    std::fs::rename(&next, &link).unwrap();
    poll_until(DEADLINE, "lines are written", || {
        ask();
        std::fs::read_to_string(&file).is_ok_and(|text| text.lines().count() > 10)
    });
    weir.wait_for_stderr(&["log.access", "lines are written again"]);
    let before = lost();
    let ended = weir.stop();
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.stderr.matches("lines are lost").count(), 1, "{}", ended.stderr);
    let lines = std::fs::read_to_string(&file).unwrap().lines().count() as u64;
    assert_eq!(lines + before, asked as u64, "each line is written or counted");
}
