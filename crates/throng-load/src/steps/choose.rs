//! `choose`: one of several lists of steps, at random.

use throng_base::units::parse_count;

use super::prelude::*;

pub(super) const KIND: StepKind = StepKind::new(
    "choose",
    "choose: [{weight: 9, do: [send: ping]}, {do: [wait: 1s]}]",
    StepForm::Body(read),
);

/// Lists of steps, each with its weight.
#[derive(Debug)]
struct Choose(Vec<(u32, Vec<Step>)>);

impl Action for Choose {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        let bodies: Vec<_> = self
            .0
            .iter()
            .map(|(_, steps)| |flow: &mut Flow<'_, '_>| check_steps(steps, flow))
            .collect();
        flow.check_branches(&bodies);
    }

    fn inner_size(&self) -> ExpandedSize {
        let lists = self.0.iter().map(|(_, steps)| size_of(steps));
        lists.fold(ExpandedSize::default(), ExpandedSize::plus)
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let bodies: Vec<_> = self
            .0
            .iter()
            .map(|(_, steps)| |compiler: &mut Compiler<'_>| compile_steps(steps, compiler))
            .collect();
        let weights: Vec<_> = self.0.iter().map(|(weight, _)| *weight).collect();
        compiler.choose(&weights, &bodies);
    }
}

fn read(reader: &mut Reader<'_>, node: &Node, place: &StepPlace) -> Option<Box<dyn Action>> {
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(node, "`choose`", "a list such as [{weight: 9, do: [...]}, {do: [...]}]");
        return None;
    };
    if items.len() < 2 {
        let label = "add another one";
        reader.error(node.span.clone(), "`choose` needs at least two lists of steps", label);
        return None;
    }
    let lists: Vec<_> = items
        .iter()
        .map(|item| {
            let what = "a list of `choose`";
            let fields = reader.fields(item, what, &["weight", "do"])?;
            let weight = reader.value_or(&fields, "weight", 1, read_weight);
            let steps = place.read_branch(reader, &fields, what, "do");
            Some((weight?, steps?))
        })
        .collect();
    let lists: Option<Vec<_>> = lists.into_iter().collect();
    Some(Box::new(Choose(lists?)))
}

fn read_weight(reader: &mut Reader<'_>, node: &Node) -> Option<u32> {
    let weight = reader.quantity(node, "`weight`", parse_count)?;
    match u32::try_from(weight) {
        Ok(1..=WEIGHT_MAX) => Some(weight as u32),
        _ => {
            let title = "this weight cannot be used";
            reader.error(node.span.clone(), title, format!("at least 1, at most {WEIGHT_MAX}"));
            None
        }
    }
}

/// Goes on with one of the lists.
pub(crate) fn begin(cx: &mut UserContext<'_>, choice: u32) -> StepOutcome {
    StepOutcome::Go(cx.rules.program.choice(choice).choose(&mut cx.user.prng))
}

/// Keeps the sum of the weights below 2^32.
const WEIGHT_MAX: u32 = 1_000_000;
