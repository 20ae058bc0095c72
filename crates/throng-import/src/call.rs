//! Calls of a program in a shell script, and the place of a call that is behind other commands.

use std::ops::Range;

/// Reports whether the first command of a script calls this program.
pub(crate) fn calls(source: &str, program: &str) -> bool {
    let is_command = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with('#');
    let first = source.lines().find(is_command).unwrap_or_default();
    first.split_whitespace().next().is_some_and(|word| program_of(word) == program)
}

/// Returns the place of the word that calls this program, wherever it stands in a script.
pub(crate) fn place_of_call(source: &str, program: &str) -> Option<Range<usize>> {
    let mut begin = 0;
    for line in source.split_inclusive('\n') {
        if let Some(place) =
            called(line).filter(|place| program_of(&line[place.clone()]) == program)
        {
            return Some(begin + place.start..begin + place.end);
        }
        begin += line.len();
    }
    None
}

/// Returns the place of the program that a line calls, behind assignments and runners.
fn called(line: &str) -> Option<Range<usize>> {
    let mut words = words(line);
    let mut next = words.next()?;
    loop {
        let word = &line[next.clone()];
        if is_assignment(word) {
            next = words.next()?;
        } else if let Some(runner) = RUNNERS.iter().find(|it| it.program == program_of(word)) {
            next = runner.behind(line, &mut words)?;
        } else {
            return Some(next);
        }
    }
}

/// Returns the places of the words of a line.
fn words(line: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    line.split_inclusive(char::is_whitespace).filter_map(move |part| {
        let begin = at;
        at += part.len();
        let word = part.trim_end();
        (!word.is_empty()).then(|| begin..begin + word.len())
    })
}

/// Returns the name of the program that a word calls.
fn program_of(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

/// Reports whether a word before a command gives a variable its value: `NAME=value`.
fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// A command that runs the one behind it.
struct Runner {
    program: &'static str,
    /// Its options that have their value in the next word.
    options_with_value: &'static [&'static str],
    /// How many words stand between its options and the command: `timeout 10s COMMAND`.
    operands: usize,
}

impl Runner {
    /// Returns the first word behind this runner, its options and its operands.
    fn behind(
        &self,
        line: &str,
        words: &mut impl Iterator<Item = Range<usize>>,
    ) -> Option<Range<usize>> {
        let mut next = words.next()?;
        while line[next.clone()].starts_with('-') {
            let option = &line[next];
            if self.has_value_behind(option) {
                words.next()?;
            }
            next = words.next()?;
            if option == "--" {
                break;
            }
        }
        for _ in 0..self.operands {
            next = words.next()?;
        }
        Some(next)
    }

    /// Reports whether the next word is the value of this option, or of the last of several letters
    /// behind one dash: `-nu me`. A value may also stand behind its letter: `-ume`.
    fn has_value_behind(&self, option: &str) -> bool {
        let is_with_value = |name: &str| self.options_with_value.contains(&name);
        match option.strip_prefix('-') {
            Some(letters) if !letters.starts_with('-') => {
                let with_value = letters.chars().position(|it| is_with_value(&format!("-{it}")));
                with_value.is_some_and(|at| at + 1 == letters.chars().count())
            }
            _ => is_with_value(option),
        }
    }
}

