//! What a run of a scenario measures, and so which thresholds it can meet.

use std::collections::BTreeSet;

use throng_base::units::nearest;
use throng_measure::Operation;
use throng_report::Threshold;

use super::Diagnostic;

/// What the runs of a scenario measure.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeasuredWork {
    /// Names of its steps and transactions.
    names: Vec<String>,
    /// Names of its classes of users.
    classes: Vec<String>,
    /// Kinds of its steps.
    kinds: BTreeSet<&'static str>,
    /// The steps of all protocols whose time is measured as an operation.
    measured: Vec<(&'static str, Operation)>,
    has_probe: bool,
    /// Whether it may have steps that are not among these: a `when` leaves them out, or they have
    /// mistakes.
    has_others: bool,
}

impl MeasuredWork {
    /// Returns what steps with these names and of these kinds measure; `measured` are the steps of
    /// all protocols that an operation is measured by. `has_others` says that the
    /// scenario may have further steps.
    pub(super) fn of(
        names: Vec<String>,
        classes: Vec<String>,
        kinds: BTreeSet<&'static str>,
        measured: Vec<(&'static str, Operation)>,
        has_probe: bool,
        has_others: bool,
    ) -> Self {
        Self { names, classes, kinds, measured, has_probe, has_others }
    }

    /// Checks that a run measures what `threshold` compares.
    pub(super) fn check(&self, threshold: &Threshold) -> Result<(), Diagnostic> {
        if let Some(class) = threshold.class() {
            self.check_class(class)?;
        }
        match threshold.step() {
            Some(step) => self.check_step(step),
            None => self.check_work(threshold),
        }
    }

    fn check_class(&self, class: &str) -> Result<(), Diagnostic> {
        if self.has_others || self.classes.iter().any(|name| name == class) {
            return Ok(());
        }
        let label = match nearest(class, self.classes.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "no class has this name".to_owned(),
        };
        let title = format!("invalid threshold: unknown class `{class}`");
        let help = format!("the classes: `{}`", self.classes.join("`, `"));
        let span = CLASS_PREFIX.len()..CLASS_PREFIX.len() + class.len();
        Err(Diagnostic::new(span, title, label).help(help))
    }

    fn check_step(&self, step: &str) -> Result<(), Diagnostic> {
        if self.names.iter().any(|name| name == step) {
            return Ok(());
        }
        let label = match nearest(step, self.names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "no step has this name".to_owned(),
        };
        let help = match self.names.is_empty() {
            true => "give a step a name: `connect: {name: login}`".to_owned(),
            false => format!("steps with a name: `{}`", self.names.join("`, `")),
        };
        let title = format!("invalid threshold: unknown step `{step}`");
        let span = PREFIX.len()..PREFIX.len() + step.len();
        Err(Diagnostic::new(span, title, label).help(help))
    }

    fn check_work(&self, threshold: &Threshold) -> Result<(), Diagnostic> {
        let name = threshold.name_without_class();
        let class = threshold.name().strip_suffix(name).unwrap_or_default();
        let (work, value) = name.split_once('.').unwrap_or_default();
        if work == Operation::Message.name() && self.has_only_requests() {
            let begin = format!("{class}{HTTP}.");
            let meant = format!("{begin}{value}");
            let label = match format!("{meant} {}", threshold.condition()).parse::<Threshold>() {
                Ok(_) => format!("the users send HTTP requests, and no messages: write `{meant}`"),
                Err(_) => {
                    format!("the users send HTTP requests: their figures begin with `{begin}`")
                }
            };
            return Err(Self::refused(threshold, label));
        }
        let kinds = match Operation::answered().find(|operation| operation.name() == work) {
            None if work == TURNS.0 => vec![TURNS.1],
            // Messages are of most scenarios.
            None | Some(Operation::Message) => return Ok(()),
            Some(operation) => self.steps_of(operation),
        };
        let is_done = kinds.iter().any(|kind| self.kinds.contains(kind));
        if self.has_others || is_done || work == PROBED && self.has_probe {
            return Ok(());
        }
        let label = match kinds.is_empty() {
            true => "the scenario has no `probe`".to_owned(),
            false => format!("the scenario has no step `{}`", kinds.join("`, `")),
        };
        Err(Self::refused(threshold, label))
    }

    fn refused(threshold: &Threshold, label: String) -> Diagnostic {
        let title = format!("invalid threshold: no run measures `{}`", threshold.name());
        Diagnostic::new(0..threshold.name().len(), title, label)
    }

    /// Returns the steps whose time is measured as this operation, in the order in which mistakes
    /// name them.
    fn steps_of(&self, operation: Operation) -> Vec<&'static str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.measured.iter().filter(|(_, of)| *of == operation) {
            if !names.contains(name) {
                names.push(*name);
            }
        }
        names
    }

    /// Reports whether the users send HTTP requests, and no messages.
    fn has_only_requests(&self) -> bool {
        let does = |kinds: &[&str]| kinds.iter().any(|kind| self.kinds.contains(kind));
        !self.has_others && does(&self.steps_of(Operation::Http)) && !does(MESSAGES)
    }
}

/// What turns of loops measure, and the step that makes them.
const TURNS: (&str, &str) = ("turns", "every");

/// What HTTP requests measure.
const HTTP: &str = Operation::Http.name();

/// What a probe measures.
const PROBED: &str = Operation::Broadcast.name();

/// Steps about messages.
const MESSAGES: &[&str] = &["send", "expect", "receive"];

/// The beginning of a measurement of a step.
const PREFIX: &str = "step.";
/// The beginning of a measurement of a class.
const CLASS_PREFIX: &str = "class.";
