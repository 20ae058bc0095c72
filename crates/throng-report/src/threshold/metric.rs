//! The names that a threshold may begin with, and their units.

use std::fmt;
use std::ops::Range;

use throng_measure::http_status::StatusRange;
use throng_measure::{ErrorKey, ErrorKind, LatencySummary, Operation};

use super::ThresholdError;
use super::class_name::{CLASS, divisions, is_of_class};
use super::error_names::{error_kinds, is_error_kind};
use super::mistake::NameMistake;
use super::statistic::{Statistic, USUAL};
use super::step_metric::{StepFigure, divide};
use super::unit::Unit;
use crate::Summary;
use crate::summary::{HttpSummary, OperationSummary, StepSummary, name_of_class_operation};

/// Returns a number of a summary; `None` if it was not measured.
type ValueOf = fn(&Summary) -> Option<f64>;

/// Returns a number of an operation; `None` if it was not measured.
type ValueOfOperation = fn(&OperationSummary) -> Option<f64>;

/// An operation of the users of all classes, or of one.
#[derive(Clone, Debug)]
pub(super) struct OperationOf {
    class: Option<String>,
    operation: Operation,
}

/// The latency of a threshold: of an operation, of the generator's own steps, or of the steps of a
/// name.
#[derive(Clone, Debug)]
pub(super) enum LatencyOf {
    Operation(OperationOf),
    Lag,
    Step(String),
}

/// A measured value of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Measurement {
    /// An exact value.
    Value(f64),
    /// A lower bound: some requests were never answered.
    AtLeast(f64),
    /// No answer at all: `count` requests waited, the longest of them for `us_most` microseconds.
    Unanswered { count: u64, us_most: u64 },
    /// No measurement.
    Nothing,
}

/// A named measurement.
#[derive(Clone, Debug)]
pub(super) enum Metric {
    Latency(LatencyOf, Statistic),
    Fixed(Unit, ValueOf),
    OfOperation(OperationOf, Unit, ValueOfOperation),
    Errors,
    ErrorsOfKind(String),
    /// Answers to HTTP requests with another status than expected.
    UnexpectedStatuses(StatusRange),
    /// Answers to HTTP requests, whether expected or not.
    HttpAnswers(StatusRange),
    FailedConnects(String),
    Step(String, StepFigure),
}

impl Metric {
    pub(super) fn named(name: &str) -> Option<Self> {
        if name == "errors" {
            return Some(Self::Errors);
        }
        if let Some(rest) = name.strip_prefix(CLASS) {
            return divisions(rest).find_map(|(class, of)| Self::named(of)?.of_class(class));
        }
        if let Some((step, figure)) = divide(name) {
            return match Statistic::named(figure) {
                Some(statistic) => Some(Self::Latency(LatencyOf::Step(step.to_owned()), statistic)),
                None => StepFigure::named(figure).map(|known| Self::Step(step.to_owned(), known)),
            };
        }
        if let Some((_, unit, get)) = FIXED.iter().find(|(known, ..)| *known == name) {
            return Some(Self::Fixed(*unit, *get));
        }
        if let Some((_, metric)) = of_operations().find(|(known, _)| known == name) {
            return Some(metric);
        }
        let latency = LatencyOf::all().find_map(|latency| {
            let statistic = name.strip_prefix(&latency.name())?.strip_prefix('.')?;
            Some(Self::Latency(latency, Statistic::named(statistic)?))
        });
        if latency.is_some() {
            return latency;
        }
        let below = |prefix| name.strip_prefix(prefix).filter(|rest| !rest.is_empty());
        if let Some(answers) = below("http.").and_then(StatusRange::named) {
            return Some(Self::HttpAnswers(answers));
        }
        let error = below("errors.").map(ErrorKey::parse);
        if let Some(status) = error.and_then(|key| key.value_of(ErrorKind::HttpStatus)) {
            return StatusRange::named(status).map(Self::UnexpectedStatuses);
        }
        let failed = below("connect.failed.").map(|errno| Self::FailedConnects(errno.to_owned()));
        let kind = below("errors.").filter(|kind| is_error_kind(kind));
        failed.or_else(|| kind.map(|kind| Self::ErrorsOfKind(kind.to_owned())))
    }

