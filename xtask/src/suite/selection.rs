//! What `make test ONLY=` names: crates, suites or tests, and what must be built for them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::job::{Job, JobTraits};
use super::table::Suite;

/// The steps of a run.
pub(super) struct Selection {
    suites: Vec<Chosen>,
    /// The steps that are not test binaries.
    tools: Vec<&'static str>,
    /// Everything is selected.
    is_whole: bool,
}

/// A suite that runs whole, or only its tests whose names contain one of the filters.
struct Chosen {
    suite: Target,
    filters: Vec<String>,
}

/// A test target of a crate.
#[derive(Clone)]
struct Target {
    /// The crate.
    package: String,
    /// `lib`, `bin`, or the name of the test.
    kind: String,
    /// The folder or the file with its tests.
    source: PathBuf,
}

impl Target {
    /// Returns the name of the suite: `throng-cli walls`.
    fn name(&self) -> String {
        format!("{} {}", self.package, self.kind)
    }
}

impl Selection {
    /// Selects what the names say: all if there are none.
    pub(super) fn of(names: &[String]) -> Result<Self, String> {
        Self::among(&targets()?, names)
    }

    fn among(targets: &[Target], names: &[String]) -> Result<Self, String> {
        let whole = |suite: &Target| Chosen { suite: suite.clone(), filters: Vec::new() };
        if names.is_empty() {
            let suites = targets.iter().map(whole).collect();
            return Ok(Self { suites, tools: TOOLS.to_vec(), is_whole: true });
        }
        let mut chosen = Self { suites: Vec::new(), tools: Vec::new(), is_whole: false };
        for name in names {
            let tools: Vec<_> = TOOLS.iter().filter(|tool| tool.contains(name.as_str())).collect();
            // A name that is one whole is no part of others: `cli` of `throng-cli`.
            let is_it = |suite: &&Target| suite.kind == *name || suite.package == *name;
            let mut suites: Vec<_> = targets.iter().filter(is_it).collect();
            if suites.is_empty() {
                suites = targets.iter().filter(|it| it.name().contains(name.as_str())).collect();
            }
            if !tools.is_empty() || !suites.is_empty() {
                chosen.tools.extend(tools);
                suites.into_iter().for_each(|suite| chosen.add(suite, None));
                continue;
            }
            let suites: Vec<_> = targets.iter().filter(|suite| has_test(suite, name)).collect();
            if suites.is_empty() {
                return Err(format!(
                    "no crate, suite, step or test has a name that contains {name:?}; \
                     --list shows the suites"
                ));
            }
            let test = last_segment(name).to_owned();
            suites.into_iter().for_each(|suite| chosen.add(suite, Some(&test)));
        }
        Ok(chosen)
    }

    /// Adds a suite, or one filter of it.
    fn add(&mut self, suite: &Target, filter: Option<&String>) {
        let name = suite.name();
        match (self.suites.iter_mut().find(|chosen| chosen.suite.name() == name), filter) {
            // A suite without a filter runs whole already.
            (Some(chosen), Some(filter)) if !chosen.filters.is_empty() => {
                chosen.filters.push(filter.clone());
            }
            (Some(chosen), None) => chosen.filters.clear(),
            (Some(_), Some(_)) => {}
            (None, filter) => {
                let filters = filter.into_iter().cloned().collect();
                self.suites.push(Chosen { suite: suite.clone(), filters });
            }
        }
    }

