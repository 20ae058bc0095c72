//! Cuts areas from a terminal's area.

use ratatui::layout::Rect;

/// Takes lines from the top of an area.
pub(crate) fn top(area: &mut Rect, lines: u16) -> Rect {
    let lines = lines.min(area.height);
    let part = Rect { height: lines, ..*area };
    (area.y, area.height) = (area.y + lines, area.height - lines);
    part
}

/// Takes lines from the bottom of an area.
pub(crate) fn bottom(area: &mut Rect, lines: u16) -> Rect {
    let lines = lines.min(area.height);
    area.height -= lines;
    Rect { y: area.bottom(), height: lines, ..*area }
}
