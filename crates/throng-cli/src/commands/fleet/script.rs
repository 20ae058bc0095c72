//! The shell scripts that start an agent on another machine, and what they answer.
//!
//! A script comes over standard input of `sh -s`, so that no list of processes shows its secrets.
//! Its answers have a mark, because the files of a login shell may print something, too.

use std::fmt::Write;

/// What a machine is, as the first script finds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HostFacts {
    /// The system, as `uname -s` names it.
    pub(super) system: String,
    /// The processor, as `uname -m` names it.
    pub(super) machine: String,
    /// What the installed `throng --version` prints, if there is one.
    pub(super) installed: Option<String>,
    /// The programs that were copied there before.
    pub(super) copies: Vec<String>,
}

/// A file that an agent needs: the flag that names it, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentFile {
    pub(super) flag: &'static str,
    pub(super) text: String,
}

/// An agent to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentStart<'a> {
    /// The program: a word of shell.
    pub(super) program: String,
    /// The agent's name.
    pub(super) name: &'a str,
    /// The environment's variables.
    pub(super) variables: &'a [(&'a str, &'a str)],
    /// Further flags.
    pub(super) flags: &'a [String],
    pub(super) files: &'a [AgentFile],
    /// A word that stands in no file.
    pub(super) end_mark: &'a str,
}

/// What became of an agent that was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AgentLook {
    pub(super) is_alive: bool,
    /// The last lines of its log file.
    pub(super) log: Vec<String>,
}

/// Returns the script that finds out what a machine is.
pub(super) fn find() -> String {
    format!(
        "cd || exit
echo '{MARK}system' \"$(uname -s)\"
echo '{MARK}machine' \"$(uname -m)\"
if installed=$(throng --version 2>/dev/null); then echo '{MARK}installed' \"$installed\"; fi
for copy in {FOLDER}/bin/throng-*; do
  if [ -x \"$copy\" ]; then echo '{MARK}copy' \"${{copy##*/}}\"; fi
done
"
    )
}

impl HostFacts {
    /// Reads what [`find`] prints; `None` if something is missing.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut found = Self::default();
        for (word, rest) in answers(text) {
            match word {
                "system" => found.system = rest.to_owned(),
                "machine" => found.machine = rest.to_owned(),
                "installed" => found.installed = Some(rest.to_owned()),
                "copy" => found.copies.push(rest.to_owned()),
                _ => {}
            }
        }
        (!found.system.is_empty() && !found.machine.is_empty()).then_some(found)
    }
}

/// Returns the command that takes a program of so many bytes from its standard input, and prints
/// its version. A copy that is cut off or does not run is left out.
pub(super) fn copy(name: &str, bytes: u64) -> String {
    let script = format!(
        "cd && umask 077 && mkdir -p {FOLDER}/bin && cd {FOLDER}/bin && part={name}.$$ &&
cat >$part &&
{{ [ $(wc -c <$part) = {bytes} ] || {{ echo the copy is not whole >&2; false; }}; }} &&
chmod 700 $part && version=$(./$part --version) && mv $part {name} &&
echo \"{MARK}version $version\" || {{ rm -f \"$part\"; exit 1; }}"
    );
    // The login shell may be another than sh.
    format!("sh -c {}", quoted(&script))
}

/// Reads what [`copy`] prints.
pub(super) fn copied_version(text: &str) -> Option<&str> {
    answers(text).find(|(word, _)| *word == "version").map(|(_, version)| version)
}

/// Returns the word of shell that names a copy.
pub(super) fn copied_program(name: &str) -> String {
    format!("\"$HOME\"/{FOLDER}/bin/{name}")
}

impl AgentStart<'_> {
    /// Returns the script that starts the agent, apart from the session of ssh, and prints its
    /// process id.
    pub(super) fn script(&self) -> String {
        let Self { program, name, variables, flags, files, end_mark } = self;
        let mut script = format!("cd && umask 077 && mkdir -p {FOLDER} || exit\n");
        let mut write = |line: String| writeln!(script, "{line}").expect("memory");
        let mut command = format!("{program} agent --name {name}");
        for AgentFile { flag, text } in *files {
            let path = format!("{FOLDER}/{name}.{flag}");
            let text = text.trim_end_matches('\n');
            write(format!("cat >{path} <<'{end_mark}' || exit\n{text}\n{end_mark}"));
            command += &format!(" --{flag} \"$HOME\"/{path}");
        }
        for flag in *flags {
            command += &format!(" {}", quoted(flag));
        }
        for (variable, value) in *variables {
            write(format!("{variable}={}; export {variable}", quoted(value)));
        }
        let log = format!("{FOLDER}/{name}.log");
        write(format!("if [ -e {log} ]; then mv {log} {log}.1; fi"));
        write("if command -v setsid >/dev/null; then apart=setsid; else apart=; fi".to_owned());
        write(format!("$apart nohup {command} </dev/null >{log} 2>&1 &"));
        write(format!("echo '{MARK}pid' $!"));
        script
    }
}