    /// Returns the same of the users of a class; `None` if it is not measured by class.
    fn of_class(self, class: &str) -> Option<Self> {
        Some(match self {
            Self::Latency(LatencyOf::Operation(of), statistic) => {
                Self::Latency(LatencyOf::Operation(of.of_class(class)?), statistic)
            }
            Self::OfOperation(of, unit, get) => Self::OfOperation(of.of_class(class)?, unit, get),
            _ => return None,
        })
    }

    /// Returns the name of the class whose users are measured.
    pub(super) fn class(&self) -> Option<&str> {
        match self {
            Self::Latency(LatencyOf::Operation(of), _) | Self::OfOperation(of, ..) => {
                of.class.as_deref()
            }
            _ => None,
        }
    }

    /// Returns the latency and its statistic, if it is one.
    pub(super) fn latency(&self) -> Option<(String, Statistic)> {
        match self {
            Self::Latency(latency, statistic) => Some((latency.name(), *statistic)),
            _ => None,
        }
    }

    /// Returns the name of the step or transaction that is measured.
    pub(super) fn step(&self) -> Option<&str> {
        match self {
            Self::Latency(LatencyOf::Step(name), _) | Self::Step(name, _) => Some(name),
            _ => None,
        }
    }

    /// Returns the unit of the name, which for errors and answers depends on how the limit is
    /// written.
    pub(super) fn unit(&self, limit: &str) -> Unit {
        match self {
            Self::Latency(..) => Unit::Micros,
            Self::Fixed(unit, _) | Self::OfOperation(_, unit, _) => *unit,
            Self::Step(_, figure) => figure.unit(limit),
            Self::FailedConnects(_) => Unit::Count,
            Self::Errors
            | Self::ErrorsOfKind(_)
            | Self::UnexpectedStatuses(_)
            | Self::HttpAnswers(_) => {
                if limit.ends_with('%') {
                    Unit::Share
                } else {
                    Unit::Count
                }
            }
        }
    }

    /// Returns the value that the run measured.
    pub(super) fn measured(&self, unit: Unit, summary: &Summary) -> Measurement {
        let count = match self {
            Self::Latency(latency, statistic) => return latency.measured(*statistic, summary),
            Self::Fixed(_, get) => return get(summary).into(),
            Self::OfOperation(of, _, get) => {
                return of.of(summary).and_then(|of| get(&of)).into();
            }
            Self::Step(name, figure) => {
                let step = step_of(summary, name);
                return step.map_or(Measurement::Nothing, |step| measured_of(*figure, unit, step));
            }
            Self::Errors => summary.errors.total(),
            Self::ErrorsOfKind(kind) => summary.errors.family(kind),
            Self::UnexpectedStatuses(range) => {
                let errors = unexpected_statuses(*range, summary);
                let Some(errors) = errors else { return Measurement::Nothing };
                errors
            }
            Self::HttpAnswers(range) => {
                let answers = summary.http.as_ref().and_then(|http| http.answers_with(*range));
                let Some(answers) = answers else { return Measurement::Nothing };
                answers
            }
            Self::FailedConnects(errno) => summary.connect.failed.get(errno),
        } as f64;
        match (unit, self.divisor(summary)) {
            (Unit::Share, 0) => Measurement::Nothing,
            (Unit::Share, all) => Measurement::Value(count / all as f64),
            _ => Measurement::Value(count),
        }
    }

    /// Returns of how many this is a share: answers of all answers, errors of HTTP requests of
    /// these, other errors of everything that was attempted.
    fn divisor(&self, summary: &Summary) -> u64 {
        match self {
            Self::HttpAnswers(_) => summary.http.as_ref().map_or(0, HttpSummary::responses),
            Self::UnexpectedStatuses(_) => summary.http_requests(),
            Self::ErrorsOfKind(kind) if is_of_http(kind) => summary.http_requests(),
            _ => summary.attempts(),
        }
    }
}

/// Returns the number of answers with these statuses that were not expected; `None` if the run file
/// does not say their statuses.
fn unexpected_statuses(range: StatusRange, summary: &Summary) -> Option<u64> {
    if summary.errors.get(ErrorKind::HttpStatus) > 0 {
        return None;
    }
    let status = |kind| ErrorKey::parse(kind).value_of(ErrorKind::HttpStatus);
    let is_in = |kind| status(kind).is_some_and(|status| range.contains(status));
    let kinds = summary.errors.0.iter().filter(|(kind, _)| is_in(kind));
    Some(kinds.map(|(_, count)| count).sum())
}

