//! The allocator, chosen by a feature.

#[cfg(all(feature = "mimalloc", feature = "jemalloc"))]
compile_error!("one allocator at a time: `mimalloc` or `jemalloc`");

/// Its name in the facts.
pub(crate) const NAME: &str = if cfg!(feature = "mimalloc") {
    "mimalloc"
} else if cfg!(feature = "jemalloc") {
    "jemalloc"
} else {
    "system"
};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(all(feature = "jemalloc", not(feature = "mimalloc")))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
