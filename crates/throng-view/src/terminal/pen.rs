//! How a curve is drawn: its colour, and a style by which it differs from others without colours.

use ratatui::style::Color;
use ratatui::widgets::canvas::{Painter, Shape};

/// The colour and the style of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pen {
    pub(crate) color: Color,
    pub(crate) style: PenStyle,
}

/// The style of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PenStyle {
    Solid,
    Dashed,
    Dotted,
}

/// A curve on a canvas.
pub(crate) struct Trace {
    pub(crate) pen: Pen,
    /// The places, in order; `None` is a gap.
    pub(crate) points: Vec<Option<(f64, f64)>>,
}

impl PenStyle {
    /// Returns the mark of the style in a legend.
    pub(crate) fn mark(self) -> char {
        match self {
            Self::Solid => '─',
            Self::Dashed => '╌',
            Self::Dotted => '┈',
        }
    }

    /// Reports whether a curve has its dot of this number.
    fn has_dot(self, number: usize) -> bool {
        match self {
            Self::Solid => true,
            Self::Dashed => number % 8 < 5,
            Self::Dotted => number.is_multiple_of(3),
        }
    }
}

impl Shape for Trace {
    fn draw(&self, painter: &mut Painter<'_, '_>) {
        let mut before = None;
        let mut number = 0;
        for point in &self.points {
            let Some(dot) = point.and_then(|(x, y)| painter.get_point(x, y)) else {
                // The first dot after a gap is always there.
                (before, number) = (None, 0);
                continue;
            };
            for (x, y) in dots(before.replace(dot), dot) {
                if self.pen.style.has_dot(number) {
                    painter.paint(x, y, self.pen.color);
                }
                number += 1;
            }
        }
    }
}

/// Returns the dots after `from` up to `to`; without `from`, only that of `to`. Many values in one
/// dot are one dot.
fn dots(from: Option<(usize, usize)>, to: (usize, usize)) -> impl Iterator<Item = (usize, usize)> {
    let (x, y) = from.unwrap_or(to);
    let steps = x.abs_diff(to.0).max(y.abs_diff(to.1));
    let between = move |from: usize, to: usize, step: usize| {
        let part = (from.abs_diff(to) * step + steps / 2) / steps.max(1);
        if to > from { from + part } else { from - part }
    };
    let first = if from.is_some() { 1 } else { 0 };
    (first..=steps).map(move |step| (between(x, to.0, step), between(y, to.1, step)))
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    use ratatui::symbols::Marker;
    use ratatui::widgets::Widget;
    use ratatui::widgets::canvas::Canvas;

    use super::*;

    #[test]
    fn dots_lead_from_one_place_to_the_next() {
        let of = |from, to| dots(from, to).collect::<Vec<_>>();
        assert_eq!(of(None, (3, 4)), [(3, 4)]);
        assert_eq!(of(Some((3, 4)), (3, 4)), []);
        assert_eq!(of(Some((0, 4)), (2, 0)), [(1, 3), (1, 2), (2, 1), (2, 0)]);
    }

    #[test]
    fn styles_differ_without_colors_and_leave_gaps_where_nothing_is_known() {
        let shown = |style| {
            let mut points: Vec<_> = (0..=20).map(|x| Some((f64::from(x), 0.0))).collect();
            points[10] = None;
            let pen = Pen { color: Color::Cyan, style };
            let area = Rect::new(0, 0, 10, 1);
            let mut buffer = Buffer::empty(area);
            let canvas = Canvas::default().marker(Marker::Braille);
            let canvas = canvas.x_bounds([0.0, 20.0]).y_bounds([0.0, 1.0]);
            canvas
                .paint(|context| context.draw(&Trace { pen, points: points.clone() }))
                .render(area, &mut buffer);
            buffer.content.iter().map(|cell| cell.symbol().to_owned()).collect::<String>()
        };
        let styles = [PenStyle::Solid, PenStyle::Dashed, PenStyle::Dotted].map(shown);
        assert_eq!(styles, ["⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀", "⣀⣀⡀ ⣀⣀⣀⡀ ⣀", "⡀⢀ ⡀⢀⡀⢀ ⡀⢀"]);
    }
}
