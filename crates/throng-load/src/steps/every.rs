//! `every`: repeats steps by the clock.

use throng_base::units::parse_jitter;

use super::prelude::*;
use crate::program::Turns;
use crate::scenario::values::{bounded_rate, positive_duration, positive_rate};
use crate::scenario::{Curve, read_curve};
use crate::schedule::{Pace, PacedTurns};

pub(super) const KIND: StepKind =
    StepKind::new("every", "every: {period: 1s, do: [send: ping]}", StepForm::Body(read));

#[derive(Debug)]
struct Every {
    /// Due moments of the turns.
    pace: Pace,
    /// Time after which no turn is due; `None` if the loop runs as long as its user.
    span: Option<Duration>,
    /// Steps of a turn; at least one.
    steps: Vec<Step>,
}

impl Action for Every {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        flow.check_turns(true, |flow| check_steps(&self.steps, flow));
        if self.span.is_none() {
            flow.end();
        }
    }

    fn inner_size(&self) -> ExpandedSize {
        size_of(&self.steps)
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let pace = PacedTurns::new(self.pace);
        let turns = self.span.map_or(u64::MAX, |span| pace.turns_planned(span));
        let body = |compiler: &mut Compiler<'_>| compile_steps(&self.steps, compiler);
        compiler.repeat(Turns::Every { pace, turns }, |_| self.span, body);
    }
}

fn read(reader: &mut Reader<'_>, node: &Node, place: &StepPlace) -> Option<Box<dyn Action>> {
    let fields = reader.fields(node, "`every`", &["period", "rate", "for", "do"])?;
    let pace = match (fields.get("period"), fields.get("rate")) {
        (Some(period), None) => read_period(reader, period),
        (None, Some(rate)) => read_rate(reader, rate),
        (Some(_), Some(_)) => {
            let span = fields.key_span("rate");
            reader.error(span, "`every` has both `period` and `rate`", "use only one of them");
            None
        }
        (None, None) => {
            place.error(reader, "`every` needs `period` or `rate`", "for example `period: 1s`");
            None
        }
    };
    let span =
        reader.optional(&fields, "for", |reader, node| positive_duration(reader, node, "`for`"));
    let steps = place.read_body(reader, &fields, "`every`");
    Some(Box::new(Every { pace: pace?, span: span?, steps: steps? }))
}

/// Reads `5s`, or `5s ±10%`.
fn read_period(reader: &mut Reader<'_>, node: &Node) -> Option<Pace> {
    let (period, jitter) = reader.quantity(node, "`period`", parse_jitter)?;
    if period.is_zero() {
        reader.error(node.span.clone(), "`period` is zero", "must be more than 0s");
        return None;
    }
    if jitter > JITTER_MAX {
        let title = "`period` varies by more than 50%";
        let label = "at most ±50%: beyond it, turns would change places";
        reader.error(node.span.clone(), title, label);
        return None;
    }
    Some(if jitter > 0.0 { Pace::Jittered { period, jitter } } else { Pace::Period(period) })
}

/// Reads `10/s`, or `{from, to, over}` for a rate that changes and then stays constant.
fn read_rate(reader: &mut Reader<'_>, node: &Node) -> Option<Pace> {
    if !matches!(node.kind, Kind::Map(_)) {
        let rate = positive_rate(reader, node)?;
        return Some(Pace::Rate {
            from: rate,
            to: rate,
            over: Duration::ZERO,
            curve: Curve::Linear,
        });
    }
    let fields = reader.fields(node, "`rate`", &["from", "to", "over", "curve"])?;
    let from = reader.require(&fields, "from", "`rate`", "from: 1/s");
    let from = from.and_then(|node| bounded_rate(reader, node, "`from`"));
    let to = reader.require(&fields, "to", "`rate`", "to: 10/s");
    let to = to.and_then(|node| positive_rate(reader, node));
    let over = reader.require(&fields, "over", "`rate`", "over: 10m");
    let over = over.and_then(|node| positive_duration(reader, node, "`over`"));
    let curve = read_curve(reader, fields.get("curve"));
    let (from, curve) = (from?, curve?);
    if from == 0.0 && curve == Curve::Exponential {
        let span = fields.get("from").map_or(node.span.clone(), |node| node.span.clone());
        let title = "an exponential rate never reaches zero";
        reader.error(span, title, "more than 0, such as 1/s");
        return None;
    }
    Some(Pace::Rate { from, to: to?, over: over?, curve })
}

/// Largest spread that keeps turns in order.
const JITTER_MAX: f64 = 0.5;
