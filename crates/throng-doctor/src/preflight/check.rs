//! A limit, and the check of it against what is needed.

use serde::Serialize;
use throng_base::units::{brief_count, show_count};
use throng_machine::{Fact, Unknown};
use throng_measure::limit::{Limit, set_sysctl};
use throng_report::render::bytes;

/// A limit and the result of its check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Stable name, such as `epoll_watches`.
    pub id: &'static str,
    /// Name of the limit as the system writes it, such as `vm.max_map_count`.
    pub limit: String,
    /// Unit of the numbers.
    pub unit: Unit,
    /// Amount that is needed.
    pub needs: u64,
    /// Amount that is available.
    pub has: Option<u64>,
    /// Connections for which it is enough, if it depends on their number.
    pub holds: Option<u64>,
    /// True if connections fail beyond it; otherwise they become slow, or may fail.
    pub stops: bool,
    /// Result of the check.
    pub state: CheckState,
    /// Explanation of the numbers, or why they are not known.
    pub because: String,
    /// Change that raises the limit, if it must be raised.
    pub remedy: Option<Remedy>,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// The limit is enough.
    Ok,
    /// The run is possible, but slower or at a risk.
    Tight,
    /// The run cannot work.
    Short,
    /// The limit could not be read.
    Unknown,
}

/// The unit of a check's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Objects, such as fds.
    Count,
    /// Bytes.
    Bytes,
}

/// A change that raises a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// Command, or option of throng.
    pub command: String,
    /// Command that undoes it.
    pub undo: Option<String>,
    /// Sysctl that the command sets, if it sets one.
    pub sysctl: Option<Sysctl>,
}

/// A sysctl to raise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sysctl {
    /// Name, such as `vm.max_map_count`.
    pub name: String,
    /// Current value.
    pub old: String,
    /// Required value.
    pub value: String,
}

impl Check {
    /// Checks a limit beyond which connections fail. `wanted` connections need `needs` of it.
    pub(super) fn stops(
        id: &'static str,
        limit: impl ToString,
        wanted: u64,
        needs: u64,
        found: Fact<LimitValue>,
    ) -> Self {
        Self::new(id, limit.to_string(), wanted, needs, found, CheckState::Short)
    }

    /// Checks a limit beyond which connections become slow.
    pub(super) fn slows(
        id: &'static str,
        limit: impl ToString,
        wanted: u64,
        needs: u64,
        found: Fact<LimitValue>,
    ) -> Self {
        Self::new(id, limit.to_string(), wanted, needs, found, CheckState::Tight)
    }

    /// Checks a limit; `otherwise` is the result if it is not enough.
    fn new(
        id: &'static str,
        limit: String,
        wanted: u64,
        needs: u64,
        found: Fact<LimitValue>,
        otherwise: CheckState,
    ) -> Self {
        let (has, holds, state, because) = match found {
            Fact::Known(LimitValue { has, enough }) => {
                let (is_enough, holds) = match enough {
                    Sufficiency::For(holds) => (wanted <= holds, Some(holds)),
                    Sufficiency::Whatever(is_enough) => (is_enough, None),
                };
                let state = if is_enough { CheckState::Ok } else { otherwise };
                (Some(has), holds, state, String::new())
            }
            Fact::Unknown(why) => (None, None, CheckState::Unknown, why.to_string()),
        };
        let stops = otherwise == CheckState::Short;
        Self {
            id,
            limit,
            unit: Unit::Count,
            needs,
            has,
            holds,
            stops,
            state,
            because,
            remedy: None,
        }
    }

    /// Returns the check with its numbers in bytes.
    #[must_use]
    pub(super) fn in_bytes(self) -> Self {
        Self { unit: Unit::Bytes, ..self }
    }

    /// Adds what the connections need only at times. A limit that is enough without it, but not
    /// with it, is tight.
    #[must_use]
    pub(super) fn at_times(mut self, more: u64) -> Self {
        self.needs = self.needs.saturating_add(more);
        if self.state == CheckState::Ok && self.has.is_some_and(|has| has < self.needs) {
            self.state = CheckState::Tight;
        }
        self
    }

