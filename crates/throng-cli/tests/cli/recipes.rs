//! The recipes of `docs/how-to/use-in-ci.md`: their commands, run as they stand there.

use std::path::Path;

use crate::process::TestDir;

/// Runs the commands of a section's recipe, and asserts which files they leave.
#[track_caller]
fn check(section: &str, commands: usize, files: &[&str]) {
    let place = TestDir::new();
    let server = place.serve(&["ok"]);
    let user = "[connect, {send: a}, {expect: ok}, close]";
    let scenario = server.scenario("[{ramp: {to: 3, over: 300ms}}]", user);
    place.write("scenario.yaml", &(scenario + "thresholds:\n  - errors == 0\n"));
    let recipe = recipe(section);
    assert_eq!(recipe.len(), commands, "{recipe:#?}");
    let mut code = None;
    for command in recipe {
        // A run that is measured first takes two seconds longer.
        let flag = if command.starts_with("throng run") { " --no-calibrate" } else { "" };
        let line = format!("GITHUB_STEP_SUMMARY=steps.md {command}{flag}");
        let finished = place.shell(&line);
        // A machine that stalls makes the run invalid, and each report of it has its exit code.
        let is_expected = match code {
            None => matches!(finished.code, Some(0 | 3)),
            code => finished.code == code || command.ends_with("|| true"),
        };
        assert!(is_expected, "{command}: {finished:#?}");
        code = code.or(finished.code);
    }
    for file in files {
        assert!(place.path(file).metadata().is_ok_and(|it| it.len() > 0), "{file} is missing");
    }
}

/// Returns the lines of the YAML in a section that are commands of throng.
fn recipe(section: &str) -> Vec<String> {
    let doc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/use-in-ci.md");
    let text = std::fs::read_to_string(doc).unwrap();
    let (_, text) = text.split_once(&format!("\n## {section}\n")).expect(section);
    let (_, yaml) = text.split_once("```yaml\n").expect(section);
    let (yaml, _) = yaml.split_once("```").expect(section);
    let command = |line: &str| {
        let line = line.trim().trim_start_matches("- ").trim_start_matches("run: ");
        line.starts_with("throng ").then(|| line.to_owned())
    };
    yaml.lines().filter_map(command).collect()
}

#[test]
fn the_recipe_for_github_runs_as_it_stands() {
    let files = ["run.jsonl", "report.html", "report.xml", "report.md", "steps.md"];
    check("GitHub Actions", 3, &files);
}

#[test]
fn the_recipe_for_gitlab_runs_as_it_stands() {
    let files = ["run.jsonl", "report.html", "report.xml", "gl-code-quality-report.json"];
    check("GitLab", 2, &files);
}
