//! One chart: curves over time, in braille.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use ratatui::widgets::canvas::{Canvas, Context};
use throng_base::units::{brief_count, show_duration};

use super::cut::{bottom, top};
use super::pen::{Pen, Trace};
use super::style::FAINT;

/// A chart of curves over time.
#[derive(Debug)]
pub(crate) struct Chart {
    /// The chart's name, and a short one.
    pub(crate) names: [String; 2],
    pub(crate) legends: Vec<Legend>,
    /// The curves; the last one is on top.
    pub(crate) curves: Vec<Curve>,
    /// The end of the time axis, in milliseconds.
    pub(crate) until_ms: u64,
    pub(crate) scale: Scale,
}

/// What a curve is.
#[derive(Debug)]
pub(crate) struct Legend {
    pub(crate) name: &'static str,
    /// The last value, as text.
    pub(crate) value: String,
    pub(crate) pen: Pen,
}

/// A curve of a chart.
#[derive(Debug)]
pub(crate) struct Curve {
    pub(crate) pen: Pen,
    /// Milliseconds, and the value; an unknown value is a gap.
    pub(crate) points: Vec<(u64, Option<f64>)>,
}

/// The scale of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    /// From 0 to this value.
    Linear(f64),
    /// Microseconds, between two powers of ten.
    Log { from: i32, to: i32 },
}

impl Scale {
    /// Returns a scale from 0 to 10 at least that has room for `most`, and a round number at its
    /// end.
    pub(crate) fn linear(most: f64) -> Self {
        let most = if most.is_finite() { most.max(10.0) } else { 10.0 };
        let power = 10f64.powf(most.log10().floor());
        let steps = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0];
        let step = steps.into_iter().find(|step| step * power >= most);
        Self::Linear(step.unwrap_or(10.0) * power)
    }

    /// Returns a logarithmic scale for microseconds from `least` to `most`.
    pub(crate) fn log(least: f64, most: f64) -> Self {
        let from = least.max(10.0).log10().floor() as i32;
        let to = (most.max(10.0).log10().ceil() as i32).max(from + 1);
        Self::Log { from, to }
    }

    /// Returns the height of a value: 0 at the bottom, 1 at the top.
    fn height(self, value: f64) -> f64 {
        let height = match self {
            Self::Linear(most) => value / most,
            Self::Log { from, to } => {
                (value.max(1.0).log10() - f64::from(from)) / f64::from(to - from)
            }
        };
        height.clamp(0.0, 1.0)
    }

    /// Returns the labels of the axis, from the bottom, for this number of lines.
    fn labels(self, lines: u16) -> Vec<(f64, String)> {
        match self {
            Self::Linear(most) => {
                let parts = if lines >= 5 { 2 } else { 1 };
                let value = |part| most * f64::from(part) / f64::from(parts);
                (0..=parts).map(|part| (value(part), brief_count(value(part)))).collect()
            }
            Self::Log { from, to } => {
                let decades = to - from;
                let each = (decades / i32::from(lines.max(2) - 1) + 1).max(1);
                let label = |power: i32| (10f64.powi(power), decade(power));
                (from..=to).step_by(each as usize).map(label).collect()
            }
        }
    }
}

/// Returns a power of ten of microseconds: `100 µs`, `1 ms`, `10 s`.
fn decade(power: i32) -> String {
    let (unit, below) = match power {
        ..=2 => ("µs", 0),
        3..=5 => ("ms", 3),
        _ => ("s", 6),
    };
    format!("{} {unit}", 10u64.pow((power - below).clamp(0, 18) as u32))
}

