//! The results of all walls, and the document that keeps them.

use std::fmt;
use std::path::PathBuf;
use std::thread;

use super::machine::Others;
use super::{Provoked, Wall};

/// The rows of all walls.
#[derive(Default)]
pub(crate) struct Matrix {
    rows: Vec<Row>,
}

/// One wall, and its diagnosis.
pub(crate) struct Row {
    wall: &'static Wall,
    found: Result<Found, Unprovoked>,
}

/// The diagnosis of a wall.
#[derive(Debug)]
struct Found {
    ids: Vec<String>,
    verdict: String,
}

/// The reason why there is no diagnosis.
#[derive(Debug)]
enum Unprovoked {
    /// This machine lacks something for the wall.
    Skipped(String),
    /// The wall failed unexpectedly.
    Broken,
}

impl Row {
    /// Provokes the wall. If the doctor missed it while other programs used much of the CPUs,
    /// provokes it once more, because the result then includes the other programs. A wall of the
    /// CPUs is skipped, with a message, if they use the CPUs again. A wall that is missed on a
    /// quiet machine counts as missed.
    pub(crate) fn of(wall: &'static Wall) -> Self {
        let (row, share) = Self::once(wall);
        if row.is_met() || row.is_skipped() || share <= OTHERS_DISTURB {
            return row;
        }
        let had = |share: f64| format!("other programs used {:.0} % of the CPUs", share * 100.0);
        println!("{row}\n  once more: {}", had(share));
        let (row, share) = Self::once(wall);
        if row.is_met() || !wall.is_of_cpus || share <= OTHERS_DISTURB {
            row
        } else {
            Self { found: Err(Unprovoked::Skipped(had(share))), ..row }
        }
    }

    /// Provokes the wall once. Returns the share of the CPUs that other programs used meanwhile,
    /// too.
    fn once(wall: &'static Wall) -> (Self, f64) {
        let others = Others::watch();
        let row = Self { wall, found: diagnosed(wall) };
        (row, others.share())
    }

    fn is_met(&self) -> bool {
        self.found
            .as_ref()
            .is_ok_and(|found| found.ids.first().map(String::as_str) == self.wall.expected)
    }

    fn is_skipped(&self) -> bool {
        matches!(self.found, Err(Unprovoked::Skipped(_)))
    }

    /// Returns the row of the document.
    fn markdown(&self) -> String {
        let expected = self.wall.expected.map_or_else(|| "none".to_owned(), code);
        let (first, also) = match &self.found {
            Ok(found) => {
                let mut ids = found.ids.iter().map(|id| code(id));
                let first = ids.next().unwrap_or_else(|| "none".to_owned());
                (first, ids.collect::<Vec<_>>().join(", "))
            }
            Err(_) => ("not provoked".to_owned(), String::new()),
        };
        let mark = if self.is_met() { "" } else { " **(missed)**" };
        format!("| {} | {} | {expected} | {first}{mark} | {also} |", self.wall.name, self.wall.what)
    }
}

impl Matrix {
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Sorts the rows in this order.
    pub(crate) fn in_order_of(mut self, walls: impl Iterator<Item = &'static Wall>) -> Self {
        let names: Vec<_> = walls.map(|wall| wall.name).collect();
        self.rows.sort_by_key(|row| names.iter().position(|name| *name == row.wall.name));
        self
    }

    /// Asserts that every wall was found first, and nothing on a clean run.
    pub(crate) fn check(&self) {
        let ran = self.rows.iter().filter(|row| !row.is_skipped());
        let missed: Vec<_> = ran.filter(|row| !row.is_met()).map(|row| row.wall.name).collect();
        assert!(missed.is_empty(), "not named, see above: {}", missed.join(", "));
    }

