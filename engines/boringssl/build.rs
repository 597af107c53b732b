use engine_build::{cmake, crate_source, engine};

fn main() {
    let source = crate_source("boring-sys");
    let mut library = cmake(&source.folder.join("deps/boringssl"), &[]);
    library.version = Some(source.version);
    engine(&library);
}
