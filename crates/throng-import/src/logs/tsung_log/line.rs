//! The lines of tsung.log.

use std::ops::Range;

use super::super::count::count_of;
use super::super::utc::UtcTime;

/// A line.
#[derive(Debug)]
pub(super) enum LogLine<'a> {
    /// The beginning of a dump.
    Dump(UtcTime),
    /// The name and the values of a statistic.
    Stats(&'a str, Values),
    /// The last line.
    End,
    /// An empty line or a comment.
    Nothing,
}

/// The values of a statistic.
#[derive(Clone, Copy, Debug)]
pub(super) enum Values {
    /// What came since the dump before, or is now; and the total, or the largest.
    Pair(f64, f64),
    /// A duration or another sample.
    Sample(Sample),
}

/// The statistics of samples. Durations are in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Values since the dump before, their mean and their deviation.
    pub(super) count: u64,
    pub(super) mean: f64,
    pub(super) deviation: f64,
    /// The extremes since the run began.
    pub(super) max: f64,
    pub(super) min: f64,
    /// Values before that.
    pub(super) count_before: u64,
}

impl Sample {
    /// Returns the number of values since the run began.
    pub(super) fn total(&self) -> u64 {
        self.count_before.saturating_add(self.count)
    }
}

/// What is wrong with a part of a line.
#[derive(Debug)]
pub(super) struct LineMistake {
    pub(super) part: Range<usize>,
    pub(super) title: String,
    pub(super) label: String,
}

impl LineMistake {
    pub(super) fn new(
        part: Range<usize>,
        title: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        Self { part, title: title.into(), label: label.into() }
    }
}

pub(super) fn parse(line: &str) -> Result<LogLine<'_>, LineMistake> {
    let whole = 0..line.len();
    if let Some(seconds) = line.strip_prefix(DUMP) {
        let moment = seconds.trim().parse().ok().and_then(UtcTime::of_seconds);
        return moment.map(LogLine::Dump).ok_or_else(|| {
            LineMistake::new(whole, "this is no moment of a dump", "expected seconds since 1970")
        });
    }
    if let Some(rest) = line.strip_prefix(STATS) {
        let (name, values) = divide(rest).ok_or_else(|| {
            let label = "expected a name, and two or seven numbers";
            LineMistake::new(whole.clone(), "this statistic has no name", label)
        })?;
        return values_of(line, values).map(|values| LogLine::Stats(name, values));
    }
    match line {
        _ if line.starts_with("EndMonitor:") => Ok(LogLine::End),
        _ if line.is_empty() || line.starts_with('#') => Ok(LogLine::Nothing),
        _ => Err(LineMistake::new(
            whole,
            "this is no line of tsung.log",
            "expected `# stats: dump at`, `stats: NAME` or `EndMonitor`",
        )),
    }
}

fn values_of(line: &str, values: &str) -> Result<Values, LineMistake> {
    let begin = line.len() - values.len();
    let fields: Vec<&str> = values.split_ascii_whitespace().collect();
    let numbers: Vec<f64> = fields
        .iter()
        .map(|field| {
            let at = begin + (field.as_ptr() as usize).saturating_sub(values.as_ptr() as usize);
            let number = field.parse().ok().filter(|number: &f64| number.is_finite());
            number.ok_or_else(|| {
                let title = format!("`{field}` is no number");
                LineMistake::new(at..at + field.len(), title, "expected a number")
            })
        })
        .collect::<Result<_, _>>()?;
    match numbers[..] {
        [now, total] => Ok(Values::Pair(now, total)),
        [count, mean, deviation, max, min, _, count_before] => {
            let counts = count_of(count).zip(count_of(count_before));
            let (count, count_before) = counts.ok_or_else(|| {
                let label = "expected a whole number of values, in the first and the last column";
                LineMistake::new(begin..line.len(), "these are no numbers of values", label)
            })?;
            Ok(Values::Sample(Sample { count, mean, deviation, max, min, count_before }))
        }
        _ => {
            let title =
                format!("a statistic has two or seven numbers, and this one {}", numbers.len());
            let label = "a cut line? expected `COUNT MEAN DEVIATION MAX MIN MEAN COUNT`";
            Err(LineMistake::new(begin..line.len(), title, label))
        }
    }
}

/// Divides a name, which may be a quoted atom or an Erlang tuple, from its values.
fn divide(rest: &str) -> Option<(&str, &str)> {
    let end = match rest.chars().next()? {
        '\'' => 1 + rest[1..].find('\'')? + 1,
        '{' => rest.rfind('}')? + 1,
        _ => rest.find(' ').unwrap_or(rest.len()),
    };
    let (name, values) = rest.split_at(end);
    let name = name.strip_prefix('\'').and_then(|name| name.strip_suffix('\'')).unwrap_or(name);
    (!name.is_empty()).then_some((name, values))
}

/// The beginning of a dump.
pub(super) const DUMP: &str = "# stats: dump at ";
/// The beginning of a statistic.
const STATS: &str = "stats: ";
