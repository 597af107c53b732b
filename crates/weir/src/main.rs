//! The `weir` program: one file per subcommand.
fn main() {}
