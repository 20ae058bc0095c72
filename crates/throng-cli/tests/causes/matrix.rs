//! The results of all causes of a kind, and the part of the document that keeps them.

use std::fmt;
use std::path::PathBuf;
use std::thread;

use libtest_mimic::{Completion, Failed};

use super::machine::{self, Others};
use super::{Cause, Kind, Provoked};

/// The rows of all causes of a kind.
pub(crate) struct Matrix {
    kind: &'static Kind,
    rows: Vec<Row>,
}

/// One cause, and its diagnosis.
pub(crate) struct Row {
    cause: &'static Cause,
    found: Result<Found, Unprovoked>,
}

/// The diagnosis of a cause.
#[derive(Debug)]
struct Found {
    ids: Vec<String>,
    /// The verdict and the first finding.
    text: String,
    verdict: String,
}

/// The reason why there is no result.
#[derive(Debug)]
enum Unprovoked {
    /// This machine lacks something for the cause.
    Skipped(String),
    /// The cause was missed while the machine was busy with other things.
    NotJudged(String),
    /// The cause failed unexpectedly.
    Broken,
}

impl Row {
    /// Provokes the cause. If the doctor missed it while the machine was busy with other things,
    /// provokes it once more: that tells a passing disturbance from a machine that cannot judge.
    pub(crate) fn of(cause: &'static Cause) -> Self {
        let (row, busy) = Self::once(cause);
        let Some(reason) = busy.filter(|_| row.is_missed()) else { return row };
        println!("{row}\n  once more: {reason}");
        match Self::once(cause) {
            (row, Some(reason)) if row.is_missed() => {
                Self { found: Err(Unprovoked::NotJudged(reason)), ..row }
            }
            (row, _) => row,
        }
    }

    /// Provokes the cause once. Returns what else kept the machine busy meanwhile, too.
    fn once(cause: &'static Cause) -> (Self, Option<String>) {
        let others = Others::watch();
        let row = Self { cause, found: diagnosed(cause) };
        let busy = machine::quota_disturbs().or_else(|| others.disturb());
        let starved = || row.starved().map(|id| format!("the doctor found {id} first"));
        let busy = busy.or_else(starved);
        (row, busy)
    }

    /// Returns the result of the test.
    pub(crate) fn result(&self) -> Result<Completion, Failed> {
        match &self.found {
            Err(Unprovoked::Skipped(reason)) => Ok(Completion::ignored_with(reason)),
            Err(Unprovoked::NotJudged(reason)) => {
                Ok(Completion::ignored_with(format!("not judged: {reason}")))
            }
            _ if self.is_met() => Ok(Completion::Completed),
            _ => Err(self.to_string().into()),
        }
    }

    /// Reports whether there is a diagnosis, and it is not the expected one.
    fn is_missed(&self) -> bool {
        self.found.is_ok() && !self.is_met()
    }

    fn is_met(&self) -> bool {
        self.found.as_ref().is_ok_and(|found| {
            found.ids.first().map(String::as_str) == self.cause.expected
                && self.cause.says.iter().all(|words| found.text.contains(words))
        })
    }

    /// Returns the first finding if it says that the machine had no CPU time for the run, or that
    /// the generator itself was late.
    fn starved(&self) -> Option<&str> {
        let found = self.found.as_ref().ok()?;
        let first = found.ids.first().map(String::as_str);
        if let Some(id) = first.filter(|id| OF_CPUS.contains(id)) {
            return Some(id);
        }
        let is_late = found.text.contains("are the generator's own: it was late");
        is_late.then_some("the generator's own lateness")
    }

    fn is_skipped(&self) -> bool {
        matches!(self.found, Err(Unprovoked::Skipped(_)))
    }

