fn main() {
    engine_build::engine(&engine_build::system());
}
