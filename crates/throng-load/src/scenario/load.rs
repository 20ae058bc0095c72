//! The phases of the load: how many users there are at each moment.

use std::time::Duration;

use throng_base::units::{parse_count, show_count};

use super::node::{Kind, Node};
use super::reader::Reader;
use super::values::{bounded_rate, positive_duration, positive_rate};

/// A phase of the load. Phases follow one another without a gap.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Closed model: the number of users changes linearly to `to`. A user that has finished its
    /// steps begins again.
    Ramp {
        /// Users at the end of the phase.
        to: u32,
        /// Length of the phase; more than zero.
        over: Duration,
    },
    /// The number of users stays constant; after `arrivals`, no new user arrives.
    Hold {
        /// Length of the phase; more than zero.
        span: Duration,
    },
    /// Open model: users arrive whether or not earlier ones have finished. Each runs its steps
    /// once.
    Arrivals {
        /// Arrivals per second at the beginning.
        from: f64,
        /// Arrivals per second at the end; the rate between them is linear.
        to: f64,
        /// Length of the phase; more than zero.
        span: Duration,
        /// Maximum number of arrivals in the phase; at least 1.
        most: Option<u64>,
        /// Distribution of the gaps between arrivals.
        spacing: Spacing,
    },
}

/// Distribution of the gaps between arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// At random, as independent people arrive: the gaps are exponentially distributed.
    #[default]
    Poisson,
    /// All gaps are equal.
    Even,
}

/// Model of the load: what decides when a user starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// A fixed number of users that repeat their steps: a slow server slows the load.
    Closed,
    /// Arrivals by the clock: a slow server does not slow the load.
    Open,
}

impl Phase {
    /// Returns the length of the phase.
    pub fn length(&self) -> Duration {
        match *self {
            Self::Ramp { over, .. } => over,
            Self::Hold { span } | Self::Arrivals { span, .. } => span,
        }
    }
}

impl Model {
    /// Returns the model of these phases; a load of `hold` alone counts as closed.
    pub fn of(phases: &[Phase]) -> Self {
        let open = phases.iter().any(|phase| matches!(phase, Phase::Arrivals { .. }));
        if open { Self::Open } else { Self::Closed }
    }
}

/// Reads the list of phases and checks their order.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<Phase>> {
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(
            node,
            "`load`",
            "a list of phases such as `- ramp: {to: 100, over: 10s}`",
        );
        return None;
    };
    if items.is_empty() {
        reader.error(node.span.clone(), "`load` has no phase", "add at least one");
        return None;
    }
    let mut phases = Vec::new();
    let mut complete = true;
    for item in items {
        match read_phase(reader, item) {
            Some(phase) => phases.push((phase, item)),
            None => complete = false,
        }
    }
    if !complete {
        return None;
    }
    check_order(reader, &phases);
    Some(phases.into_iter().map(|(phase, _)| phase).collect())
}

fn read_phase(reader: &mut Reader<'_>, node: &Node) -> Option<Phase> {
    let what = "a load phase";
    let Kind::Map(entries) = &node.kind else {
        match node.scalar() {
            Some(name) if !PHASES.contains(&name) => {
                reader.unknown(node.span.clone(), &format!("load phase `{name}`"), name, &PHASES);
            }
            _ => reader.wrong_kind(node, what, "a mapping such as `ramp: {to: 100, over: 10s}`"),
        }
        return None;
    };
    let fields = reader.fields(node, what, &PHASES)?;
    if let [_, (second, _), ..] = &entries[..] {
        reader.error(
            second.span.clone(),
            "each phase needs its own list item",
            "start this one with `- `",
        );
        return None;
    }
    if let Some(node) = fields.get("ramp") {
        read_ramp(reader, node)
    } else if let Some(node) = fields.get("hold") {
        let fields = reader.fields(node, "`hold`", &["for"])?;
        let node = reader.require(&fields, "for", "`hold`", "hold: {for: 1m}")?;
        Some(Phase::Hold { span: positive_duration(reader, node, "`for`")? })
    } else {
        read_arrivals(reader, fields.get("arrivals")?)
    }
}

fn read_ramp(reader: &mut Reader<'_>, node: &Node) -> Option<Phase> {
    let fields = reader.fields(node, "`ramp`", &["to", "over"])?;
    let to = reader
        .require(&fields, "to", "`ramp`", "to: 100k")
        .and_then(|node| read_users(reader, node));
    let over = reader.require(&fields, "over", "`ramp`", "over: 15m");
    let over = over.and_then(|node| positive_duration(reader, node, "`over`"));
    Some(Phase::Ramp { to: to?, over: over? })
}