    /// Returns the reason why the cause was not judged.
    fn not_judged(&self) -> Option<&str> {
        match &self.found {
            Err(Unprovoked::NotJudged(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Returns the row of the document.
    fn markdown(&self) -> String {
        let expected = self.cause.expected.map_or_else(|| "none".to_owned(), code);
        let (first, also) = match &self.found {
            Ok(found) => {
                let mut ids = found.ids.iter().map(|id| code(id));
                let first = ids.next().unwrap_or_else(|| "none".to_owned());
                (first, ids.collect::<Vec<_>>().join(", "))
            }
            Err(_) => ("not provoked".to_owned(), String::new()),
        };
        let mark = if self.is_missed() { " **(missed)**" } else { "" };
        format!(
            "| {} | {} | {expected} | {first}{mark} | {also} |",
            self.cause.name, self.cause.what
        )
    }
}

impl Matrix {
    pub(crate) fn new(kind: &'static Kind) -> Self {
        Self { kind, rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Sorts the rows in the order of the causes.
    pub(crate) fn sort(&mut self) {
        let names: Vec<_> = self.kind.causes().map(|cause| cause.name).collect();
        self.rows.sort_by_key(|row| names.iter().position(|name| *name == row.cause.name));
    }

    /// Checks that most causes were judged, as far as other programs left the CPUs alone.
    pub(crate) fn check(&self, quiet_share: f64) -> Result<(), String> {
        let not_judged = self.rows.iter().filter(|row| row.not_judged().is_some()).count();
        let share_max = NOT_JUDGED_SHARE_MAX + 1.0 - quiet_share;
        if not_judged as f64 > self.rows.len() as f64 * share_max {
            return Err(format!(
                "{not_judged} of {} causes were not judged, although other programs left the CPUs \
                 alone for {:.0} % of the time",
                self.rows.len(),
                quiet_share * 100.0
            ));
        }
        Ok(())
    }

    /// Writes the matrix into its document.
    pub(crate) fn write(&self) {
        let text = std::fs::read_to_string(document()).unwrap();
        let [begin, end] = self.kind.marks();
        let (before, rest) =
            text.split_once(&begin).expect("the document contains the start mark of the matrix");
        let (_, after) =
            rest.split_once(&end).expect("the document contains the end mark of the matrix");
        let rows: Vec<_> = self.rows.iter().map(Row::markdown).collect();
        let verdicts = self.rows.iter().filter_map(|row| {
            let found = row.found.as_ref().ok()?;
            Some(format!("- *{}*: {}", row.cause.name, without_paths(&found.verdict)))
        });
        let verdicts: Vec<_> = verdicts.collect();
        let made = format!(
            "{before}{begin}\n| {} | what is done | must come first | came first | also |\n\
             |---|---|---|---|---|\n{}\n\n\
             What the first line of each report said:\n\n{}\n{end}{after}",
            self.kind.singular,
            rows.join("\n"),
            verdicts.join("\n"),
        );
        std::fs::write(document(), made).unwrap();
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.cause.name;
        match &self.found {
            Err(Unprovoked::Skipped(reason)) => write!(f, "skipped: {name}: {reason}"),
            Err(Unprovoked::NotJudged(reason)) => write!(f, "not judged: {name}: {reason}"),
            Err(Unprovoked::Broken) => write!(f, "BROKEN {name}: see above"),
            Ok(found) => {
                let mark = if self.is_met() { "ok    " } else { "MISSED" };
                let expected = self.cause.expected.unwrap_or("nothing");
                write!(f, "{mark} {name}: expected {expected}, found [{}]", found.ids.join(", "))?;
                if self.is_met() {
                    write!(f, "\n         {}", found.verdict)
                } else {
                    let says = self.cause.says;
                    write!(f, "\n         wanted words: {says:?}\n         {}", found.text)
                }
            }
        }
    }
}

/// Prints the causes with their first findings, then the number of found causes.
impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<28} {:<26} {:<26} also",
            self.kind.singular, "must come first", "came first"
        )?;
        for row in &self.rows {
            let expected = row.cause.expected.unwrap_or("-");
            let (first, also) = match &row.found {
                Ok(found) => {
                    let first = found.ids.first().map_or("-", String::as_str);
                    (first, found.ids.get(1..).unwrap_or_default().join(", "))
                }
                Err(Unprovoked::Skipped(reason)) => ("(skipped)", reason.clone()),
                Err(Unprovoked::NotJudged(reason)) => ("(not judged)", reason.clone()),
                Err(Unprovoked::Broken) => ("(broken)", String::new()),
            };
            let mark = if row.is_missed() { " <- missed" } else { "" };
            writeln!(f, "{:<28} {expected:<26} {first:<26} {also}{mark}", row.cause.name)?;
        }
        let ran = self.rows.iter().filter(|row| !row.is_skipped()).count();
        let met = self.rows.iter().filter(|row| row.is_met()).count();
        // `xtask test` shows this line.
        write!(f, "judged: {met} of {ran} {} named", self.kind.plural)?;
        let not_judged = self.rows.iter().filter_map(|row| Some((row, row.not_judged()?)));
        let not_judged: Vec<_> =
            not_judged.map(|(row, reason)| format!("{} ({reason})", row.cause.name)).collect();
        if !not_judged.is_empty() {
            write!(f, "; {} not judged: {}", not_judged.len(), not_judged.join(", "))?;
        }
        Ok(())
    }
}

/// Checks that the document has a row for each cause, with its expected finding, and no other row.
pub(crate) fn check_document(kind: &Kind) {
    let text = std::fs::read_to_string(document()).unwrap();
    let [begin, end] = kind.marks();
    let matrix =
        text.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end)).expect("a matrix").0;
    let cells =
        |row: &str| row.split(" | ").map(|cell| cell.trim_matches(['|', ' ']).to_owned()).collect();
    let rows: Vec<Vec<String>> =
        matrix.lines().filter(|line| line.starts_with('|')).skip(2).map(cells).collect();
    let documented: Vec<_> = rows.iter().map(|row| (row[0].clone(), row[2].clone())).collect();
    let there: Vec<_> = kind
        .causes()
        .map(|cause| {
            (cause.name.to_owned(), cause.expected.map_or_else(|| "none".to_owned(), code))
        })
        .collect();
    assert_eq!(
        documented, there,
        "write it anew: THRONG_WRITE_MATRIX=1 make test ONLY={}",
        kind.plural
    );
}

