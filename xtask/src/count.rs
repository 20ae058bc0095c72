//! The instructions that a hot loop costs, under callgrind: a guard that no neighbour disturbs.
//! An import of twice as many constructs costs about twice as many.
//!
//! `crates/throng-sim/examples/hot_loops.rs` repeats each loop on virtual time. A repetition costs
//! the difference of two counts. `bench/instructions.json` keeps what each may cost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The options of `xtask count`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write the counts into bench/instructions.json instead of comparing them
    #[arg(long)]
    write: bool,
    /// Count a release, in place of the build that tests use
    #[arg(long)]
    release: bool,
}

/// A hot loop.
struct Loop {
    /// The name, for `hot_loops` and the file of counts.
    name: &'static str,
    /// What one repetition is.
    what: &'static str,
    /// The repetitions of the longer of the two runs, beyond those of the shorter.
    repetitions: u32,
}

const LOOPS: &[Loop] = &[
    Loop { name: "message", what: "a message through a turn of each end", repetitions: 2_000 },
    Loop { name: "connection", what: "connect, accept, echo and close", repetitions: 500 },
    Loop { name: "websocket", what: "a WebSocket message in and out", repetitions: 2_000 },
    Loop { name: "broadcast", what: "a broadcast to 1,000 members", repetitions: 20 },
    Loop { name: "step", what: "a user's step", repetitions: 2_000 },
];

/// The imports that are counted: a kind of file of `import_loops`, and how many constructs it has.
const IMPORTS: &[(&str, u32)] = &[
    ("artillery", 60),
    ("k6", 60),
    ("tsung", 60),
    ("mzbench", 60),
    ("tcpkali", 100),
    ("stressgrid", 100),
    ("connscale", 500),
    ("k6-points", 300),
    ("tsung-log", 60),
    ("artillery-report", 60),
];

/// Counts all loops. The exit code is 1 if one costs more than it may.
pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    if let Some(missing) = valgrind_missing() {
        println!("skipped: {missing}");
        return Ok(ExitCode::SUCCESS);
    }
    let profile = if options.release { "release" } else { "test" };
    let folder = build(options.release)?;
    let program = folder.join("hot_loops");
    let mut counts = BTreeMap::new();
    for hot in LOOPS {
        counts.insert(hot.name.to_owned(), count(&program, hot)?);
    }
    let kept = std::fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))?;
    let mut kept: BTreeMap<String, BTreeMap<String, u64>> =
        serde_json::from_str(&kept).map_err(|error| format!("{FILE}: {error}"))?;
    if options.write {
        kept.insert(profile.to_owned(), counts.clone());
        let text = serde_json::to_string_pretty(&kept).map_err(|error| error.to_string())?;
        std::fs::write(FILE, text + "\n").map_err(|error| format!("{FILE}: {error}"))?;
    }
    let kept = kept.remove(profile).unwrap_or_default();
    let mut is_over = false;
    for hot in LOOPS {
        let (now, before) = (counts[hot.name], kept.get(hot.name).copied().unwrap_or(0));
        let ratio = now as f64 / before.max(1) as f64;
        is_over |= ratio > RATIO_MAX;
        let mark = if ratio > RATIO_MAX { "  TOO MUCH" } else { "" };
        println!("{now:9} instructions, {ratio:5.3} of {before}: {}{mark}", hot.what);
    }
    let is_linear = count_imports(&folder.join("import_loops"))?;
    if is_over {
        println!(
            "A loop costs more than {:.0} % over its count. If the change is worth it: make \
             count COUNT=--write",
            (RATIO_MAX - 1.0) * 100.0
        );
    }
    Ok(if is_over || !is_linear { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Counts each import twice. Returns false if twice as many constructs cost much more than twice as
/// many instructions.
fn count_imports(program: &Path) -> Result<bool, String> {
    let mut is_linear = true;
    for (name, constructs) in IMPORTS {
        let few = instructions(program, name, *constructs)?;
        let many = instructions(program, name, 2 * constructs)?;
        let ratio = many as f64 / few as f64;
        is_linear &= ratio <= DOUBLE_RATIO_MAX;
        let mark = if ratio > DOUBLE_RATIO_MAX { "  NOT LINEAR" } else { "" };
        println!("{few:9} instructions, {ratio:5.3} for twice as much: import {name}{mark}");
    }
    Ok(is_linear)
}

fn valgrind_missing() -> Option<String> {
    let version = Command::new("valgrind").arg("--version").output();
    version.err().map(|error| format!("valgrind: {error}"))
}

/// Builds the programs that repeat the loops, and returns their folder. The features are those of
/// the workspace, so a build of the tests has it already.
fn build(is_release: bool) -> Result<PathBuf, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let mut cargo = Command::new(crate::cargo());
    cargo.args(["build", "--workspace", "--locked", "--quiet", "--example", "hot_loops"]);
    cargo.args(["--example", "import_loops"]);
    cargo.args(is_release.then_some("--release"));
    let status = cargo.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    let folder = if is_release { "release" } else { "debug" };
    let examples = target.join(folder).join("examples");
    status.success().then_some(examples).ok_or_else(|| "cargo cannot build the loops".to_owned())
}

/// Returns the instructions of one repetition. Two counts of one program differ by less than one in
/// 10,000: only the keys of hash maps are random.
fn count(program: &Path, hot: &Loop) -> Result<u64, String> {
    let few = instructions(program, hot.name, WARM_UP)?;
    let many = instructions(program, hot.name, WARM_UP + hot.repetitions)?;
    match many.saturating_sub(few) / u64::from(hot.repetitions) {
        0 => Err(format!("hot_loops {}: a repetition costs nothing: it does nothing", hot.name)),
        each => Ok(each),
    }
}

fn instructions(program: &Path, name: &str, repetitions: u32) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([name, &repetitions.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected : "));
    collected
        .filter(|_| output.status.success())
        .and_then(|(_, count)| count.trim().parse().ok())
        .ok_or_else(|| format!("{} {name} {repetitions}: {said}", program.display()))
}

const FILE: &str = "bench/instructions.json";

/// The repetitions of the shorter run.
const WARM_UP: u32 = 20;

/// What twice as many constructs may cost, as a multiple of the cost of half of them. A table that
/// grows costs a little more at one moment.
const DOUBLE_RATIO_MAX: f64 = 2.2;

/// What a loop may cost, as a multiple of its kept count.
const RATIO_MAX: f64 = 1.03;
