//! Replays a fuzzer's committed corpus. The tests of several crates include this file, each for its own corpus.

use std::fs;
use std::path::Path;

/// Checks each input in the directory of this fuzz target; panics if there are fewer than `least`, in case inputs were
/// lost.
pub(crate) fn replay(target: &str, least: usize, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut inputs = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        check(&fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= least, "{inputs} inputs in {}", folder.display());
}