/// Runs a cause on its own thread, which enters the namespaces that the cause needs.
fn diagnosed(cause: &'static Cause) -> Result<Found, Unprovoked> {
    let provoke = || -> Provoked {
        let mut stage = (cause.stage)()?;
        stage.is_of(cause.name);
        (cause.provoke)(&mut stage)
    };
    let summary = thread::scope(|scope| scope.spawn(provoke).join());
    let summary = summary.map_err(|_| Unprovoked::Broken)?.map_err(Unprovoked::Skipped)?;
    let diagnosis = &summary["diagnosis"];
    let findings = diagnosis["findings"].as_array().expect("a diagnosis has findings");
    let ids = findings.iter().map(|finding| finding["id"].as_str().expect("an id").to_owned());
    let verdict = diagnosis["verdict"].as_str().expect("a verdict").to_owned();
    let first = findings.first().and_then(|finding| finding["text"].as_str()).unwrap_or_default();
    Ok(Found { ids: ids.collect(), text: format!("{verdict} {first}"), verdict })
}

/// Removes the parts in brackets that name files of the test, which no longer exist.
fn without_paths(verdict: &str) -> String {
    let folder = std::env::temp_dir().display().to_string();
    let keep = |part: &&str| !part.contains(&folder);
    let (first, rest) = verdict.split_once(" (").unwrap_or((verdict, ""));
    let parts = rest.split(" (").filter(|part| !part.is_empty());
    let parts = parts.map(|part| {
        if keep(&part) {
            format!(" ({part}")
        } else {
            part.split_once(')').map_or_else(String::new, |(_, after)| after.to_owned())
        }
    });
    first.to_owned() + &parts.collect::<String>()
}

fn code(id: &str) -> String {
    format!("`{id}`")
}

fn document() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/confusion-matrix.md"))
}

/// The findings that say that the machine had no CPU time for the run.
const OF_CPUS: [&str; 5] =
    ["cgroup_throttled", "cpu_contended", "cpu_stolen", "generator_saturated", "machine_slow"];

/// The share of the causes that need not be judged on a machine that is quiet all the time. On a
/// busy one, the share of the time in which it is busy is added.
const NOT_JUDGED_SHARE_MAX: f64 = 0.1;