/// Returns the steps of this name in a summary.
fn step_of<'a>(summary: &'a Summary, name: &str) -> Option<&'a StepSummary> {
    summary.steps.iter().find(|step| step.name == name)
}

fn measured_of(figure: StepFigure, unit: Unit, step: &StepSummary) -> Measurement {
    let count = match figure {
        StepFigure::RateMean => return step.rate_mean.into(),
        StepFigure::Errors if unit == Unit::Share => return step.error_share().into(),
        StepFigure::Ok => step.ok,
        StepFigure::Errors => step.errors,
        StepFigure::Unanswered => step.unanswered_us.count,
        StepFigure::Waiting => step.waiting,
    };
    Measurement::Value(count as f64)
}

impl OperationOf {
    fn all_users(operation: Operation) -> Self {
        Self { class: None, operation }
    }

    /// Returns the operation of the users of a class; `None` if it is not measured by class.
    fn of_class(self, class: &str) -> Option<Self> {
        let is_known = is_of_class(self.operation) && self.class.is_none();
        is_known.then(|| Self { class: Some(class.to_owned()), ..self })
    }

    /// Returns what the run measured; `None` if users have not begun it.
    fn of(&self, summary: &Summary) -> Option<OperationSummary> {
        match &self.class {
            None => summary.operation(self.operation),
            Some(class) => summary.class_operations.get(class)?.operations[self.operation],
        }
    }
}

impl fmt::Display for OperationOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.class {
            None => self.operation.fmt(f),
            Some(class) => f.write_str(&name_of_class_operation(class, self.operation)),
        }
    }
}

impl LatencyOf {
    /// Returns the latencies that every run may have.
    fn all() -> impl Iterator<Item = Self> {
        let of = |operation| Self::Operation(OperationOf::all_users(operation));
        Operation::ALL.into_iter().map(of).chain([Self::Lag])
    }

    /// Returns the name before that of the statistic: `message`, `step.greeting`.
    fn name(&self) -> String {
        match self {
            Self::Operation(of) => of.to_string(),
            Self::Lag => LAG.to_owned(),
            Self::Step(name) => format!("step.{name}"),
        }
    }

    /// Returns the latency of the answered, and the same with the waits that no answer ended.
    fn of(&self, summary: &Summary) -> (LatencySummary, LatencySummary) {
        match self {
            Self::Operation(of) => {
                of.of(summary).map(|of| (of.latency_us, of.judged_us)).unwrap_or_default()
            }
            Self::Lag => (summary.generator.lag_us, summary.generator.lag_us),
            Self::Step(name) => {
                step_of(summary, name).map(|s| (s.latency_us, s.judged_us)).unwrap_or_default()
            }
        }
    }

    fn measured(&self, statistic: Statistic, summary: &Summary) -> Measurement {
        let (answered, judged) = self.of(summary);
        match answered.count {
            0 if judged.count == 0 => {
                // An imported run may have the statistic without the values.
                let stats = summary.latency_stats.get(&self.name());
                return stats.and_then(|stats| stats.named(&statistic.name())).into();
            }
            0 => return Measurement::Unanswered { count: judged.count, us_most: judged.max },
            _ => {}
        }
        let total = summary.latencies.get(&self.name());
        match statistic.values([&answered, &judged], total) {
            None => Measurement::Nothing,
            Some((answered, judged)) if judged > answered => Measurement::AtLeast(judged as f64),
            Some((_, judged)) => Measurement::Value(judged as f64),
        }
    }

    /// Returns the value of the answered alone; `None` if there was no answer.
    fn answered(&self, statistic: Statistic, summary: &Summary) -> Option<f64> {
        let (answered, judged) = self.of(summary);
        let total = summary.latencies.get(&self.name());
        let value = statistic.values([&answered, &judged], total).filter(|_| answered.count > 0);
        value.map(|(answered, _)| answered as f64)
    }
}

impl Measurement {
    /// Returns the number that is compared.
    pub(super) fn value(&self) -> Option<f64> {
        match self {
            Self::Value(value) | Self::AtLeast(value) => Some(*value),
            Self::Unanswered { .. } | Self::Nothing => None,
        }
    }
}

impl From<Option<f64>> for Measurement {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Nothing, Self::Value)
    }
}