fn read_users(reader: &mut Reader<'_>, node: &Node) -> Option<u32> {
    let users = reader.quantity(node, "`to`", parse_count)?;
    let fits = u32::try_from(users).ok();
    if fits.is_none() {
        let most = u32::MAX;
        reader.error(node.span.clone(), "too many users", format!("at most {most}"));
    }
    fits
}

fn read_arrivals(reader: &mut Reader<'_>, node: &Node) -> Option<Phase> {
    let fields = reader.fields(node, "`arrivals`", &["rate", "for", "most", "spacing"])?;
    let rate = reader.require(&fields, "rate", "`arrivals`", "rate: 1000/s");
    let rate = rate.and_then(|node| read_rate(reader, node));
    let span = reader.require(&fields, "for", "`arrivals`", "for: 100s");
    let span = span.and_then(|node| positive_duration(reader, node, "`for`"));
    let most = match fields.get("most") {
        None => Some(None),
        Some(node) => match reader.quantity(node, "`most`", parse_count) {
            Some(0) => {
                reader.error(node.span.clone(), "no user would arrive", "at least 1");
                None
            }
            read => read.map(Some),
        },
    };
    let spacing = match fields.get("spacing") {
        None => Some(Spacing::default()),
        Some(node) => reader.one_of(
            node,
            "`spacing`",
            &[("poisson", Spacing::Poisson), ("even", Spacing::Even)],
        ),
    };
    let (from, to) = rate?;
    Some(Phase::Arrivals { from, to, span: span?, most: most?, spacing: spacing? })
}

/// Reads `1000/s`, or `{from, to}` for a rate that changes linearly over the phase.
fn read_rate(reader: &mut Reader<'_>, node: &Node) -> Option<(f64, f64)> {
    if !matches!(node.kind, Kind::Map(_)) {
        let rate = positive_rate(reader, node)?;
        return Some((rate, rate));
    }
    let fields = reader.fields(node, "`rate`", &["from", "to"])?;
    let from = reader.require(&fields, "from", "`rate`", "from: 0/s");
    let from = from.and_then(|node| bounded_rate(reader, node, "`from`"));
    let to = reader.require(&fields, "to", "`rate`", "to: 5k/s");
    let to = to.and_then(|node| bounded_rate(reader, node, "`to`"));
    let (from, to) = from.zip(to)?;
    if from == 0.0 && to == 0.0 {
        reader.error(
            node.span.clone(),
            "no user would ever arrive",
            "`from` or `to` must be more than 0",
        );
        return None;
    }
    Some((from, to))
}

/// Checks that each phase can follow the previous one.
///
/// `ramp` sets a number of users that begin again when they end. `arrivals` has users that come
/// once, and nothing sets their number. After `arrivals` there is no number to ramp from, and after
/// a ramp it is undefined which users an arrival joins. So a load uses one of the two; `hold` works
/// with both.
fn check_order(reader: &mut Reader<'_>, phases: &[(Phase, &Node)]) {
    let model = match phases[0].0 {
        Phase::Arrivals { .. } => Model::Open,
        _ => Model::Closed,
    };
    let mut users = 0;
    for (index, (phase, node)) in phases.iter().enumerate() {
        let span = reader.first_line(&node.span);
        match (phase, model) {
            (Phase::Hold { .. }, _) if index == 0 => {
                reader.error(
                    span,
                    "the load begins with `hold`, but there are no users yet",
                    "add `ramp` or `arrivals` before it",
                );
            }
            (Phase::Ramp { to, .. }, Model::Closed) => {
                if *to == users {
                    let title = format!("there are {} users already", show_count(users.into()));
                    reader.error(
                        span,
                        title,
                        "a ramp must change the number of users; did you mean `hold`?",
                    );
                }
                users = *to;
            }
            (Phase::Ramp { .. }, Model::Open) => {
                reader
                    .error(span, "`ramp` cannot follow `arrivals`", "a load has one model")
                    .help = Some(ONE_MODEL.to_owned());
            }
            (Phase::Arrivals { .. }, Model::Closed) => {
                reader
                    .error(
                        span,
                        "`arrivals` cannot follow `ramp` or `hold`",
                        "a load has one model",
                    )
                    .help = Some(ONE_MODEL.to_owned());
            }
            (Phase::Hold { .. } | Phase::Arrivals { .. }, _) => {}
        }
    }
}

const PHASES: [&str; 3] = ["ramp", "hold", "arrivals"];

const ONE_MODEL: &str = "a load is either closed (`ramp`: a fixed number of users that repeat \
    their steps) or open (`arrivals`: users arrive by the clock and run once); `hold` works with \
    both";
