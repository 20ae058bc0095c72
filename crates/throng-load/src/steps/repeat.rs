//! `repeat`: repeats steps without a pause.

use throng_base::units::parse_count;

use super::prelude::*;
use crate::program::{Condition, Turns};
use crate::scenario::condition::read_condition;
use crate::scenario::values::positive_duration;

pub(super) const KIND: StepKind =
    StepKind::new("repeat", "repeat: {times: 10, do: [send: ping]}", StepForm::Body(read));

#[derive(Debug)]
struct Repeat {
    until: Until,
    /// Steps of a turn; at least one.
    steps: Vec<Step>,
}

/// End of a `repeat`.
#[derive(Debug, PartialEq, Eq)]
enum Until {
    /// Condition that holds before each turn.
    While(Condition),
    /// Number of turns; at least 1.
    Times(u64),
    /// Time after which no turn begins; at least one turn is taken.
    For(Duration),
}

impl Action for Repeat {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        let again = self.until != Until::Times(1);
        flow.check_turns(again, |flow| check_steps(&self.steps, flow));
    }

    fn inner_size(&self) -> ExpandedSize {
        size_of(&self.steps)
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let turns = match self.until {
            Until::Times(times) => Turns::Times(times),
            Until::For(span) => Turns::For { span_ns: nanos(span) },
            Until::While(ref condition) => {
                Turns::While { condition: compiler.condition(condition) }
            }
        };
        let time_min = |turn: Option<Duration>| match self.until {
            Until::For(span) => Some(span),
            Until::While(_) => Some(Duration::ZERO),
            Until::Times(times) => {
                let times = u32::try_from(times).unwrap_or(u32::MAX);
                turn.map(|turn| turn.saturating_mul(times))
            }
        };
        compiler.repeat(turns, time_min, |compiler| compile_steps(&self.steps, compiler));
    }
}

/// Reads the condition of a `while`. One without a variable would hold for ever, or never.
fn read_while(reader: &mut Reader<'_>, node: &Node) -> Option<Until> {
    let condition = read_condition(reader, node)?;
    if !condition.has_variables() {
        let label = "no variable is in it; for example ${count} < 10";
        reader.error(node.span.clone(), "the condition of this `while` never changes", label);
        return None;
    }
    Some(Until::While(condition))
}

fn read(reader: &mut Reader<'_>, node: &Node, place: &StepPlace) -> Option<Box<dyn Action>> {
    let fields = reader.fields(node, "`repeat`", &["times", "for", "while", "do"])?;
    let given = ["times", "for", "while"].map(|key| fields.get(key));
    let until = match given {
        [Some(times), None, None] => match reader.quantity(times, "`times`", parse_count) {
            Some(0) => {
                reader.error(times.span.clone(), "`times` is zero", "at least 1");
                None
            }
            times => times.map(Until::Times),
        },
        [None, Some(span), None] => positive_duration(reader, span, "`for`").map(Until::For),
        [None, None, Some(node)] => read_while(reader, node),
        [None, None, None] => {
            let title = "`repeat` needs `times`, `for` or `while`";
            place.error(reader, title, "for example `times: 10`");
            None
        }
        _ => {
            let key = if given[2].is_some() { "while" } else { "for" };
            let label = "use only one of `times`, `for` and `while`";
            reader.error(fields.key_span(key), "`repeat` has two ends", label);
            None
        }
    };
    let steps = place.read_body(reader, &fields, "`repeat`");
    Some(Box::new(Repeat { until: until?, steps: steps? }))
}
