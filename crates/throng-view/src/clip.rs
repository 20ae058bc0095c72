//! Text in the columns of a terminal.

use ratatui::text::Span;

/// Returns how many columns of a terminal `text` takes.
pub(crate) fn width_of(text: &str) -> usize {
    Span::raw(text).width()
}

/// Cuts `text` to `width` columns.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += width_of(c.encode_utf8(&mut [0; 4]));
        if used > width {
            break;
        }
        short.push(c);
    }
    if width > 0 {
        short.push('…');
    }
    short
}