/// Reports whether an error is that of an HTTP request.
fn is_of_http(name: &str) -> bool {
    ErrorKey::parse(name).kind.and_then(ErrorKind::operation) == Some(Operation::Http)
}

/// Returns the metric `name`. `span` is the place of the name in the text that the error points at.
pub(super) fn of_name(name: &str, span: &Range<usize>) -> Result<Metric, ThresholdError> {
    Metric::named(name).ok_or_else(|| {
        let latencies: Vec<_> = LatencyOf::all().map(|latency| latency.name()).collect();
        let latencies: Vec<_> = latencies.iter().map(String::as_str).collect();
        let NameMistake { problem, expected, suggestion } =
            NameMistake::of(name, &names(), &latencies);
        ThresholdError { span: span.clone(), problem, expected: expected.to_owned(), suggestion }
    })
}

/// Returns the names that a threshold may begin with. These are patterns, and not all in the list:
/// percentiles, `step.NAME.`, `class.NAME.`, `connect.failed.ERRNO`, `errors.ws_close_1011`,
/// `http.429` and `errors.http_status.429`.
pub fn names() -> Vec<String> {
    let latencies =
        LatencyOf::all().flat_map(|of| USUAL.map(|statistic| format!("{}.{statistic}", of.name())));
    let fixed = FIXED.iter().map(|(name, ..)| (*name).to_owned());
    let fixed = fixed.chain(of_operations().map(|(name, _)| name));
    let errors = error_kinds().map(|kind| format!("errors.{kind}"));
    let classes = (2..=5).map(|class| format!("http.{}", StatusRange::Class(class)));
    latencies.chain(["errors".to_owned()]).chain(errors).chain(fixed).chain(classes).collect()
}

/// Returns what `summary` measured for `name`: microseconds, bytes, a count, a rate per second or a
/// share. The outer `None` is for a name that no threshold may begin with, the inner one for what
/// was not measured. Unlike a threshold, a latency leaves out the requests without an answer.
pub fn value(name: &str, summary: &Summary) -> Option<Option<f64>> {
    Some(match Metric::named(name)? {
        Metric::Latency(latency, statistic) => latency.answered(statistic, summary),
        metric => metric.measured(metric.unit(""), summary).value(),
    })
}

/// The name of the generator's own lateness.
const LAG: &str = "generator.lag";

/// What is measured of each operation that is counted, beside its latency.
const OF_OPERATION: [(&str, Unit, ValueOfOperation); 6] = [
    ("ok", Unit::Count, |of| Some(of.ok as f64)),
    ("failed", Unit::Count, |of| Some(of.failed as f64)),
    ("waiting", Unit::Count, |of| Some(of.waiting as f64)),
    ("unanswered", Unit::Count, |of| Some(of.unanswered_us.count as f64)),
    ("rate_most", Unit::Rate, |of| of.rate_most),
    ("rate_mean", Unit::Rate, |of| of.rate_mean),
];

/// Returns the measurements of all operations by name: `join.failed`.
fn of_operations() -> impl Iterator<Item = (String, Metric)> {
    Operation::counted().flat_map(|operation| {
        OF_OPERATION.iter().map(move |(figure, unit, get)| {
            let figure = match (operation, *figure) {
                (Operation::Message, "ok") => "answered",
                (_, figure) => figure,
            };
            let of = OperationOf::all_users(operation);
            (format!("{operation}.{figure}"), Metric::OfOperation(of, *unit, *get))
        })
    })
}

