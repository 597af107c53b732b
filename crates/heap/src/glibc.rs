//! glibc functions that Rust's standard library lacks.
#![allow(unsafe_code)]

use std::fs;

/// Sets the two sizes from which the allocator returns memory immediately: 1 MiB for a single piece, 4 MiB at the end
/// of a heap. By default, freeing a large piece may raise both sizes for good, and the process then keeps that much
/// memory. Call it at the start of a program: it does nothing if other threads are running.
pub fn return_early() {
    let threads = fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads != 1 {
        return;
    }
    // SAFETY: mallopt(3) takes two numbers and no pointer. It is unsafe only if other threads run, and none do.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 4 << 20);
    }
}

/// Returns free pages between live allocations to the system. This takes about 10 ms for 100 MiB, during which
/// allocations in other threads may wait.
pub fn trim() {
    // SAFETY: malloc_trim(3) takes a number and no pointer, keeps live allocations as they are, and is MT-Safe.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(test)]
mod tests {
    /// `free` keeps the pages of holes between live allocations, and `trim` returns them.
    #[test]
    fn pages_between_live_allocations_return_to_the_system() {
        let mut kept: Vec<Option<Box<[u8; 16 * 1024]>>> =
            (0..4096).map(|_| Some(Box::new([1; 16 * 1024]))).collect();
        for nth in (0..kept.len()).filter(|nth| nth % 16 != 0) {
            kept[nth] = None;
        }
        let before = resident();
        super::trim();
        let after = resident();
        assert!(before - after > 40 << 20, "{before} bytes, then {after}");
        assert_eq!(kept.iter().flatten().count(), 256);
    }

    /// Resident bytes of this process.
    fn resident() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }
}
