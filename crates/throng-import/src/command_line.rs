//! The words of a shell command that stands in a file.

use std::ops::Range;

use throng_load::scenario::Diagnostic;

/// A word, without its quotes, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) span: Range<usize>,
    pub(crate) text: String,
}

/// The first command of a shell script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) words: Vec<Word>,
    /// The comments before it and in it, without the line that names the shell.
    pub(crate) comments: Vec<String>,
}

/// Returns the first command of a shell script, by the rules of POSIX shells: quotes, backslashes,
/// comments. The mistakes are what only a shell knows: variables and pipes.
pub(crate) fn first_command(source: &str) -> Result<Command, Diagnostic> {
    let mut splitter = Splitter { source, at: 0, comments: Vec::new() };
    let mut words = Vec::new();
    loop {
        splitter.skip_blanks(words.is_empty());
        match splitter.next() {
            None | Some('\n') => return Ok(Command { words, comments: splitter.comments }),
            Some(sign @ (';' | '|' | '&' | '<' | '>' | '(' | ')')) => {
                let span = splitter.at..splitter.at + 1;
                let label = "expected one command; a shell does the rest around it";
                return Err(Diagnostic::new(span, format!("`{sign}` is for a shell"), label));
            }
            Some(_) => words.push(splitter.word()?),
        }
    }
}

struct Splitter<'a> {
    source: &'a str,
    at: usize,
    comments: Vec<String>,
}

impl Splitter<'_> {
    fn next(&self) -> Option<char> {
        self.source[self.at..].chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Skips blanks, continued lines and comments; also ends of lines if no word has come yet.
    fn skip_blanks(&mut self, is_before_command: bool) {
        loop {
            let rest = &self.source[self.at..];
            match rest.chars().next() {
                Some(' ' | '\t' | '\r') => self.at += 1,
                Some('\n') if is_before_command => self.at += 1,
                Some('\\') if rest.starts_with("\\\n") => self.at += 2,
                Some('#') => self.skip_comment(),
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        let line = self.source[self.at..].lines().next().unwrap_or_default();
        if !line.starts_with("#!") {
            self.comments.push(line.trim_start_matches('#').trim().to_owned());
        }
        self.at += line.len();
    }

    fn word(&mut self) -> Result<Word, Diagnostic> {
        let start = self.at;
        let mut text = String::new();
        while let Some(next) = self.next() {
            match next {
                ' ' | '\t' | '\r' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')' => break,
                '\'' => text.push_str(&self.single_quoted()?),
                '"' => self.double_quoted(&mut text)?,
                '$' | '`' => return Err(self.substitution()),
                '\\' => {
                    self.at += 1;
                    match self.take() {
                        Some('\n') | None => {}
                        Some(other) => text.push(other),
                    }
                }
                other => {
                    self.at += other.len_utf8();
                    text.push(other);
                }
            }
        }
        Ok(Word { span: start..self.at, text })
    }

    fn single_quoted(&mut self) -> Result<String, Diagnostic> {
        let start = self.at;
        let rest = &self.source[start + 1..];
        let end = rest.find('\'').ok_or_else(|| unended(start..self.source.len(), '\''))?;
        self.at = start + 1 + end + 1;
        Ok(rest[..end].to_owned())
    }

    fn double_quoted(&mut self, text: &mut String) -> Result<(), Diagnostic> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.next() {
                None => return Err(unended(start..self.source.len(), '"')),
                Some('$' | '`') => return Err(self.substitution()),
                Some('"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some('\\') => {
                    self.at += 1;
                    match self.take() {
                        Some('\n') | None => {}
                        Some(escaped @ ('"' | '\\' | '$' | '`')) => text.push(escaped),
                        Some(other) => text.extend(['\\', other]),
                    }
                }
                Some(other) => {
                    self.at += other.len_utf8();
                    text.push(other);
                }
            }
        }
    }

    fn substitution(&self) -> Diagnostic {
        let label = "expected its value: only a shell knows it";
        Diagnostic::new(self.at..self.at + 1, "this is a shell's variable or command", label)
    }
}

fn unended(span: Range<usize>, quote: char) -> Diagnostic {
    Diagnostic::new(span, "the quoted text has no end", format!("expected `{quote}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &[&str]) {
        let command = first_command(source).unwrap_or_else(|mistake| panic!("{mistake:?}"));
        let texts: Vec<_> = command.words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, expected, "{source}");
    }

    #[test]
    fn quotes_and_backslashes_are_those_of_a_shell() {
        check("a b  c", &["a", "b", "c"]);
        check(r#"a 'b "c' "d 'e" f\ g"#, &["a", "b \"c", "d 'e", "f g"]);
        check(r#"-m "\n\"\\" -x'y'"z""#, &["-m", "\\n\"\\", "-xyz"]);
        check("#!/bin/sh\n\n# load\na \\\n  b # end\nc", &["a", "b"]);
        check("a ''", &["a", ""]);
        check("", &[]);
    }

    #[test]
    fn what_only_a_shell_knows_is_a_mistake() {
        for (source, at) in [
            ("a $HOST", 2),
            ("a \"$HOST\"", 3),
            ("a | b", 2),
            ("a > b", 2),
            ("a 'b", 2),
            ("a;b", 1),
        ] {
            let mistake = first_command(source).unwrap_err();
            assert_eq!(mistake.span.start, at, "{source}");
        }
    }
}
