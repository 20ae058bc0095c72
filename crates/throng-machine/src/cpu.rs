//! `/proc/stat`: CPU time of all CPUs since the machine was started.

use throng_measure::MachineUse;

use crate::fact::ParseFailure;
use crate::text::{next, number};

/// Parses the first line, and counts the lines of single CPUs.
pub fn parse(text: &str) -> Result<MachineUse, ParseFailure> {
    let line = text.lines().next().and_then(|line| line.strip_prefix("cpu "));
    let mut words = line.ok_or(ParseFailure("the line of all CPUs"))?.split_ascii_whitespace();
    let [user, nice, system, idle] =
        [next(&mut words)?, next(&mut words)?, next(&mut words)?, next(&mut words)?];
    // Added in Linux 2.5.41 and later. The columns after these (guest and guest_nice) are already
    // part of user and nice.
    let mut later = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let [iowait, irq, softirq, steal] = [later(), later(), later(), later()];

    let cpus = text.lines().filter(|line| is_one_cpu(line)).count();
    let sum = |ticks: &[u64]| {
        ticks.iter().fold(0_u64, |sum, ticks| sum.saturating_add(*ticks)).saturating_mul(TICK_US)
    };
    Ok(MachineUse {
        cpus: cpus as u64,
        cpu_busy_us: sum(&[user, nice, system, irq, softirq]),
        cpu_idle_us: sum(&[idle, iowait]),
        cpu_stolen_us: sum(&[steal]),
    })
}

/// Busy and idle time of one CPU, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OneCpu {
    /// Number of the CPU.
    pub cpu: u32,
    /// Time neither idle nor stolen.
    pub busy_us: u64,
    /// Time idle, or waiting for a disk.
    pub idle_us: u64,
}

/// Parses the lines of single CPUs.
pub fn parse_each(text: &str) -> Result<Vec<OneCpu>, ParseFailure> {
    let lines = text.lines().filter(|line| is_one_cpu(line));
    let read = |line: &str| -> Result<OneCpu, ParseFailure> {
        let mut words = line.trim_start_matches("cpu").split_ascii_whitespace();
        let cpu =
            u32::try_from(next(&mut words)?).map_err(|_| ParseFailure("the number of a CPU"))?;
        let [user, nice, system, idle] =
            [next(&mut words)?, next(&mut words)?, next(&mut words)?, next(&mut words)?];
        let mut later = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        let [iowait, irq, softirq] = [later(), later(), later()];
        let busy = [user, nice, system, irq, softirq]
            .iter()
            .fold(0, |sum: u64, ticks| sum.saturating_add(*ticks));
        Ok(OneCpu {
            cpu,
            busy_us: busy.saturating_mul(TICK_US),
            idle_us: idle.saturating_add(iowait).saturating_mul(TICK_US),
        })
    };
    lines.map(read).collect()
}

/// Parses the time that all CPUs spent in soft interrupts, where the kernel receives packets, in
/// microseconds. Unless the kernel accounts interrupts separately (`CONFIG_IRQ_TIME_ACCOUNTING`),
/// soft interrupts that ran in the middle of a thread are in that thread's time too.
pub fn parse_softirq_us(text: &str) -> Result<u64, ParseFailure> {
    let line = text.lines().next().and_then(|line| line.strip_prefix("cpu "));
    let mut words = line.ok_or(ParseFailure("the line of all CPUs"))?.split_ascii_whitespace();
    let softirq = words.nth(6).map_or(Ok(0), number)?;
    Ok(softirq.saturating_mul(TICK_US))
}

/// Reports whether a line is that of a single CPU.
fn is_one_cpu(line: &str) -> bool {
    line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Microseconds of a tick: `USER_HZ` is 100 on every architecture that throng is built for,
/// whatever `CONFIG_HZ` is.
pub(crate) const TICK_US: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    #[test]
    fn busy_idle_and_stolen_are_kept_apart() {
        let found = parse(&recorded("linux-4.19", "proc/stat")).unwrap();
        assert_eq!(
            found,
            MachineUse {
                cpus: 4,
                cpu_busy_us: (4_705 + 150 + 1_120 + 30 + 75) * TICK_US,
                cpu_idle_us: (1_617_790 + 250) * TICK_US,
                cpu_stolen_us: 412 * TICK_US,
            }
        );
        assert_eq!(parse(&recorded("linux-6.18", "proc/stat")).unwrap().cpus, 2);
        assert_eq!(parse_softirq_us(&recorded("linux-4.19", "proc/stat")), Ok(75 * TICK_US));
    }

    #[test]
    fn each_cpu_is_listed_and_all_of_them_are_the_whole() {
        let text = recorded("linux-6.18", "proc/stat");
        let each = parse_each(&text).unwrap();
        assert_eq!(each.iter().map(|one| one.cpu).collect::<Vec<_>>(), [0, 1]);
        let whole = parse(&text).unwrap();
        let sum = |of: fn(&OneCpu) -> u64| each.iter().map(of).sum::<u64>();
        assert!(sum(|one| one.busy_us).abs_diff(whole.cpu_busy_us) <= 10 * TICK_US);
        assert!(sum(|one| one.idle_us).abs_diff(whole.cpu_idle_us) <= 10 * TICK_US);
        assert_eq!(parse_each("cpu 1 2 3 4\n"), Ok(Vec::new()));
        assert!(parse_each("cpu0 1 2\n").is_err());
    }

    #[test]
    fn an_ancient_kernel_has_four_columns() {
        let found = parse("cpu 1 2 3 4\ncpu0 1 2 3 4\n").unwrap();
        assert_eq!((found.cpu_busy_us, found.cpu_idle_us), (60_000, 40_000));
        assert_eq!(parse_softirq_us("cpu 1 2 3 4\n"), Ok(0));
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["", "cpu0 1 2 3 4\n", "cpu 1 2 3\n", "cpu a b c d\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
