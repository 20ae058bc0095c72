//! `sleep`: the think times of a script.

use std::time::Duration;

use throng_base::units::show_duration;

use crate::source::Span;
use crate::step;

use super::parser::program;
use super::script::{Done, Item, Script};
use super::syntax::{Expression, ExpressionKind};

impl Script<'_, '_> {
    /// Translates `sleep(time)`.
    pub(super) fn sleep(&mut self, arguments: &[Expression], span: &Span) -> Done<()> {
        let [time] = arguments else { return Err(program(span)) };
        let time = self.values.before_draw(time);
        let whole = time.call().and_then(|(name, arguments)| match arguments {
            [least, most] if name == "randomIntBetween" => least.number().zip(most.number()),
            _ => None,
        });
        let (least, most) =
            whole.or_else(|| random_range(&time)).ok_or_else(|| program(&time.span))?;
        let seconds = |seconds: f64| {
            let fits = (0.0..=SLEEP_MAX_S).contains(&seconds);
            fits.then(|| Duration::from_secs_f64(seconds)).ok_or_else(|| program(&time.span))
        };
        let wait = match least < most {
            true => format!(
                "uniform({}, {})",
                show_duration(seconds(least)?),
                show_duration(seconds(most)?)
            ),
            false => show_duration(seconds(least)?),
        };
        if whole.is_some() && least < most {
            let how = "think times are evenly distributed, and not whole seconds";
            self.translator.approximated(span, "sleep", how);
        }
        if wait == "0s" {
            self.translator.not_needed(span, "sleep", "it takes no time");
            return Ok(());
        }
        if whole.is_none() {
            self.translator.translated(span, "sleep");
        }
        self.items.push(Item::Step(step::wait(wait)));
        Ok(())
    }
}

/// Returns the least and the most of `Math.random() * 2 + 1`, in any order; both are the same for a
/// number.
fn random_range(value: &Expression) -> Option<(f64, f64)> {
    if let Some(number) = value.number() {
        return Some((number, number));
    }
    if value.call().is_some_and(|(name, arguments)| name == "Math.random" && arguments.is_empty()) {
        return Some((0.0, 1.0));
    }
    let ExpressionKind::Binary(left, sign, right) = &value.kind else { return None };
    let ((a, b), (c, d)) = (random_range(left)?, random_range(right)?);
    let is_number = |least: f64, most: f64| least == most;
    match *sign {
        "+" if is_number(a, b) || is_number(c, d) => Some((a + c, b + d)),
        "-" if is_number(c, d) => Some((a - c, b - c)),
        "*" if is_number(a, b) && a >= 0.0 => Some((a * c, a * d)),
        "*" if is_number(c, d) && c >= 0.0 => Some((a * c, b * c)),
        "/" if is_number(c, d) && c > 0.0 => Some((a / c, b / c)),
        _ => None,
    }
}

/// The longest sleep: a day.
const SLEEP_MAX_S: f64 = 86_400.0;
