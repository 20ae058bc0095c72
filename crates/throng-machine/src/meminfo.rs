//! `/proc/meminfo`: the machine's memory, and the part that the kernel's own objects, such as
//! sockets, use.

use crate::fact::ParseFailure;
use crate::text::{after, next};

/// Memory of the whole machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineMemory {
    /// Total memory.
    pub total_bytes: u64,
    /// Memory that programs can still use without swapping; `None` before Linux 3.14.
    pub available_bytes: Option<u64>,
    /// Memory in the kernel's object caches.
    pub slab_bytes: u64,
    /// Memory in use by programs and the kernel, without the file cache. This is not the total less
    /// `available_bytes`: the kernel counts half of each socket's inode as available.
    pub used_bytes: u64,
}

/// Bytes of a page on x86-64, and on arm64 in most distributions.
pub const PAGE_BYTES: u64 = 4_096;

/// File with the machine's memory.
pub const PATH: &str = "proc/meminfo";

/// Parses `/proc/meminfo`.
pub fn parse(text: &str) -> Result<MachineMemory, ParseFailure> {
    let kib = |head| {
        after(text, head)
            .map(|line| next(&mut line.split_ascii_whitespace()).map(|n| n.saturating_mul(1024)))
    };
    let total_bytes = kib("MemTotal:").ok_or(ParseFailure("MemTotal"))??;
    let mut used_bytes = total_bytes;
    for (head, what) in [("MemFree:", "MemFree"), ("Buffers:", "Buffers"), ("Cached:", "Cached")] {
        used_bytes = used_bytes.saturating_sub(kib(head).ok_or(ParseFailure(what))??);
    }
    Ok(MachineMemory {
        total_bytes,
        available_bytes: kib("MemAvailable:").transpose()?,
        slab_bytes: kib("Slab:").ok_or(ParseFailure("Slab"))??,
        used_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    #[test]
    fn an_old_kernel_does_not_report_available_memory() {
        let new = parse(&recorded("linux-6.18", PATH)).unwrap();
        assert!(new.available_bytes.unwrap() < new.total_bytes);
        let old = parse(&recorded("linux-3.10", PATH)).unwrap();
        assert_eq!(old.available_bytes, None);
        assert_eq!((old.total_bytes, old.slab_bytes), (8_010_184 * 1024, 412_040 * 1024));
        assert!(parse("MemTotal: 1 kB\n").is_err());
        let text = "MemTotal: 90 kB\nMemFree: 40 kB\nBuffers: 3 kB\nCached: 7 kB\nSwapCached: 9 \
                    kB\nSlab: 5 kB\n";
        assert_eq!(parse(text).unwrap().used_bytes, 40 * 1024);
    }
}
