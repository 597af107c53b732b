//! The rooms of the lab and their imports, as docs/ARCHITECTURE.md says.

use std::fs;
use std::path::Path;

#[test]
fn the_rooms_use_each_other_as_the_architecture_says() {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(lab.join("../../docs/ARCHITECTURE.md")).expect("is read");
    let differences =
        weir_layers::differences(&lab.join("src"), &document, "## The lab").expect("the sources are read");
    assert!(differences.is_empty(), "docs/ARCHITECTURE.md, \"The lab\":\n{}", differences.join("\n"));
}
