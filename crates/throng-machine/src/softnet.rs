//! `/proc/net/softnet_stat`: the receive path of each CPU, for the whole machine.

use crate::fact::ParseFailure;
use crate::text::hex;

/// The packets of one CPU since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoftnetCpu {
    /// Number of the CPU; before Linux 5.10 the number of the line, which differs when CPUs are
    /// offline.
    pub cpu: u64,
    /// Packets received.
    pub processed: u64,
    /// Packets dropped because the CPU's backlog was full.
    pub dropped: u64,
    /// Times that the receive loop stopped with work left (`net.core.netdev_budget`).
    pub time_squeeze: u64,
    /// Packets in the backlog now; `None` before Linux 5.10.
    pub backlog: Option<u64>,
}

/// Parses the lines of all online CPUs.
pub fn parse(text: &str) -> Result<Vec<SoftnetCpu>, ParseFailure> {
    let cpus: Vec<_> =
        text.lines().enumerate().map(|(index, line)| cpu(index, line)).collect::<Result<_, _>>()?;
    if cpus.is_empty() { Err(ParseFailure("a line for each CPU")) } else { Ok(cpus) }
}

/// Parses one line. Columns were only ever added: 9 up to Linux 2.6, 10 and 11 in 3.x, 13 since
/// 5.10, 15 since 6.4.
fn cpu(index: usize, line: &str) -> Result<SoftnetCpu, ParseFailure> {
    let columns: Vec<_> = line.split_ascii_whitespace().map(hex).collect::<Result<_, _>>()?;
    let [processed, dropped, time_squeeze, ..] = columns[..] else {
        return Err(ParseFailure("at least three columns"));
    };
    Ok(SoftnetCpu {
        cpu: columns.get(12).copied().unwrap_or(index as u64),
        processed,
        dropped,
        time_squeeze,
        backlog: columns.get(11).copied(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    #[test]
    fn a_new_kernel_names_the_cpu_and_an_old_one_does_not() {
        let new = parse(&recorded("linux-6.18", "proc/thread-self/net/softnet_stat")).unwrap();
        assert_eq!(new.iter().map(|cpu| cpu.cpu).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(new[0].backlog, Some(0));

        let old = parse(&recorded("linux-4.19", "proc/thread-self/net/softnet_stat")).unwrap();
        assert_eq!(old[0].dropped, 0x502);
        assert_eq!(old[1].dropped, 0x81);
        assert_eq!(old[1].time_squeeze, 0x1f);
        assert_eq!((old[1].cpu, old[1].backlog), (1, None));
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["", "\n", "00000001 00000002\n", "0000000g 0 0\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
