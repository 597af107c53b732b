fn main() {
    engine_build::engine(&engine_build::openssl(&openssl_src::source_dir()));
}
