//! The look of a terminal: what it can show, and what its user wants to see.

use std::env;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Style};
use throng_report::render::is_unsafe;

/// The style of what is there to be looked up, and not to be seen first.
pub const FAINT: Style = Style::new().fg(Color::DarkGray);

/// The look of a terminal. Views draw with colours and in Unicode, and [`TerminalStyle::apply`]
/// takes away what the terminal lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalStyle {
    /// Whether to use colours: there is no `NO_COLOR` (<https://no-color.org>).
    pub colors: bool,
    /// Whether the terminal shows Unicode.
    pub unicode: bool,
}

impl TerminalStyle {
    /// The look of most terminals.
    pub const FULL: Self = Self { colors: true, unicode: true };

    /// Returns the look that the environment asks for.
    pub fn of_environment() -> Self {
        Self::of(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(&variable);
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        let is_utf8 = locale.contains("utf-8") || locale.contains("utf8");
        // The font of Linux's own console has no braille.
        let has_glyphs = variable("TERM").is_none_or(|term| term != "linux");
        Self { colors: variable("NO_COLOR").is_none(), unicode: is_utf8 && has_glyphs }
    }

    /// Takes from `buffer` what the terminal cannot show, and what it would obey: a view has names
    /// from elsewhere.
    pub fn apply(self, buffer: &mut Buffer) {
        for cell in &mut buffer.content {
            if cell.symbol().contains(is_unsafe) {
                cell.set_char(char::REPLACEMENT_CHARACTER);
            }
        }
        if self == Self::FULL {
            return;
        }
        for cell in &mut buffer.content {
            if !self.unicode {
                to_ascii(cell);
            }
            if !self.colors {
                (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
            }
        }
    }
}

fn to_ascii(cell: &mut Cell) {
    let Some(symbol) = cell.symbol().chars().next().filter(|symbol| !symbol.is_ascii()) else {
        return;
    };
    cell.set_char(match symbol {
        BRAILLE_FIRST..=BRAILLE_LAST => dots(symbol),
        '─' => '-',
        '╌' => '~',
        '┈' => ':',
        '━' | '╸' => '=',
        '│' | '┤' | '├' => '|',
        '└' | '┌' | '┐' | '┘' | '╭' | '╮' | '╰' | '╯' => '+',
        'µ' => 'u',
        '→' | '▸' => '>',
        '…' => '.',
        '·' | '•' => '.',
        '✓' => '+',
        '✗' | '×' => 'x',
        '±' => '~',
        '‖' => '=',
        '●' => '*',
        _ => '?',
    });
}

/// Returns the ASCII character that resembles the braille dots of a cell.
fn dots(symbol: char) -> char {
    let bits = u32::from(symbol) - u32::from(BRAILLE_FIRST);
    // The rows of a cell from the top, as the bits of their two dots.
    let rows = [0b0000_1001, 0b0001_0010, 0b0010_0100, 0b1100_0000].map(|row| bits & row != 0);
    match rows {
        [false, false, false, false] => ' ',
        [true, false, false, false] => '\'',
        [false, false, false, true] => '.',
        [_, _, false, false] | [false, true, true, false] | [false, false, true, false] => '-',
        [false, false, true, true] => '_',
        [false, true, _, true] | [true, false, _, _] => ':',
        [true, true, true, _] | [true, true, false, true] => '|',
    }
}

const BRAILLE_FIRST: char = '\u{2800}';
const BRAILLE_LAST: char = '\u{28ff}';

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> TerminalStyle {
        TerminalStyle::of(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_first_of_the_locales_variables_decides() {
        assert_eq!(of(&[("LANG", "en_US.UTF-8")]), TerminalStyle::FULL);
        assert_eq!(of(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]), TerminalStyle::FULL);
        assert!(!of(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]).unicode);
        assert!(!of(&[]).unicode);
        assert!(!of(&[("LANG", "C.UTF-8"), ("TERM", "linux")]).unicode);
        assert!(!of(&[("LANG", "C.UTF-8"), ("NO_COLOR", "1")]).colors);
    }

    #[test]
    fn every_character_becomes_ascii() {
        let plain = TerminalStyle { colors: false, unicode: false };
        let braille: String = (0x2800..=0x28ff).filter_map(char::from_u32).collect();
        let mut buffer = Buffer::with_lines([format!("12 µs → ━╸ │ ä {braille}")]);
        buffer.content.iter_mut().for_each(|cell| cell.fg = Color::Cyan);
        plain.apply(&mut buffer);
        assert!(buffer.content.iter().all(|cell| cell.symbol().is_ascii()));
        assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset));
        let text: String = buffer.content.iter().map(Cell::symbol).collect();
        assert!(text.starts_with("12 us > == | ? "), "{text}");
    }
}
