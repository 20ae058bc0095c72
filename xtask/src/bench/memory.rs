//! The user memory of other processes, read from outside.

use std::fs;

/// Returns the private memory of a process: `RssAnon`, without the files that it maps.
pub(super) fn private_bytes(pid: u32) -> Result<u64, String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))
        .map_err(|e| format!("cannot read the memory of process {pid}: {e}"))?;
    parse(&text).ok_or_else(|| format!("process {pid} has no memory: it has ended"))
}

fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found_and_its_unit_applied() {
        assert_eq!(parse("Name:\ta\nRssAnon:\t     280 kB\nRssFile:\t1 kB\n"), Some(286_720));
        assert_eq!(parse("Name:\ta\nState:\tZ (zombie)\n"), None);
    }

    #[test]
    fn memory_that_is_touched_is_seen_from_outside() {
        let before = private_bytes(std::process::id()).unwrap();
        let touched = std::hint::black_box(vec![1_u8; 32 << 20]);
        let grown = private_bytes(std::process::id()).unwrap().saturating_sub(before);
        assert!(grown > 24 << 20, "{grown}");
        drop(touched);
    }
}
