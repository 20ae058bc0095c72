//! The preflight as text: the verdict, a table of limits, and what to do.

use crate::counted::capital;
use std::fmt;

use throng_report::render::{Align, Table};

use super::{Check, CheckState, Preflight};

/// Shows the verdict, all limits and the changes.
impl fmt::Display for Preflight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}.\n", capital(&self.verdict()))?;
        write!(f, "{}", table(self.checks.iter()))?;
        write!(f, "{}", self.remedies())
    }
}

impl Preflight {
    /// Returns the text of a refusal: the verdict and the limits that are short.
    pub fn refusal(&self) -> String {
        let verdict = self.verdict();
        format!(
            "{verdict}\n\n{}{}",
            table(self.in_state(CheckState::Short)),
            remedies(self.in_state(CheckState::Short))
        )
    }

    /// Returns the table of limits.
    pub fn rows(&self) -> Table {
        table(self.checks.iter())
    }

    /// Returns the commands, those for limits that stop the run first.
    pub fn remedies(&self) -> String {
        remedies(self.in_state(CheckState::Short).chain(self.in_state(CheckState::Tight)))
    }
}

/// Returns a table of checks.
fn table<'a>(checks: impl Iterator<Item = &'a Check>) -> Table {
    let columns = [Align::Left, Align::Left, Align::Right, Align::Right, Align::Left];
    let mut table = Table::with_head(["", "limit", "needs", "has", "why"]).aligned(&columns);
    for check in checks {
        let has = match (check.state, check.has) {
            (CheckState::Unknown, _) => "?".to_owned(),
            (_, Some(has)) => check.show(has),
            (_, None) => "-".to_owned(),
        };
        let needs = if check.has.is_none() && check.needs == 0 {
            "-".to_owned()
        } else {
            check.show(check.needs)
        };
        table.row([
            check.state.to_string(),
            check.limit.clone(),
            needs,
            has,
            check.because.clone(),
        ]);
    }
    table
}

/// Returns the commands of checks.
fn remedies<'a>(checks: impl Iterator<Item = &'a Check>) -> String {
    let mut text = String::new();
    for remedy in checks.filter_map(|check| check.remedy.as_ref()) {
        let lead = if text.is_empty() { "\ndo:\n" } else { "" };
        text += &format!("{lead}  {}\n", remedy.command);
    }
    text
}

impl fmt::Display for CheckState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Tight => "tight",
            Self::Short => "short",
            Self::Unknown => "unknown",
        })
    }
}