/// The commands that run the one behind them.
const RUNNERS: &[Runner] = &[
    Runner {
        program: "chrt",
        options_with_value: &[
            "-D",
            "--sched-deadline",
            "-P",
            "--sched-period",
            "-T",
            "--sched-runtime",
        ],
        operands: 1,
    },
    Runner { program: "command", options_with_value: &[], operands: 0 },
    Runner { program: "env", options_with_value: &["-u", "--unset", "-C", "--chdir"], operands: 0 },
    Runner { program: "exec", options_with_value: &["-a"], operands: 0 },
    Runner {
        program: "ionice",
        options_with_value: &["-c", "--class", "-n", "--classdata"],
        operands: 0,
    },
    Runner { program: "nice", options_with_value: &["-n", "--adjustment"], operands: 0 },
    Runner { program: "nohup", options_with_value: &[], operands: 0 },
    Runner {
        program: "numactl",
        options_with_value: &[
            "-C",
            "--physcpubind",
            "-c",
            "--cpubind",
            "-i",
            "--interleave",
            "-m",
            "--membind",
            "-N",
            "--cpunodebind",
            "-P",
            "--preferred-many",
            "-p",
            "--preferred",
            "-w",
            "--weighted-interleave",
        ],
        operands: 0,
    },
    Runner { program: "setsid", options_with_value: &[], operands: 0 },
    Runner {
        program: "stdbuf",
        options_with_value: &["-e", "--error", "-i", "--input", "-o", "--output"],
        operands: 0,
    },
    Runner {
        program: "sudo",
        options_with_value: &[
            "-C",
            "--close-from",
            "-D",
            "--chdir",
            "-g",
            "--group",
            "-h",
            "--host",
            "-p",
            "--prompt",
            "-R",
            "--chroot",
            "-r",
            "--role",
            "-T",
            "--command-timeout",
            "-t",
            "--type",
            "-U",
            "--other-user",
            "-u",
            "--user",
        ],
        operands: 0,
    },
    // The operand is the mask, or after `-c` the list of cores.
    Runner { program: "taskset", options_with_value: &[], operands: 1 },
    Runner {
        program: "time",
        options_with_value: &["-f", "--format", "-o", "--output"],
        operands: 0,
    },
    Runner {
        program: "timeout",
        options_with_value: &["-k", "--kill-after", "-s", "--signal"],
        operands: 1,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_by_its_program() {
        assert!(calls("# x\n/usr/bin/tcpkali -c 1", "tcpkali"));
        assert!(!calls("echo tcpkali", "tcpkali"));
        assert!(!calls("", "tcpkali"));
    }

    /// Checks that `^` stands below the first letter of the call.
    fn check(script: &str, mark: &str) {
        let place = place_of_call(script, "tcpkali");
        let begin = place.as_ref().map(|place| place.start);
        assert_eq!(begin, mark.find('^'), "{script}");
        if let Some(place) = place {
            assert!(script[place].ends_with("tcpkali"), "{script}");
        }
    }

    #[test]
    fn a_call_is_found_behind_assignments_and_runners() {
        check("exec /bin/tcpkali -c 1", "     ^");
        check("X=tcpkali tcpkali -c 1", "          ^");
        check("  A=1 B_2=tcpkali sudo tcpkali", "                       ^");
        check("tcpkali-4 tcpkali", "");
        check("--x=1 tcpkali", "");
        check("2x=1 tcpkali", "");
        check("echo tcpkali", "");
        check("# tcpkali", "");
        check("sudo", "");
        check("sudo -u", "");
        check("timeout tcpkali", "");
    }

    #[test]
    fn options_of_a_runner_are_not_its_command() {
        check("sudo -u me tcpkali -c 1", "           ^");
        check("sudo -u tcpkali tcpkali", "                ^");
        check("sudo -n -E --user=me -- tcpkali", "                        ^");
        check("sudo -nu me tcpkali", "            ^");
        check("sudo -nume tcpkali", "           ^");
        check("sudo -un tcpkali", "         ^");
        check("/usr/bin/sudo -g a env X=1 tcpkali", "                           ^");
        check("env -i A=1 tcpkali", "           ^");
        check("nice -n 5 nohup tcpkali", "                ^");
        check("timeout -s INT 10s tcpkali", "                   ^");
        check("sudo -u me echo tcpkali", "");
        check("sudo --chdir /tmp -U you tcpkali", "                         ^");
        check("sudo --prompt tcpkali tcpkali", "                      ^");
        check("taskset 0x3 tcpkali", "            ^");
        check("taskset -c 0-3 tcpkali", "               ^");
        check("stdbuf -oL -e 0 tcpkali", "                ^");
        check("ionice -c 2 -n7 tcpkali", "                ^");
        check("chrt --rr 10 tcpkali", "             ^");
        check("chrt -d -T 5 0 tcpkali", "               ^");
        check("setsid -w nohup tcpkali", "                ^");
        check("numactl -N 0 --membind=0 tcpkali", "                         ^");
        check("numactl -l --physcpubind 0 -- tcpkali", "                              ^");
        check("taskset -p 3 700", "");
        check("chrt -p 700", "");
    }

    #[test]
    fn every_runner_is_documented() {
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/importing/tcpkali.md");
        let document = std::fs::read_to_string(document).unwrap();
        for Runner { program, .. } in RUNNERS {
            assert!(document.contains(&format!("`{program}`")), "{program}");
        }
    }

    #[test]
    fn a_call_is_found_in_any_line() {
        let script = "a=1\nb\nexec /bin/tcpkali -c 1";
        assert_eq!(place_of_call(script, "tcpkali"), Some(11..23));
    }
}
