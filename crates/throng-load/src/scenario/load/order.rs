//! The phases one after another: loops are written out, and each phase must be able to follow the
//! one before.

use throng_base::units::{show_count, show_rate};

use super::phase::{Curve, Level, Model, PHASES_MAX, Phase, PhaseNode, PhaseShape, SpikeShape};
use crate::scenario::node::Node;
use crate::scenario::reader::Reader;

/// The phases so far, and the level that they end with.
///
/// `ramp` sets a number of users that begin again when they end. `arrivals` has users that come
/// once, and nothing sets their number. After `arrivals` there is no number to ramp from, and after
/// a ramp it is undefined which users an arrival joins. So a load uses one of the two; `hold` works
/// with both.
#[derive(Default)]
pub(super) struct PhaseList {
    phases: Vec<Phase>,
    model: Option<Model>,
    /// Users at the end of the closed model's phases.
    users: u32,
    /// Arrivals per second at the end of the open model's phases.
    rate: f64,
    /// Turn of the loop around the phase; the first is 1. Zero outside of loops.
    turn: u64,
    is_full: bool,
}

impl PhaseList {
    /// Appends the phases that are written in a list, and reports what cannot follow.
    pub(super) fn append(&mut self, reader: &mut Reader<'_>, written: &[PhaseNode<'_>]) {
        for PhaseNode { node, shape } in written {
            match shape {
                PhaseShape::Plain(phases) => {
                    for phase in phases {
                        self.push(reader, node, phase.clone());
                    }
                }
                PhaseShape::Spike(spike) => self.push_spike(reader, node, *spike),
                PhaseShape::Loop { times, phases } => {
                    let around = self.turn;
                    for turn in 1..=*times {
                        if self.is_full {
                            return;
                        }
                        self.turn = turn;
                        let mistakes = reader.mistakes.len();
                        self.append(reader, phases);
                        // Later turns have the mistakes of this one.
                        if reader.mistakes.len() > mistakes {
                            break;
                        }
                    }
                    self.turn = around;
                }
            }
        }
    }

    /// Returns the phases.
    pub(super) fn into_phases(self) -> Vec<Phase> {
        self.phases
    }

    fn push(&mut self, reader: &mut Reader<'_>, node: &Node, phase: Phase) {
        if self.phases.len() >= PHASES_MAX {
            if !std::mem::replace(&mut self.is_full, true) {
                let title = format!("more than {} phases", show_count(PHASES_MAX as u64));
                let span = reader.first_line(&node.span);
                reader.error(span, title, "each turn of a loop counts; repeat it less often");
            }
            return;
        }
        if !self.check(reader, node, &phase) {
            return;
        }
        match phase {
            Phase::Ramp { to, .. } | Phase::Step { to, .. } => self.users = to,
            Phase::Arrivals { to, .. } => self.rate = to,
            Phase::Hold { .. } | Phase::Recorded { .. } => self.rate = 0.0,
            Phase::Spike { .. } => {}
        }
        self.phases.push(phase);
    }

    /// Reports whether `phase` can come next.
    fn check(&mut self, reader: &mut Reader<'_>, node: &Node, phase: &Phase) -> bool {
        let span = reader.first_line(&node.span);
        if self.phases.is_empty() && matches!(phase, Phase::Hold { .. }) {
            // It still decides the model, so that the next phase has no mistake of its own.
            let label = "add `ramp` or `arrivals` before it";
            let title = "the load begins with `hold`, but there are no users yet";
            reader.error(span, title, label);
            return true;
        }
        if let Some(Phase::Hold { until_done: true, .. }) = self.phases.last() {
            let title = "no phase can follow a `hold` with `until: done`";
            reader.error(span, title, "the load ends with its users before this");
            return false;
        }
        if matches!(phase, Phase::Hold { until_done: true, .. }) && self.model != Some(Model::Open)
        {
            let title = "the users of this load are never done: they begin again and again";
            let error = reader.error(span, title, "`until: done` needs users of `arrivals`");
            error.help = Some("leave out `until`".to_owned());
            return false;
        }
        let Some(model) = Model::of_phase(phase) else { return true };
        if self.model.is_some_and(|known| known != model) {
            let title = match phase {
                Phase::Ramp { .. } => "`ramp` cannot follow `arrivals`",
                Phase::Arrivals { .. } | Phase::Recorded { .. } => {
                    "`arrivals` cannot follow `ramp` or `hold`"
                }
                _ => "a number of users cannot follow `arrivals`",
            };
            reader.error(span, title, "a load has one model").help = Some(ONE_MODEL.to_owned());
            return false;
        }
        self.model = Some(model);
        if let Phase::Ramp { to, .. } | Phase::Step { to, .. } | Phase::Spike { to, .. } = *phase
            && to == self.users
        {
            let title = format!("there are {} users already", show_count(to.into()));
            let label = match phase {
                Phase::Ramp { .. } => {
                    "a ramp must change the number of users; did you mean `hold`?"
                }
                Phase::Spike { .. } => "a spike must change the number of users",
                _ => "the first step must change the number of users; begin with the next one",
            };
            let turn = self.turn;
            reader.error(span, title, label).help = (turn > 1).then(|| {
                let before = turn - 1;
                format!("this is turn {turn} of `loop`, which begins where turn {before} ended")
            });
            return false;
        }
        true
    }

    /// Appends a spike: one phase of users, or up to three of arrivals.
    fn push_spike(&mut self, reader: &mut Reader<'_>, node: &Node, spike: SpikeShape) {
        let SpikeShape { to, over, span, spacing } = spike;
        let rate = match to {
            Level::Users(to) => {
                let phase = Phase::Spike { to, back: self.users, over, span };
                return self.push(reader, node, phase);
            }
            Level::Rate(rate) => rate,
        };
        let back = self.rate;
        if rate == back {
            let title = format!("there are {} arrivals already", show_rate(rate));
            let at = reader.first_line(&node.span);
            reader.error(at, title, "a spike must change the rate");
            return;
        }
        let arrivals = |from, to, span| {
            let curve = Curve::Linear;
            Phase::Arrivals { from, to, curve, span, most: None, spacing }
        };
        if !over.is_zero() {
            self.push(reader, node, arrivals(back, rate, over));
        }
        self.push(reader, node, arrivals(rate, rate, span));
        if !over.is_zero() {
            self.push(reader, node, arrivals(rate, back, over));
        }
        self.rate = back;
    }
}

const ONE_MODEL: &str = "a load is either closed (`ramp`: a fixed number of users that repeat \
    their steps) or open (`arrivals`: users arrive by the clock and run once); `hold` works with \
    both";
