//! Calls of glibc that Rust's standard library does not have.
#![allow(unsafe_code)]

use std::fs;

/// Sets from which size on the allocator returns memory at once: 1 MiB in one piece, or 4 MiB at the end of a heap. By default it raises
/// both with the largest piece that was ever freed, and then keeps as much for good. For the start of a program: does nothing if other
/// threads run already.
pub fn return_early() {
    let threads = fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads != 1 {
        return;
    }
    // SAFETY: mallopt(3) takes two numbers and no pointer. It is unsafe only beside other threads, and there are none.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 4 << 20);
    }
}

/// Returns free pages between live allocations to the system. This takes about 10 ms for 100 MiB; meanwhile other threads that allocate
/// may wait.
pub fn trim() {
    // SAFETY: malloc_trim(3) takes a number and no pointer, keeps live allocations as they are, and is MT-Safe.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(test)]
mod tests {
    /// Holes between live allocations: `free` keeps their pages, `trim` returns them.
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