    /// Adds an explanation of the numbers. An unknown limit keeps its reason.
    #[must_use]
    pub(super) fn because(mut self, how: impl Into<String>) -> Self {
        if self.state != CheckState::Unknown {
            self.because = how.into();
        }
        self
    }

    /// Adds the change that raises the limit, if it must be raised.
    #[must_use]
    pub(super) fn else_do(mut self, remedy: impl FnOnce() -> Remedy) -> Self {
        if self.needs_action() {
            self.remedy = Some(remedy());
        }
        self
    }

    /// Formats the connections for which it is enough. Bytes are measured and estimated, so numbers
    /// that follow from them are rounded.
    pub(super) fn show_holds(&self) -> String {
        let holds = self.holds.unwrap_or(0);
        match self.unit {
            Unit::Bytes => format!("about {}", brief_count(holds as f64)),
            Unit::Count => show_count(holds),
        }
    }

    /// Reports whether the limit should be raised.
    pub fn needs_action(&self) -> bool {
        matches!(self.state, CheckState::Short | CheckState::Tight)
    }

    /// Returns the sysctl to change.
    pub(super) fn sysctl(&self) -> Option<&Sysctl> {
        self.remedy.as_ref()?.sysctl.as_ref()
    }

    /// Formats one of the numbers with its unit.
    pub(super) fn show(&self, number: u64) -> String {
        match self.unit {
            Unit::Count if number >= ROUNDED_FROM => brief_count(number as f64),
            Unit::Count => show_count(number),
            Unit::Bytes => bytes(number as f64),
        }
    }
}

/// The value of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LimitValue {
    /// Amount in the check's own unit.
    pub(super) has: u64,
    pub(super) enough: Sufficiency,
}

/// The connections for which a limit is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sufficiency {
    /// Enough for this many connections.
    For(u64),
    /// Enough, or not, for any number of connections.
    Whatever(bool),
}

impl LimitValue {
    /// Creates a limit of which every connection needs `each`, besides a `reserve` for other uses.
    pub(super) fn linear(has: u64, each: u64, reserve: u64) -> Self {
        Self { has, enough: Sufficiency::For(has.saturating_sub(reserve) / each.max(1)) }
    }

    /// Creates a limit of which `needs` are needed for any number of connections.
    pub(super) fn fixed(has: u64, needs: u64) -> Self {
        Self { has, enough: Sufficiency::Whatever(needs <= has) }
    }
}

impl Remedy {
    /// Creates a change that is not a sysctl, and ends with the process or the shell.
    pub(super) fn command(command: impl Into<String>) -> Self {
        Self { command: command.into(), undo: None, sysctl: None }
    }

    /// Creates a change of a sysctl whose value is `old`.
    pub(super) fn sysctl(limit: Limit, old: impl ToString, value: impl ToString) -> Self {
        let (old, value) = (old.to_string(), value.to_string());
        Self {
            command: limit.raise(&value),
            undo: Some(limit.raise(&old)),
            sysctl: Some(Sysctl { name: limit.to_string(), old, value }),
        }
    }

    /// Returns the part of the command besides the sysctl: further or alternative steps. It is
    /// empty if there are none.
    pub fn besides_sysctl(&self) -> &str {
        let alone = self.sysctl.as_ref().map(|sysctl| set_sysctl(&sysctl.name, &sysctl.value));
        let rest = alone.and_then(|alone| self.command.strip_prefix(&alone));
        rest.unwrap_or("").trim_start_matches([' ', '&'])
    }

    /// Adds an alternative in words.
    #[must_use]
    pub(super) fn or(mut self, other: &str) -> Self {
        self.command += &format!("   (or {other})");
        self
    }
}

impl Sysctl {
    /// Returns its last number: of several, the one that limits.
    pub(super) fn limit(&self) -> u64 {
        let last = self.value.split_ascii_whitespace().last();
        last.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

/// Returns both facts, or the first reason why one is unknown.
pub(super) fn both<A: Clone, B: Clone>(a: &Fact<A>, b: &Fact<B>) -> Fact<(A, B)> {
    let pair =
        || -> Result<(A, B), Unknown> { Ok((a.clone().into_result()?, b.clone().into_result()?)) };
    pair().into()
}

/// The count from which numbers are rounded: larger than any real limit.
const ROUNDED_FROM: u64 = 1_000_000_000;
