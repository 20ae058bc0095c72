//! `repeat`: repeats steps without a pause.

use throng_base::units::parse_count;

use super::prelude::*;
use crate::program::Turns;
use crate::scenario::step::{Step, check_steps, compile_steps};
use crate::scenario::step_list::StepPlace;
use crate::scenario::values::positive_duration;

pub(super) const KIND: StepKind = StepKind {
    name: "repeat",
    example: "repeat: {times: 10, do: [send: ping]}",
    protocols: Protocol::ALL,
    form: StepForm::Body(read),
};

#[derive(Debug)]
struct Repeat {
    until: Until,
    /// Steps of a turn; at least one.
    steps: Vec<Step>,
}

/// End of a `repeat`.
#[derive(Debug, PartialEq, Eq)]
enum Until {
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

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let turns = match self.until {
            Until::Times(times) => Turns::Times(times),
            Until::For(span) => Turns::For { span_ns: nanos(span) },
        };
        let time_min = |turn: Option<Duration>| match self.until {
            Until::For(span) => Some(span),
            Until::Times(times) => {
                let times = u32::try_from(times).unwrap_or(u32::MAX);
                turn.map(|turn| turn.saturating_mul(times))
            }
        };
        compiler.repeat(turns, time_min, |compiler| compile_steps(&self.steps, compiler));
    }
}

fn read(reader: &mut Reader<'_>, node: &Node, place: &StepPlace) -> Option<Box<dyn Action>> {
    let fields = reader.fields(node, "`repeat`", &["times", "for", "do"])?;
    let until = match (fields.get("times"), fields.get("for")) {
        (Some(times), None) => match reader.quantity(times, "`times`", parse_count) {
            Some(0) => {
                reader.error(times.span.clone(), "`times` is zero", "at least 1");
                None
            }
            times => times.map(Until::Times),
        },
        (None, Some(span)) => positive_duration(reader, span, "`for`").map(Until::For),
        (Some(_), Some(_)) => {
            let span = fields.key_span("for");
            reader.error(span, "`repeat` has both `times` and `for`", "use only one of them");
            None
        }
        (None, None) => {
            place.error(reader, "`repeat` needs `times` or `for`", "for example `times: 10`");
            None
        }
    };
    let steps = place.read_body(reader, &fields, "`repeat`");
    Some(Box::new(Repeat { until: until?, steps: steps? }))
}
