//! One limit, held against what is needed of it.

use serde::Serialize;
use throng_base::units::{brief_count, show_count};
use throng_report::render::bytes;

use crate::fact::{Fact, Unknown};

/// A limit and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Stable name, `epoll_watches`.
    pub id: &'static str,
    /// The limit as its owner calls it, `fs.epoll.max_user_watches`.
    pub limit: String,
    /// What is counted.
    pub unit: Unit,
    /// How much of it is needed.
    pub needs: u64,
    /// How much of it there is.
    pub has: Option<u64>,
    /// How many connections that is enough for, where it depends on their number.
    pub holds: Option<u64>,
    /// Whether connections fail beyond it; else they become slow, or may fail.
    pub stops: bool,
    /// What follows.
    pub state: CheckState,
    /// How the numbers come about, or why they are not known.
    pub because: String,
    /// What moves it, where it has to be moved.
    pub remedy: Option<Remedy>,
}

/// How a limit stands to what is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// It is enough.
    Ok,
    /// It can be run, but slower than it might be, or with a risk.
    Tight,
    /// It cannot work.
    Short,
    /// The limit could not be read.
    Unknown,
}

/// What the numbers of a check count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
}

/// What moves a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// The command, or the option of throng.
    pub command: String,
    /// The command that undoes it.
    pub undo: Option<String>,
    /// The same as a sysctl, where it is one.
    pub sysctl: Option<Sysctl>,
}

/// A sysctl that is to be raised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sysctl {
    /// `fs.file-max`.
    pub name: String,
    /// What it is.
    pub old: String,
    /// What it has to be.
    pub value: String,
}

impl Check {
    /// A limit beyond which connections fail: `needs` of it for what was asked, and enough for `holds` connections, of which
    /// `wanted` are asked for.
    pub(super) fn stops(
        id: &'static str,
        limit: impl Into<String>,
        wanted: u64,
        needs: u64,
        found: Fact<LimitValue>,
    ) -> Self {
        Self::new(id, limit.into(), wanted, needs, found, CheckState::Short)
    }

    /// A limit beyond which connections become slow.
    pub(super) fn slows(
        id: &'static str,
        limit: impl Into<String>,
        wanted: u64,
        needs: u64,
        found: Fact<LimitValue>,
    ) -> Self {
        Self::new(id, limit.into(), wanted, needs, found, CheckState::Tight)
    }

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

    /// The same, in bytes.
    #[must_use]
    pub(super) fn in_bytes(self) -> Self {
        Self { unit: Unit::Bytes, ..self }
    }

    /// The same, with how its numbers come about. What is unknown keeps its reason.
    #[must_use]
    pub(super) fn because(mut self, how: impl Into<String>) -> Self {
        if self.state != CheckState::Unknown {
            self.because = how.into();
        }
        self
    }

    /// The same, with what moves the limit if it has to be moved.
    #[must_use]
    pub(super) fn else_do(mut self, remedy: impl FnOnce() -> Remedy) -> Self {
        if self.is_in_the_way() {
            self.remedy = Some(remedy());
        }
        self
    }

    /// How many connections it is enough for, in words. Bytes are measured and estimated, so what follows from them is
    /// rounded.
    pub(super) fn show_holds(&self) -> String {
        let holds = self.holds.unwrap_or(0);
        match self.unit {
            Unit::Bytes => format!("about {}", brief_count(holds as f64)),
            Unit::Count => show_count(holds),
        }
    }

    /// Whether something should be done.
    pub fn is_in_the_way(&self) -> bool {
        matches!(self.state, CheckState::Short | CheckState::Tight)
    }

    /// The sysctl that would have to change.
    pub(super) fn sysctl(&self) -> Option<&Sysctl> {
        self.remedy.as_ref()?.sysctl.as_ref()
    }

    /// One of its numbers with its unit.
    pub(super) fn show(&self, number: u64) -> String {
        match self.unit {
            Unit::Count if number >= ROUNDED_FROM => brief_count(number as f64),
            Unit::Count => show_count(number),
            Unit::Bytes => bytes(number as f64),
        }
    }
}

/// What there is of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LimitValue {
    /// In the check's own unit.
    pub(super) has: u64,
    pub(super) enough: Sufficiency,
}

/// What a limit is enough for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sufficiency {
    /// So many connections.
    For(u64),
    /// What was asked, or not, however many connections there are.
    Whatever(bool),
}

impl LimitValue {
    /// A limit of which every connection needs `each` parts, when `reserve` of them are for something else.
    pub(super) fn linear(has: u64, each: u64, reserve: u64) -> Self {
        Self { has, enough: Sufficiency::For(has.saturating_sub(reserve) / each.max(1)) }
    }

    /// A limit of which `needs` are needed, however many connections there are.
    pub(super) fn fixed(has: u64, needs: u64) -> Self {
        Self { has, enough: Sufficiency::Whatever(needs <= has) }
    }
}

impl Remedy {
    /// Something that is not a sysctl, and ends with the process or the shell.
    pub(super) fn command(command: impl Into<String>) -> Self {
        Self { command: command.into(), undo: None, sysctl: None }
    }

    /// A sysctl that was `old`.
    pub(super) fn sysctl(name: &str, old: impl ToString, value: impl ToString) -> Self {
        let (old, value) = (old.to_string(), value.to_string());
        Self {
            command: set(name, &value),
            undo: Some(set(name, &old)),
            sysctl: Some(Sysctl { name: name.to_owned(), old, value }),
        }
    }

    /// What its command says besides setting the sysctl: what has to be done as well, or instead. Empty where that is all.
    pub fn besides_sysctl(&self) -> &str {
        let alone = self.sysctl.as_ref().map(|sysctl| set(&sysctl.name, &sysctl.value));
        let rest = alone.and_then(|alone| self.command.strip_prefix(&alone));
        rest.unwrap_or("").trim_start_matches([' ', '&'])
    }

    /// The same, with another way in words.
    #[must_use]
    pub(super) fn or(mut self, other: &str) -> Self {
        self.command += &format!("   (or {other})");
        self
    }
}

impl Sysctl {
    /// Its last number: of several, the one that limits.
    pub(super) fn height(&self) -> u64 {
        let last = self.value.split_ascii_whitespace().last();
        last.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

/// The command that sets a sysctl.
fn set(name: &str, value: &str) -> String {
    match value.contains([' ', '\t', ',']) || value.is_empty() {
        true => format!("sysctl -w {name}=\"{value}\""),
        false => format!("sysctl -w {name}={value}"),
    }
}

/// Both, or the first reason why not.
pub(super) fn both<A: Clone, B: Clone>(a: &Fact<A>, b: &Fact<B>) -> Fact<(A, B)> {
    let pair =
        || -> Result<(A, B), Unknown> { Ok((a.clone().into_result()?, b.clone().into_result()?)) };
    pair().into()
}

/// Larger counts than any limit's are shown rounded.
const ROUNDED_FROM: u64 = 1_000_000_000;
