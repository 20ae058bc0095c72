//! `/proc/pressure/{cpu,memory,io}` (PSI, since Linux 4.20): the time that tasks waited for a
//! resource.
//!
//! It is that of the whole machine. A kernel with PSI switched off has the files and refuses to
//! read them ([`Reason::Unsupported`](crate::Reason)); `psi=1` on its command line switches it on.

use crate::fact::ParseFailure;
use crate::text::after;

/// The time that tasks waited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pressure {
    /// Time in which at least one task waited.
    pub some: Stall,
    /// Time in which all runnable tasks waited; for `cpu`, `None` before Linux 5.13.
    pub full: Option<Stall>,
}

/// Time lost to waiting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// Share of the last ten seconds, in per cent.
    pub percent_10s: f64,
    /// Microseconds since the machine was started.
    pub total_us: u64,
}

/// Parses one of the three files.
pub fn parse(text: &str) -> Result<Pressure, ParseFailure> {
    let some = after(text, "some ").ok_or(ParseFailure("a line of some"))?;
    Ok(Pressure { some: stall(some)?, full: after(text, "full ").map(stall).transpose()? })
}

/// Parses one line.
fn stall(line: &str) -> Result<Stall, ParseFailure> {
    let field = |head| line.split(' ').find_map(|word| word.strip_prefix(head));
    let percent = field("avg10=").and_then(|word| word.parse::<f64>().ok());
    let total = field("total=").and_then(|word| word.trim_end().parse().ok());
    match (percent, total) {
        (Some(percent_10s), Some(total_us)) if percent_10s.is_finite() => {
            Ok(Stall { percent_10s, total_us })
        }
        _ => Err(ParseFailure("avg10 and total")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    #[test]
    fn a_new_kernel_has_both_lines_for_cpu_and_an_old_one_has_one() {
        assert!(parse(&recorded("linux-6.18", "proc/pressure/cpu")).unwrap().full.is_some());
        let old = parse(&recorded("linux-5.10", "proc/pressure/cpu")).unwrap();
        assert_eq!(old.some, Stall { percent_10s: 12.34, total_us: 98_765_432 });
        assert_eq!(old.full, None);
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in ["", "full avg10=0.00 total=0\n", "some avg10=x total=0\n", "some avg10=0.1\n"]
        {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