impl Chart {
    /// Returns the lines above the curves: a legend with its values, in two lines if it may be and
    /// one is too short, or without values.
    fn title(&self, width: u16, may_wrap: bool) -> Vec<Line<'_>> {
        let [long, short] = &self.names;
        let fits = |line: &Line<'_>| line.width() <= usize::from(width);
        let first = |has_values| {
            [long, short].into_iter().map(move |name| self.legend(name, has_values)).find(fits)
        };
        if let Some(line) = first(true) {
            return vec![line];
        }
        let names = first(false).unwrap_or_else(|| self.legend(short, false));
        let values =
            || [true, false].map(|has_marks| self.values(has_marks)).into_iter().find(fits);
        [names].into_iter().chain(may_wrap.then(values).flatten()).collect()
    }

    fn legend<'a>(&'a self, name: &'a str, has_values: bool) -> Line<'a> {
        let mut spans = Vec::new();
        if !name.is_empty() {
            spans.push(Span::from(name).bold());
        }
        for Legend { name, value, pen } in &self.legends {
            let gap = match (spans.is_empty(), has_values) {
                (true, _) => "",
                (false, true) => "  ",
                (false, false) => " ",
            };
            let mark = pen.style.mark();
            let value = if has_values { format!(" {value}") } else { String::new() };
            spans.push(Span::from(format!("{gap}{mark}{name}{value}")).fg(pen.color));
        }
        Line::from(spans)
    }

    /// Returns the values of the legend, in its order.
    fn values(&self, has_marks: bool) -> Line<'_> {
        let value = |(at, Legend { value, pen, .. }): (usize, &Legend)| {
            let mark = if has_marks { pen.style.mark() } else { ' ' };
            let text = format!(" {mark}{value}");
            Span::from(if at == 0 { text.trim_start().to_owned() } else { text }).fg(pen.color)
        };
        Line::from_iter(self.legends.iter().enumerate().map(value))
    }

    /// Draws the curves into `plot`.
    fn draw_curves(&self, plot: Rect, buffer: &mut Buffer) {
        let until = self.until_ms.max(1) as f64;
        let paint = |context: &mut Context<'_>| {
            for curve in &self.curves {
                let at = |ms: u64, value: f64| (ms as f64 / until, self.scale.height(value));
                let points = curve.points.iter().map(|(ms, value)| Some(at(*ms, (*value)?)));
                context.draw(&Trace { pen: curve.pen, points: points.collect() });
            }
        };
        let canvas = Canvas::default().marker(Marker::Braille).x_bounds([0.0, 1.0]);
        canvas.y_bounds([0.0, 1.0]).paint(paint).render(plot, buffer);
    }

    /// Draws the axis of values beside `plot`.
    fn draw_values(&self, plot: Rect, buffer: &mut Buffer) {
        for y in plot.top()..plot.bottom() {
            buffer.set_string(plot.left() - 1, y, "│", FAINT);
        }
        for (value, label) in self.scale.labels(plot.height) {
            let lines = f64::from(plot.height.saturating_sub(1));
            let line = ((1.0 - self.scale.height(value)) * lines).round() as u16;
            let label = format!("{label:>width$} ┤", width = usize::from(GUTTER) - 2);
            buffer.set_string(plot.left() - GUTTER, plot.top() + line, label, FAINT);
        }
    }

    /// Draws the axis of time below `plot`.
    fn draw_time(&self, plot: Rect, buffer: &mut Buffer) {
        let y = plot.bottom();
        let line = format!("└{}", "─".repeat(plot.width.into()));
        buffer.set_string(plot.left() - 1, y, line, FAINT);
        let parts = if plot.width >= 60 { 4 } else { 2 };
        for part in 0..=parts {
            let ms = self.until_ms * part / parts;
            let label = show_duration(Duration::from_millis(ms));
            let width = label.chars().count() as u16;
            let x = plot.width.saturating_sub(1) as u64 * part / parts;
            let x = (x as u16).saturating_sub(width / 2).min(plot.width.saturating_sub(width));
            buffer.set_stringn(plot.left() + x, y, label, plot.width.into(), FAINT);
        }
    }
}

impl Widget for Chart {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        if area.is_empty() {
            return;
        }
        let mut rest = area;
        for line in self.title(area.width, area.height > CHART_HEIGHT_MIN) {
            line.render(top(&mut rest, 1), buffer);
        }
        if area.width < GUTTER + PLOT_WIDTH_MIN || area.height < CHART_HEIGHT_MIN {
            return;
        }
        bottom(&mut rest, 1);
        let plot = Rect { x: rest.x + GUTTER, width: rest.width - GUTTER, ..rest };
        self.draw_curves(plot, buffer);
        self.draw_values(plot, buffer);
        self.draw_time(plot, buffer);
    }
}

/// Returns the end of a time axis that has room for `now_ms`: a round time, and no later than the
/// planned end. So the axis moves seldom.
pub(crate) fn round_time(now_ms: u64, planned_ms: Option<u64>) -> u64 {
    let planned_ms = planned_ms.filter(|planned_ms| *planned_ms >= now_ms);
    // A quarter of each is whole.
    let steps = [20, 40, 60, 120, 240, 480, 1_200, 2_400, 3_600, 7_200, 14_400, 28_800];
    let round = steps.into_iter().map(|seconds| seconds * 1_000).find(|ms| *ms >= now_ms);
    let hours12 = 12 * 3_600_000;
    let round = round.unwrap_or_else(|| now_ms.div_ceil(hours12).saturating_mul(hours12));
    planned_ms.map_or(round, |planned_ms| round.min(planned_ms)).max(1)
}

/// The width of the labels of values, and their line.
const GUTTER: u16 = 8;
const PLOT_WIDTH_MIN: u16 = 8;
/// The least height of a chart: a title, two lines, an axis.
pub(crate) const CHART_HEIGHT_MIN: u16 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        for (most, end) in [(0.0, 10.0), (11.0, 20.0), (950.0, 1e3), (1_001.0, 2e3), (6_500.0, 8e3)]
        {
            assert_eq!(Scale::linear(most), Scale::Linear(end), "{most}");
        }
        assert_eq!(Scale::log(120.0, 45_000.0), Scale::Log { from: 2, to: 5 });
        assert_eq!(Scale::log(1_000.0, 1_000.0), Scale::Log { from: 3, to: 4 });
        assert_eq!(Scale::log(0.0, 0.0), Scale::Log { from: 1, to: 2 });
        let labels: Vec<_> = Scale::log(120.0, 45_000.0).labels(8);
        let labels: Vec<_> = labels.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["100 µs", "1 ms", "10 ms", "100 ms"]);
    }

    #[test]
    fn the_time_axis_ends_at_a_round_time_or_with_the_run() {
        assert_eq!(round_time(0, None), 20_000);
        assert_eq!(round_time(61_000, None), 120_000);
        assert_eq!(round_time(61_000, Some(90_000)), 90_000);
        assert_eq!(round_time(95_000, Some(90_000)), 120_000, "users leave after the plan");
        assert_eq!(round_time(13 * 3_600_000, None), 24 * 3_600_000);
        assert_eq!(round_time(0, Some(0)), 1);
    }
}
