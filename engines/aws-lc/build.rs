use engine_build::{cmake, crate_source, engine};

fn main() {
    let source = crate_source("aws-lc-sys").folder.join("aws-lc");
    let definitions = [
        "-DBUILD_TESTING=OFF",
        "-DBUILD_TOOL=OFF",
        "-DDISABLE_GO=ON",
        "-DDISABLE_PERL=ON",
        "-DENABLE_SOURCE_MODIFICATION=OFF",
    ];
    engine(&cmake(&source, &definitions));
}
