//! Calls of a program in a shell script, and the place of a call that is behind other commands.

use std::ops::Range;

/// Reports whether the first command of a script calls this program.
pub(crate) fn calls(source: &str, program: &str) -> bool {
    let is_command = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with('#');
    let first = source.lines().find(is_command).unwrap_or_default();
    first.split_whitespace().next().is_some_and(|word| program_of(word) == program)
}

/// Returns the place of the first word that names this program in a line that is no comment.
pub(crate) fn place_of_call(source: &str, program: &str) -> Option<Range<usize>> {
    let mut begin = 0;
    for line in source.split_inclusive('\n') {
        let mut at = begin;
        begin += line.len();
        if line.trim_start().starts_with('#') {
            continue;
        }
        for part in line.split_inclusive(char::is_whitespace) {
            let word = part.trim_end();
            if program_of(word) == program {
                return Some(at..at + word.len());
            }
            at += part.len();
        }
    }
    None
}

/// Returns the name of the program that a word calls.
fn program_of(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_by_its_program() {
        assert!(calls("# x\n/usr/bin/tcpkali -c 1", "tcpkali"));
        assert!(!calls("echo tcpkali", "tcpkali"));
        assert!(!calls("", "tcpkali"));
    }

    #[test]
    fn a_call_is_found_in_any_line_behind_any_command() {
        for (script, begin) in [
            ("exec /bin/tcpkali -c 1", Some(5)),
            ("X=tcpkali tcpkali -c 1", Some(10)),
            ("sudo -nu me taskset 0x3 tcpkali", Some(24)),
            ("a=1\nb\nexec tcpkali -c 1", Some(11)),
            ("tcpkali-4", None),
            ("# tcpkali", None),
            ("", None),
        ] {
            let place = place_of_call(script, "tcpkali");
            assert_eq!(place.as_ref().map(|place| place.start), begin, "{script}");
            assert!(place.is_none_or(|place| script[place].ends_with("tcpkali")), "{script}");
        }
    }
}
