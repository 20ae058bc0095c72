//! Connection tracking: the fill of its table, and the packets that it dropped.
//!
//! The count and the drops belong to one network namespace; the limit is the first namespace's for
//! all. If the module is not loaded, the files do not exist, and nothing is tracked.

use crate::fact::ParseFailure;
use crate::text::{hex, number};

/// File with the number of entries.
pub const COUNT_PATH: &str = "proc/sys/net/netfilter/nf_conntrack_count";
/// File with the most entries.
pub const MAX_PATH: &str = "proc/sys/net/netfilter/nf_conntrack_max";
/// File with the drops, by CPU.
pub const STAT_PATH: &str = "proc/thread-self/net/stat/nf_conntrack";

/// Sums over all CPUs since the module was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConntrackStat {
    /// Packets dropped because the table was full and a new entry could not be made.
    pub dropped: u64,
    /// Entries removed early to make room.
    pub early_dropped: u64,
    /// New connections that could not be added.
    pub insert_failed: u64,
}

/// Parses a count or the limit.
pub fn parse_count(text: &str) -> Result<u64, ParseFailure> {
    number(text.trim())
}

/// Parses the table of [`STAT_PATH`], whose columns differ between kernels and are found by name.
pub fn parse_stat(text: &str) -> Result<ConntrackStat, ParseFailure> {
    let mut lines = text.lines();
    let names: Vec<_> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
    let column = |name| {
        names
            .iter()
            .position(|found| *found == name)
            .ok_or(ParseFailure("a column for each kind of drop"))
    };
    let columns = [column("drop")?, column("early_drop")?, column("insert_failed")?];
    let mut sums = [0_u64; 3];
    for line in lines {
        let values: Vec<_> = line.split_ascii_whitespace().collect();
        for (sum, column) in sums.iter_mut().zip(columns) {
            let value = values.get(column).ok_or(ParseFailure("a value in each column"))?;
            *sum = sum.saturating_add(hex(value)?);
        }
    }
    let [dropped, early_dropped, insert_failed] = sums;
    Ok(ConntrackStat { dropped, early_dropped, insert_failed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    #[test]
    fn drops_are_summed_over_cpus_in_every_layout() {
        let old = parse_stat(&recorded("linux-4.19", STAT_PATH)).unwrap();
        assert_eq!(old, ConntrackStat { dropped: 0x1a + 3, early_dropped: 0x10, insert_failed: 2 });
        let new = parse_stat(&recorded("linux-6.18", STAT_PATH)).unwrap();
        assert_eq!(new, ConntrackStat::default());
        assert_eq!(parse_count(&recorded("linux-6.18", MAX_PATH)), Ok(262_144));
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["", "entries found\n1 2\n", "drop early_drop insert_failed\n1 2\n"] {
            assert!(parse_stat(text).is_err(), "{text:?}");
        }
    }
}