    /// Returns the names of the steps, without the builds.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let tools = self.tools.iter().map(|tool| (*tool).to_owned());
        self.suites.iter().map(|chosen| chosen.suite.name()).chain(tools)
    }

    /// Returns the filters of a selected suite.
    pub(super) fn filters(&self, suite: &str) -> Option<&[String]> {
        let chosen = self.suites.iter().find(|chosen| chosen.suite.name() == suite)?;
        Some(&chosen.filters)
    }

    /// Returns the steps before the build: pages and clients, if a suite needs them.
    pub(super) fn preparation(&self) -> Vec<Job> {
        let rows = || self.suites.iter().map(|chosen| Suite::of(&chosen.suite.name()));
        if rows().any(|suite| suite.needs_clients) {
            vec![super::make("clients")]
        } else if rows().any(|suite| suite.needs_program) {
            vec![super::make("page")]
        } else {
            Vec::new()
        }
    }

    /// Returns the builds of the test binaries.
    pub(super) fn builds(&self) -> Vec<Job> {
        if self.is_whole {
            return vec![build("the tests", ["test", "--workspace", "--no-run"])];
        }
        let mut builds = Vec::new();
        let tests = self.suites.iter().map(|chosen| &chosen.suite);
        let tests: BTreeSet<&str> = tests
            .filter(|suite| !["lib", "bin"].contains(&suite.kind.as_str()))
            .map(|suite| suite.kind.as_str())
            .collect();
        if !tests.is_empty() {
            // The features of a dependency are those of the workspace, so it is built once.
            let tests = tests.into_iter().flat_map(|name| ["--test", name]);
            let arguments = ["test", "--workspace", "--no-run"].into_iter().chain(tests);
            builds.push(build("the suites", arguments));
        }
        for (kind, flag) in [("lib", "--lib"), ("bin", "--bins")] {
            let suites = self.suites.iter().map(|chosen| &chosen.suite);
            let packages: Vec<_> = suites
                .filter(|suite| suite.kind == kind)
                .flat_map(|suite| ["-p", suite.package.as_str()])
                .collect();
            if !packages.is_empty() {
                let arguments = ["test", "--no-run", flag].into_iter().chain(packages);
                builds.push(build(&format!("the tests of each {kind}"), arguments));
            }
        }
        if self.suites.iter().any(|chosen| Suite::of(&chosen.suite.name()).needs_program) {
            builds.push(build("throng", ["build", "--workspace", "--bin", "throng"]));
        }
        builds
    }

    /// Returns the doc tests, the linters and loom, as far as they are selected.
    pub(super) fn tools(&self) -> Vec<Job> {
        let locks_target = JobTraits { locks_target: true, ..JobTraits::default() };
        let job = |tool: &&str| match *tool {
            DOC_TESTS => doc_tests().with(locks_target),
            COUNT => count().with(locks_target),
            LINT => super::make(LINT).with(locks_target),
            target => super::make(target),
        };
        self.tools.iter().map(job).collect()
    }
}

/// The steps that are not test binaries.
const TOOLS: &[&str] = &[DOC_TESTS, COUNT, LINT, "loom"];
const DOC_TESTS: &str = "doc tests";
const COUNT: &str = "count";
const LINT: &str = "lint";

/// Creates the job of `make count`, without a build of this program.
fn count() -> Job {
    let program = std::env::current_exe().unwrap_or_else(|_| "target/debug/xtask".into());
    let mut command = Command::new(program);
    command.arg("count");
    Job::new(COUNT, command)
}

fn doc_tests() -> Job {
    let mut command = Command::new(crate::cargo());
    command.args(["test", "--doc", "--locked", "--workspace", "--no-fail-fast"]);
    Job::new(DOC_TESTS, command)
}

fn build<'a>(what: &str, arguments: impl IntoIterator<Item = &'a str>) -> Job {
    let mut command = Command::new(crate::cargo());
    command.args(arguments).args(["--locked", "--message-format=json-render-diagnostics"]);
    Job::new(format!("build {what}"), command)
}

/// Reports whether a test of the suite has a name that contains the words. The name of a cause
/// may stand for its test: both are compared as identifiers.
fn has_test(suite: &Target, words: &str) -> bool {
    let wanted = last_segment(words);
    let is_name = |line: &str| {
        let line = line.trim_start();
        let function = line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn "));
        let function = function.and_then(|rest| rest.split('(').next());
        let cause = line.strip_prefix("name: \"").and_then(|rest| rest.split('"').next());
        function.is_some_and(|name| name.contains(wanted))
            || cause.is_some_and(|name| identifier(name).contains(wanted))
    };
    files(&suite.source).iter().any(|path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.contains("#[test]") && text.lines().any(is_name)
            || text.lines().any(|line| line.trim_start().starts_with("name: \"") && is_name(line))
    })
}

/// Returns the name of a test without its modules.
fn last_segment(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// Returns a name as an identifier: `newest_first` of `newest first`.
fn identifier(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("_")
}

/// Returns a file, or all files of Rust in a folder.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.to_path_buf()] };
    let paths = entries.flatten().map(|entry| entry.path());
    let of_rust = |path: &PathBuf| path.is_dir() || path.extension().is_some_and(|e| e == "rs");
    paths.filter(of_rust).flat_map(|path| files(&path)).collect()
}

