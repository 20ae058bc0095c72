//! Ramps: how many devices there are at each moment.

use std::time::Duration;

use throng_base::units::{show_count, show_duration};

use crate::phase::{self, hold};
use crate::source::Span;
use crate::translator::Translator;
use crate::yaml::Yaml;

/// The ramps of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ramps {
    pub(super) shape: RampShape,
    pub(super) sustain_ms: u64,
    /// Where they stand.
    pub(super) span: Span,
}

/// How devices start and stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RampShape {
    /// In `steps`, one after so many milliseconds.
    Stairs { steps: u64, up_ms: u64, down_ms: u64 },
    /// In so many milliseconds, with as many steps as there are generators for.
    Ramp { up_ms: u64, down_ms: u64 },
}

impl Ramps {
    /// Returns how many devices of a block of this size run at the top.
    pub(super) fn effective(&self, size: u64) -> u64 {
        let steps = match self.shape {
            RampShape::Stairs { steps, .. } => steps.max(1),
            RampShape::Ramp { .. } => return size - size % STEP_DEVICES,
        };
        size / steps * steps
    }

    /// Returns the phases for so many devices at the top. `None` after a mistake.
    pub(super) fn phases(
        &self,
        translator: &mut Translator<'_>,
        devices: u64,
    ) -> Option<Vec<Yaml>> {
        let span = &self.span;
        if devices == 0 || devices > DEVICES_MAX {
            let label = match (devices, self.shape) {
                (0, RampShape::Stairs { steps, .. }) => {
                    format!("expected a size of at least {steps}, one device for each step")
                }
                (0, RampShape::Ramp { .. }) => {
                    "expected a size of at least 10, one step".to_owned()
                }
                _ => format!("expected at most {}", show_count(DEVICES_MAX)),
            };
            let title = format!("this run has {} devices", show_count(devices));
            return translator.fail(span, title, label);
        }
        let hold = (self.sustain_ms > 0).then(|| hold(Duration::from_millis(self.sustain_ms)));
        match self.shape {
            RampShape::Ramp { up_ms, down_ms } => {
                let how = "Stressgrid starts and stops devices in steps of 10 for each generator; \
                           the scenario does one after another";
                translator.approximated(span, "ramps", how);
                let up = std::iter::once(ramp(devices, up_ms));
                Some(up.chain(hold).chain([ramp(0, down_ms)]).collect())
            }
            RampShape::Stairs { steps: 1, up_ms, .. } => {
                translator.translated(span, "ramps");
                let top = millis((up_ms + self.sustain_ms).max(1) as f64);
                let spike = [("to", Yaml::plain(show_count(devices))), ("for", Yaml::plain(top))];
                Some(vec![Yaml::entry("spike", Yaml::map(spike))])
            }
            RampShape::Stairs { steps, up_ms, down_ms } if steps > STEPS_MAX => {
                let how = "the ramps have more steps than a scenario; it starts and stops devices \
                           one after another";
                translator.approximated(span, "ramps", how);
                let up = std::iter::once(ramp(devices, up_ms.saturating_mul(steps)));
                let down = ramp(0, down_ms.saturating_mul(steps));
                Some(up.chain(hold).chain([down]).collect())
            }
            RampShape::Stairs { steps, up_ms, down_ms } => {
                translator.translated(span, "ramps");
                let by = devices / steps;
                let up = std::iter::once(stairs(by, devices, by, up_ms));
                let down = stairs(devices - by, 0, by, down_ms);
                Some(up.chain(hold).chain([down]).collect())
            }
        }
    }
}

fn ramp(to: u64, ms: u64) -> Yaml {
    phase::ramp(to, Duration::from_millis(ms.max(1)))
}

fn stairs(from: u64, to: u64, by: u64, each_ms: u64) -> Yaml {
    let count = |count: u64| Yaml::plain(show_count(count));
    let each = Yaml::plain(millis(each_ms.max(1) as f64));
    let entries = [("from", count(from)), ("to", count(to)), ("by", count(by)), ("each", each)];
    Yaml::entry("steps", Yaml::map(entries))
}

/// Returns a time as a scenario writes it.
pub(super) fn millis(ms: f64) -> String {
    show_duration(Duration::from_micros((ms * 1000.0).round() as u64))
}

/// Devices that one generator starts in a step of `sgcli`.
const STEP_DEVICES: u64 = 10;

/// Most devices of a run.
const DEVICES_MAX: u64 = 100_000_000;

/// Most steps that become steps of the scenario.
const STEPS_MAX: u64 = 4000;