/// Reads what [`AgentStart::script`] prints.
pub(super) fn pid(text: &str) -> Option<u32> {
    answers(text).find(|(word, _)| *word == "pid")?.1.parse().ok()
}

/// Returns the script that looks after an agent, and ends it if `and_end`.
pub(super) fn look(name: &str, pid: u32, and_end: bool) -> String {
    let end = if and_end { format!("kill {pid}; ") } else { String::new() };
    format!(
        "cd || exit
if kill -0 {pid} 2>/dev/null; then {end}echo '{MARK}alive'; fi
tail -n 4 {FOLDER}/{name}.log | sed 's/^/{MARK}log /'
"
    )
}

impl AgentLook {
    /// Reads what [`look`] prints.
    pub(super) fn parse(text: &str) -> Self {
        let mut look = Self::default();
        for (word, rest) in answers(text) {
            match word {
                "alive" => look.is_alive = true,
                "log" => look.log.push(rest.to_owned()),
                _ => {}
            }
        }
        look
    }
}

/// Returns the lines with the mark, each as its first word and the rest.
fn answers(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let marked = text.lines().filter_map(|line| line.strip_prefix(MARK));
    marked.map(|line| line.split_once(' ').unwrap_or((line, "")))
}

/// Returns the text as one word of shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The folder for programs, files and logs, in the home directory.
pub(super) const FOLDER: &str = ".throng";
const MARK: &str = "throng: ";

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Runs a script in a home of its own.
    fn sh(home: &std::path::Path, script: &str) -> String {
        let output = Command::new("sh").args(["-c", script]).env("HOME", home).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_word_of_shell_is_what_it_was() {
        let home = tempfile::tempdir().unwrap();
        for text in ["plain", "nats://a:b'c\"$d`@h", "two\nlines", "", "\\"] {
            assert_eq!(sh(home.path(), &format!("printf %s {}", quoted(text))), text);
        }
    }

    #[test]
    fn a_machine_says_what_it_is() {
        let home = tempfile::tempdir().unwrap();
        let found = HostFacts::parse(&sh(home.path(), &find())).unwrap();
        assert_eq!(
            (found.system.as_str(), found.machine.as_str()),
            ("Linux", std::env::consts::ARCH)
        );
        assert!(found.copies.is_empty());
        let answer = "Welcome!\nthrong: system Linux\nthrong: machine x\nthrong: copy throng-1-a\n\
                      throng: installed throng 0.1.0\n";
        let found = HostFacts::parse(answer).unwrap();
        assert_eq!(found.copies, ["throng-1-a"]);
        assert_eq!(found.installed.as_deref(), Some("throng 0.1.0"));
        assert_eq!(HostFacts::parse("Permission denied\n"), None);
    }

    #[test]
    fn a_copy_is_whole_and_runs_or_is_left_out() {
        let home = tempfile::tempdir().unwrap();
        let program = "#!/bin/sh\necho throng 7.7.7\n";
        let copy = |bytes: u64| {
            let line = format!("printf %s {} | {}", quoted(program), copy("throng-7", bytes));
            Command::new("sh").args(["-c", &line]).env("HOME", home.path()).output().unwrap()
        };
        let cut_off = copy(program.len() as u64 + 1);
        assert!(!cut_off.status.success());
        assert_eq!(String::from_utf8_lossy(&cut_off.stderr), "the copy is not whole\n");
        let bin = home.path().join(FOLDER).join("bin");
        assert_eq!(std::fs::read_dir(&bin).unwrap().count(), 0);
        let whole = copy(program.len() as u64);
        let answer = String::from_utf8_lossy(&whole.stdout);
        assert_eq!(copied_version(&answer), Some("throng 7.7.7"), "{whole:?}");
        assert_eq!(std::fs::read_dir(&bin).unwrap().count(), 1);
    }

    #[test]
    fn an_agent_gets_its_files_flags_and_variables_and_has_a_log() {
        let home = tempfile::tempdir().unwrap();
        let program = "#!/bin/sh\necho \"$THRONG_BUS\" \"$@\"\ncat \"$5\"\n";
        std::fs::write(home.path().join("program"), program).unwrap();
        let files = [AgentFile { flag: "bus-ca", text: "one\n$two `three`\n".into() }];
        let start = AgentStart {
            program: "sh \"$HOME\"/program".to_owned(),
            name: "web1",
            variables: &[(crate::bus::BUS_VARIABLE, "nats://a:it's@h")],
            flags: &["--label".to_owned(), "e u".to_owned()],
            files: &files,
            end_mark: "END",
        };
        let script = start.script() + "wait\n";
        let pid = pid(&sh(home.path(), &script)).unwrap();
        sh(home.path(), &script);
        let seen = AgentLook::parse(&sh(home.path(), &look("web1", pid, false)));
        let home = home.path().display();
        let first = format!(
            "nats://a:it's@h agent --name web1 --bus-ca {home}/.throng/web1.bus-ca --label e u"
        );
        assert_eq!(seen.log, [first.as_str(), "one", "$two `three`"]);
        assert!(!seen.is_alive);
        assert!(std::path::Path::new(&format!("{home}/.throng/web1.log.1")).exists());
    }
}