    /// Writes the matrix into its document.
    pub(crate) fn write(&self) {
        let text = std::fs::read_to_string(document()).unwrap();
        let (before, rest) =
            text.split_once(BEGIN).expect("the document contains the start mark of the matrix");
        let (_, after) =
            rest.split_once(END).expect("the document contains the end mark of the matrix");
        let rows: Vec<_> = self.rows.iter().map(Row::markdown).collect();
        let verdicts = self.rows.iter().filter_map(|row| {
            let found = row.found.as_ref().ok()?;
            Some(format!("- *{}*: {}", row.wall.name, without_paths(&found.verdict)))
        });
        let verdicts: Vec<_> = verdicts.collect();
        let made = format!(
            "{before}{BEGIN}\n| wall | what is done | must come first | came first | also |\n\
             |---|---|---|---|---|\n{}\n\n\
             What the first line of each report said:\n\n{}\n{END}{after}",
            rows.join("\n"),
            verdicts.join("\n"),
        );
        std::fs::write(document(), made).unwrap();
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.wall.name;
        match &self.found {
            Err(Unprovoked::Skipped(reason)) => write!(f, "skipped: {name}: {reason}"),
            Err(Unprovoked::Broken) => write!(f, "BROKEN {name}: see above"),
            Ok(found) => {
                let mark = if self.is_met() { "ok    " } else { "MISSED" };
                let expected = self.wall.expected.unwrap_or("nothing");
                write!(f, "{mark} {name}: expected {expected}, found [{}]", found.ids.join(", "))?;
                write!(f, "\n         {}", found.verdict)
            }
        }
    }
}

/// Prints the walls with their first findings, then the number of found walls.
impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28} {:<26} {:<26} also", "wall", "must come first", "came first")?;
        for row in &self.rows {
            let expected = row.wall.expected.unwrap_or("-");
            let (first, also) = match &row.found {
                Ok(found) => {
                    let first = found.ids.first().map_or("-", String::as_str);
                    (first, found.ids.get(1..).unwrap_or_default().join(", "))
                }
                Err(Unprovoked::Skipped(reason)) => ("(skipped)", reason.clone()),
                Err(Unprovoked::Broken) => ("(broken)", String::new()),
            };
            let mark = if !row.is_skipped() && !row.is_met() { " <- missed" } else { "" };
            writeln!(f, "{:<28} {expected:<26} {first:<26} {also}{mark}", row.wall.name)?;
        }
        let ran = self.rows.iter().filter(|row| !row.is_skipped()).count();
        let met = self.rows.iter().filter(|row| row.is_met()).count();
        write!(f, "{met} of {ran} named; {} not provoked here", self.rows.len() - ran)
    }
}

/// Checks that the document has a row for each wall, with its expected finding, and no other row.
pub(crate) fn check_document<'a>(walls: impl Iterator<Item = &'a Wall>) {
    let text = std::fs::read_to_string(document()).unwrap();
    let matrix =
        text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).expect("a matrix").0;
    let cells =
        |row: &str| row.split(" | ").map(|cell| cell.trim_matches(['|', ' ']).to_owned()).collect();
    let rows: Vec<Vec<String>> =
        matrix.lines().filter(|line| line.starts_with('|')).skip(2).map(cells).collect();
    let documented: Vec<_> = rows.iter().map(|row| (row[0].clone(), row[2].clone())).collect();
    let there: Vec<_> = walls
        .map(|wall| (wall.name.to_owned(), wall.expected.map_or_else(|| "none".to_owned(), code)))
        .collect();
    assert_eq!(
        documented, there,
        "write it anew: THRONG_WRITE_MATRIX=1 cargo test -p throng-cli --test walls"
    );
}

/// Runs a wall on its own thread, which enters the namespaces that the wall needs.
fn diagnosed(wall: &'static Wall) -> Result<Found, Unprovoked> {
    let provoke = || -> Provoked {
        let mut stage = (wall.stage)()?;
        stage.is_of(wall.name);
        (wall.provoke)(&mut stage)
    };
    let summary = thread::scope(|scope| scope.spawn(provoke).join());
    let summary = summary.map_err(|_| Unprovoked::Broken)?.map_err(Unprovoked::Skipped)?;
    let diagnosis = &summary["diagnosis"];
    let findings = diagnosis["findings"].as_array().expect("a diagnosis has findings");
    let ids = findings.iter().map(|finding| finding["id"].as_str().expect("an id").to_owned());
    Ok(Found {
        ids: ids.collect(),
        verdict: diagnosis["verdict"].as_str().expect("a verdict").to_owned(),
    })
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

const BEGIN: &str = "<!-- begin of the matrix -->";
const END: &str = "<!-- end of the matrix -->";

/// The share of the CPUs from which other programs may cause the finding.
const OTHERS_DISTURB: f64 = 0.2;
