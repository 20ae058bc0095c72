//! A rule: a cause by its name, its class, and its place among the other rules.

use throng_measure::{Finding, Severity};

use super::kernel_row::KernelRow;
use crate::run_view::RunView;

/// A named cause and the function that looks for it. What the ranking, the verdict and the watch
/// must know about it stands here and nowhere else.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Id of the finding, and name of the rule's file.
    pub id: &'static str,
    /// Class of the finding.
    pub class: FindingClass,
    /// Properties of the finding.
    pub traits: &'static [RuleTrait],
    /// Ids of findings that are mere consequences when this rule found something too: such a
    /// finding is ranked after this one.
    pub explains: &'static [&'static str],
    /// Ids of findings that are mere consequences in the same way, unless they began before this
    /// one.
    pub explains_later: &'static [&'static str],
    /// Ids of findings of which this one is a mere consequence.
    pub follows_from: &'static [&'static str],
    search: Search,
}

/// A finding and its rule.
pub(crate) type RuleFinding = (&'static Rule, Finding);

/// Class of a finding. Among findings that are as grave, the classes rank in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingClass {
    /// A limit, a shortage or a fault that can be removed.
    Cause,
    /// An effect whose cause is not known: the rules of causes look for that.
    Consequence,
    /// A remark. If the run felt it, it is a cause. Otherwise it explains nothing, and the verdict
    /// adds it at the end.
    Note,
}

/// A property of a rule's findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleTrait {
    /// It is a fault of the server itself, whatever runs beside it.
    ServerFault,
    /// It fails a part of what users do, while the rest goes on.
    GoesOn,
    /// It is about other programs on the machine, or other guests of its hypervisor. It never comes
    /// before a fault of the server itself.
    OtherPrograms,
    /// It is about what the server answers, refuses or closes: no answer takes longer for it.
    DelaysNothing,
    /// Answers take longer because of it: nothing fails but waits that are given up.
    OnlyDelays,
    /// It is about the generator's own delays.
    OwnDelays,
    /// No delay of the generator, and none that other programs cause, can make it: the verdict
    /// tells it beside these.
    NotOfDelays,
    /// Users wait for other users because of it: nothing is slow, and nothing fails but such waits.
    HoldsUsers,
    /// Messages do not arrive because of it, however few.
    LosesMessages,
    /// A program gets too few CPUs, or gets them late. It explains each [`RuleTrait::LacksCpu`].
    TakesCpu,
    /// It follows when a program gets too few CPUs, or gets them late.
    LacksCpu,
    /// It needs only the server's own counters: a watch of the server's machine uses it too. Other
    /// rules compare these counters with the users of a run.
    WithoutLoad,
}

/// The way in which a rule looks for its cause.
#[derive(Clone, Copy)]
enum Search {
    Function(fn(&RunView<'_>) -> Option<Finding>),
    Row(&'static KernelRow),
}

impl Rule {
    /// Returns a rule of a cause that `find` looks for.
    pub(crate) const fn new(id: &'static str, find: fn(&RunView<'_>) -> Option<Finding>) -> Self {
        Self::of_cause(id, Search::Function(find))
    }

    /// Returns a rule of a cause that is a row.
    pub(super) const fn row(id: &'static str, row: &'static KernelRow) -> Self {
        Self::of_cause(id, Search::Row(row))
    }

    const fn of_cause(id: &'static str, search: Search) -> Self {
        Self {
            id,
            class: FindingClass::Cause,
            traits: &[],
            explains: &[],
            explains_later: &[],
            follows_from: &[],
            search,
        }
    }

    pub(crate) const fn of_class(self, class: FindingClass) -> Self {
        Self { class, ..self }
    }

    pub(crate) const fn with(self, traits: &'static [RuleTrait]) -> Self {
        Self { traits, ..self }
    }

    pub(crate) const fn explains(self, explains: &'static [&'static str]) -> Self {
        Self { explains, ..self }
    }

    pub(crate) const fn explains_later(self, explains_later: &'static [&'static str]) -> Self {
        Self { explains_later, ..self }
    }

    pub(crate) const fn follows_from(self, follows_from: &'static [&'static str]) -> Self {
        Self { follows_from, ..self }
    }

    /// Looks for the cause in a run.
    pub(crate) fn find(&self, run: &RunView<'_>) -> Option<Finding> {
        match self.search {
            Search::Function(find) => find(run),
            Search::Row(row) => row.find(self.id, run),
        }
    }

    /// Reports whether the rule has a property.
    pub fn has(&self, one: RuleTrait) -> bool {
        self.traits.contains(&one)
    }

    /// Reports whether a finding of `other` is a mere consequence of a finding of this rule. Each
    /// has the time at which it began.
    pub(crate) fn is_cause_of(
        &self,
        began_ms: Option<u64>,
        other: &Self,
        other_began_ms: Option<u64>,
    ) -> bool {
        let is_later = other_began_ms >= began_ms;
        self.explains.contains(&other.id)
            || (is_later && self.explains_later.contains(&other.id))
            || other.follows_from.contains(&self.id)
            || (self.has(RuleTrait::TakesCpu) && other.has(RuleTrait::LacksCpu))
    }

    /// Returns the class of one of its findings.
    pub(crate) fn class_of(&self, finding: &Finding) -> FindingClass {
        match self.class {
            FindingClass::Note if finding.severity > Severity::Noted => FindingClass::Cause,
            class => class,
        }
    }
}
