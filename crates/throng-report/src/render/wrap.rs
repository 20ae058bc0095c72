//! Prose in lines of a limited width.

/// Breaks lines that are longer than `width` at their spaces. The rest continues below the line's
/// first word, with the same indent. A word that is longer than a line, such as a path, stays
/// whole.
pub fn wrap(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        wrap_line(line.trim_end_matches('\n'), width, &mut out);
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

fn wrap_line(line: &str, width: usize, out: &mut String) {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column == 0 {
            out.push_str(indent);
            column = indent.chars().count() + length;
        } else if column + 1 + length <= width {
            out.push(' ');
            column += 1 + length;
        } else {
            out.push('\n');
            out.push_str(indent);
            column = indent.chars().count() + length;
        }
        out.push_str(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_spaces() {
        assert_eq!(wrap("one two three four", 9), "one two\nthree\nfour");
        assert_eq!(wrap("one two\nthree four five\n", 10), "one two\nthree four\nfive\n");
        assert_eq!(wrap("short", 80), "short");
    }

    #[test]
    fn what_is_broken_off_is_indented_as_its_line() {
        assert_eq!(wrap("  one two three", 9), "  one two\n  three");
    }

    #[test]
    fn a_word_longer_than_a_line_stays_whole() {
        assert_eq!(wrap("see /a/very/long/path now", 8), "see\n/a/very/long/path\nnow");
    }

    #[test]
    fn characters_are_counted_and_not_bytes() {
        assert_eq!(wrap("µµµ µµµ", 7), "µµµ µµµ");
    }

    #[test]
    fn empty_lines_stay() {
        assert_eq!(wrap("a\n\nb\n", 5), "a\n\nb\n");
    }
}