/// Returns the test targets of the workspace, as cargo lists them.
fn targets() -> Result<Vec<Target>, String> {
    let output = Command::new(crate::cargo())
        .args(["metadata", "--no-deps", "--locked", "--format-version", "1"])
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let of = |package: Package| {
        let name = package.name;
        package.targets.into_iter().filter(|target| target.test).filter_map(move |target| {
            let folder = target.src_path.parent()?;
            let is_folder = !target.src_path.ends_with(format!("{}.rs", target.name));
            let source = if is_folder { folder.to_path_buf() } else { target.src_path.clone() };
            Some(Target { package: name.clone(), kind: target.suite()?, source })
        })
    };
    Ok(metadata.packages.into_iter().flat_map(of).collect())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<CargoTarget>,
}

/// A target of a crate, as cargo describes it.
#[derive(Default, Deserialize)]
pub(super) struct CargoTarget {
    pub(super) name: String,
    pub(super) kind: Vec<String>,
    #[serde(default)]
    src_path: PathBuf,
    #[serde(default)]
    test: bool,
}

impl CargoTarget {
    /// Returns `lib`, `bin`, or the name of the test.
    pub(super) fn suite(&self) -> Option<String> {
        match self.kind.first()?.as_str() {
            "test" => Some(self.name.clone()),
            "bin" if self.src_path.ends_with(Path::new("src/main.rs")) => Some("bin".to_owned()),
            "bin" => Some(self.name.clone()),
            "lib" => Some("lib".to_owned()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns three suites of a workspace in a folder.
    fn workspace(folder: &Path) -> Vec<Target> {
        let source = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let target = |package: &str, kind: &str, source| Target {
            package: package.to_owned(),
            kind: kind.to_owned(),
            source,
        };
        vec![
            target("throng-cli", "walls", source("walls.rs", "    name: \"a full queue\",\n")),
            target("throng-cli", "cli", source("cli.rs", "#[test]\nfn help_is_short() {}\n")),
            target("throng-proto", "lib", source("lib.rs", "#[test]\nfn frames_are_cut() {}\n")),
        ]
    }

    #[test]
    fn a_crate_a_suite_and_a_test_select_only_what_they_name() {
        let folder = std::env::temp_dir().join(format!("throng-selection-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let targets = workspace(&folder);
        let selected = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            let selection = Selection::among(&targets, &names)?;
            let builds = selection.builds().into_iter().map(|job| job.name).collect();
            Ok::<(Vec<String>, Vec<String>), String>((selection.names().collect(), builds))
        };
        let names = |names: &[&str]| selected(names).unwrap().0;
        assert_eq!(names(&["throng-cli"]), ["throng-cli walls", "throng-cli cli"]);
        assert_eq!(names(&["walls"]), ["throng-cli walls"]);
        assert_eq!(names(&["a_full_queue"]), ["throng-cli walls"]);
        assert_eq!(names(&["frames::frames_are_cut"]), ["throng-proto lib"]);
        assert_eq!(names(&["lint", "help_is"]), ["throng-cli cli", "lint"]);
        assert_eq!(selected(&["frames_are_cut"]).unwrap().1, ["build the tests of each lib"]);
        assert_eq!(selected(&["walls"]).unwrap().1, ["build the suites", "build throng"]);
        let error = selected(&["nothing_of_that_name"]).unwrap_err();
        assert!(error.contains("nothing_of_that_name") && error.contains("--list"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_filter_is_dropped_where_the_suite_runs_whole() {
        let folder = std::env::temp_dir().join(format!("throng-filters-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let targets = workspace(&folder);
        let of = |names: [&str; 2]| Selection::among(&targets, &names.map(str::to_owned)).unwrap();
        for names in [["walls", "a_full_queue"], ["a_full_queue", "walls"]] {
            assert_eq!(of(names).filters("throng-cli walls"), Some(&[][..]), "{names:?}");
        }
        let filters = of(["a_full", "queue"]);
        assert_eq!(filters.filters("throng-cli walls").unwrap(), ["a_full", "queue"]);
        fs::remove_dir_all(folder).unwrap();
    }
}
