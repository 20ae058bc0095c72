//! The keys of a terminal.

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalKey {
    /// A character.
    Char(char),
    /// The key Enter.
    Enter,
    /// The key Escape.
    Escape,
    /// The key Tab.
    Tab,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// A letter with the control key: `Control('c')`.
    Control(char),
}

/// Returns the keys in what a terminal sent. Sequences of other keys are left out.
pub(crate) fn keys(bytes: &[u8]) -> Vec<TerminalKey> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        let (key, after) = match first {
            ESCAPE => sequence(after),
            b'\r' | b'\n' => (Some(TerminalKey::Enter), after),
            b'\t' => (Some(TerminalKey::Tab), after),
            1..=26 => (Some(TerminalKey::Control(char::from(first + b'a' - 1))), after),
            0..32 | 127 => (None, after),
            _ => character(rest),
        };
        keys.extend(key);
        rest = after;
    }
    keys
}

/// Returns the key of a sequence after its escape character, and the bytes after it.
fn sequence(bytes: &[u8]) -> (Option<TerminalKey>, &[u8]) {
    let Some((b'[' | b'O', after)) = bytes.split_first() else {
        return (Some(TerminalKey::Escape), bytes);
    };
    let Some(end) = after.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return (None, &[]);
    };
    let key = match after[end] {
        b'A' => Some(TerminalKey::Up),
        b'B' => Some(TerminalKey::Down),
        b'C' => Some(TerminalKey::Right),
        b'D' => Some(TerminalKey::Left),
        _ => None,
    };
    (key, &after[end + 1..])
}

/// Returns the first character of `bytes`, and the bytes after it.
fn character(bytes: &[u8]) -> (Option<TerminalKey>, &[u8]) {
    let length = match bytes[0] {
        0..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
        _ => 1,
    };
    let (first, after) = bytes.split_at(length.min(bytes.len()));
    let text = std::str::from_utf8(first).unwrap_or_default();
    (text.chars().next().map(TerminalKey::Char), after)
}

const ESCAPE: u8 = 0x1b;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn letters_arrows_and_control_keys_are_read() {
        let read = keys(b"p+\x1b[A\x1bOB\x1b[1;5C\x1b[3~\x03\x1a\r\t\x7f\xc3\xa4");
        let expected = [
            TerminalKey::Char('p'),
            TerminalKey::Char('+'),
            TerminalKey::Up,
            TerminalKey::Down,
            TerminalKey::Right,
            TerminalKey::Control('c'),
            TerminalKey::Control('z'),
            TerminalKey::Enter,
            TerminalKey::Tab,
            TerminalKey::Char('ä'),
        ];
        assert_eq!(read, expected);
        assert_eq!(keys(b"\x1b"), [TerminalKey::Escape]);
        assert_eq!(keys(b"\x1b["), [], "half a sequence");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = keys(&bytes);
        }
    }
}
