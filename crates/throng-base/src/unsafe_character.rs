//! Characters of text from outside that no terminal and no page may get as they are.

/// Reports whether a terminal or a page would obey the character, or would not show it: control
/// characters, those that turn the direction of text, and those that no font shows (Unicode's
/// `Default_Ignorable_Code_Point`, except selectors of variants, which change a character that is
/// shown).
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}