/// The other measurements by name, each with its unit.
const FIXED: [(&str, Unit, ValueOf); 49] = [
    ("connected_most", Unit::Count, |s| Some(s.users.connected_most as f64)),
    ("active_most", Unit::Count, |s| Some(s.users.active_most as f64)),
    ("users.connected_most", Unit::Count, |s| Some(s.users.connected_most as f64)),
    ("users.active_most", Unit::Count, |s| Some(s.users.active_most as f64)),
    ("users.started", Unit::Count, |s| Some(s.users.started as f64)),
    ("users.iterations", Unit::Count, |s| Some(s.users.iterations as f64)),
    ("users.finished", Unit::Count, |s| Some(s.users.finished as f64)),
    ("users.failed", Unit::Count, |s| Some(s.users.failed as f64)),
    ("users.cut", Unit::Count, |s| Some(s.users.cut as f64)),
    ("users.waiting", Unit::Count, |s| Some(s.users.waiting as f64)),
    ("message.sent", Unit::Count, |s| Some(s.message.sent as f64)),
    ("message.expected", Unit::Count, |s| Some(s.message.expected as f64)),
    ("message.sends_waiting", Unit::Count, |s| Some(s.message.sends_waiting as f64)),
    ("message.received", Unit::Count, |s| Some(s.message.received as f64)),
    ("message.received_rate_most", Unit::Rate, |s| s.message.received_rate_most),
    ("joined_most", Unit::Count, |s| Some(s.users.joined_most as f64)),
    ("users.joined_most", Unit::Count, |s| Some(s.users.joined_most as f64)),
    ("push.sent", Unit::Count, |s| Some(s.operation(Operation::Push)?.started as f64)),
    ("http.started", Unit::Count, |s| Some(s.http.as_ref()?.started as f64)),
    ("http.connects", Unit::Count, |s| Some(s.http.as_ref()?.connects as f64)),
    ("http.retried", Unit::Count, |s| Some(s.http.as_ref()?.retried as f64)),
    ("heartbeat.sent", Unit::Count, |s| Some(s.heartbeat.as_ref()?.sent as f64)),
    ("heartbeat.missed", Unit::Count, |s| Some(s.heartbeat.as_ref()?.missed as f64)),
    ("broadcast.sent", Unit::Count, |s| Some(s.broadcast.as_ref()?.counters.sent as f64)),
    ("broadcast.expected", Unit::Count, |s| Some(s.broadcast.as_ref()?.counters.expected as f64)),
    ("broadcast.delivered", Unit::Count, |s| Some(s.broadcast.as_ref()?.counters.delivered as f64)),
    ("broadcast.left", Unit::Count, |s| Some(s.broadcast.as_ref()?.counters.left as f64)),
    ("broadcast.missing", Unit::Count, |s| Some(s.broadcast.as_ref()?.counters.missing as f64)),
    ("broadcast.late", Unit::Count, |s| Some(s.broadcast.as_ref()?.counters.late as f64)),
    ("broadcast.duplicates", Unit::Count, |s| {
        Some(s.broadcast.as_ref()?.counters.duplicates as f64)
    }),
    ("broadcast.out_of_order", Unit::Count, |s| {
        Some(s.broadcast.as_ref()?.counters.out_of_order as f64)
    }),
    ("broadcast.first", Unit::Micros, |s| Some(s.broadcast.as_ref()?.first_us? as f64)),
    ("broadcast.last", Unit::Micros, |s| Some(s.broadcast.as_ref()?.last_us? as f64)),
    ("turns.intended", Unit::Count, |s| Some(s.turns.as_ref()?.intended as f64)),
    ("turns.started", Unit::Count, |s| Some(s.turns.as_ref()?.started as f64)),
    ("turns.failed", Unit::Count, |s| Some(s.turns.as_ref()?.failed as f64)),
    ("turns.waiting", Unit::Count, |s| Some(s.turns.as_ref()?.waiting as f64)),
    ("arrivals.ratio", Unit::Share, |s| s.arrivals.ratio),
    ("generator.cpu_us_per_connect", Unit::Micros, |s| s.generator.cpu_us_per_connect),
    ("generator.cpu_us_per_message", Unit::Micros, |s| s.generator.cpu_us_per_message),
    ("generator.rss_bytes_per_user", Unit::Bytes, |s| s.generator.rss_bytes_per_user),
    ("machine.cpu_busy_share", Unit::Share, |s| s.machine.cpu_busy_share),
    ("machine.cpu_stolen_share", Unit::Share, |s| s.machine.cpu_stolen_share),
    ("machine.cpu_us_per_connect", Unit::Micros, |s| s.machine.cpu_us_per_connect),
    ("machine.cpu_us_per_message", Unit::Micros, |s| s.machine.cpu_us_per_message),
    ("server.open_most", Unit::Count, |s| Some(s.server.as_ref()?.open_most as f64)),
    ("server.cpu_us_per_connection", Unit::Micros, |s| s.server_costs()?.cpu_us_per_connection),
    ("server.cpu_us_per_message", Unit::Micros, |s| s.server_costs()?.cpu_us_per_message),
    ("server.rss_bytes_per_connection", Unit::Bytes, |s| {
        s.server_costs()?.rss_bytes_per_connection
    }),
];
