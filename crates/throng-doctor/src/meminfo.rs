//! `/proc/meminfo`: what is left of the machine's memory, and what the kernel's own objects
//! (sockets among them) take.

use crate::fact::ParseFailure;
use crate::text::{after, next};

/// Bytes of the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineMemory {
    /// All of it.
    pub total_bytes: u64,
    /// What programs can still take without swapping; none before Linux 3.14.
    pub available_bytes: Option<u64>,
    /// What the kernel's object caches hold.
    pub slab_bytes: u64,
    /// What programs and the kernel hold, all but copies of files. Not what is left of `available_bytes`: that takes a half of each
    /// socket's inode for something that could be freed.
    pub used_bytes: u64,
}

/// Bytes of a page of x86-64, and of arm64 as distributions build it.
pub const PAGE_BYTES: u64 = 4_096;

/// Where it is.
pub const PATH: &str = "proc/meminfo";

/// Reads `/proc/meminfo`.
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
    fn an_old_kernel_does_not_say_what_is_available() {
        let new = parse(&recorded("linux-6.18", PATH)).unwrap();
        assert!(new.available_bytes.unwrap() < new.total_bytes);
        let old = parse(&recorded("linux-3.10", PATH)).unwrap();
        assert_eq!(old.available_bytes, None);
        assert_eq!((old.total_bytes, old.slab_bytes), (8_010_184 * 1024, 412_040 * 1024));
        assert!(parse("MemTotal: 1 kB\n").is_err());
        let text = "MemTotal: 90 kB\nMemFree: 40 kB\nBuffers: 3 kB\nCached: 7 kB\nSwapCached: 9 kB\nSlab: 5 kB\n";
        assert_eq!(parse(text).unwrap().used_bytes, 40 * 1024);
    }
}
