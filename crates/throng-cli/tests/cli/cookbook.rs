//! The recipes of `docs/how-to/cookbook.md`, run as they stand there: with fewer users, and with
//! time that goes twenty times as fast.

use std::path::Path;

use serde_json::Value;

use crate::process::TestDir;

/// A section of the document.
struct Recipe {
    title: String,
    scenario: String,
    /// The file beside the scenario.
    rows: Option<String>,
    commands: Vec<String>,
}

/// The files that recipes write, and the figures that must not be 0, by the number of the recipe.
const EXPECTED: [(&[&str], &[&str]); 11] = [
    (&[], &["/http/ok", "/connect/ok", "/message/answered", "/steps/0/ok"]),
    (&[], &["/message/answered"]),
    (&[], &["/message/answered"]),
    (&[], &["/message/answered"]),
    (&[], &["/http/ok", "/http/statuses/304", "/http/statuses/204", "/http/statuses/201"]),
    (&[], &["/message/answered", "/broadcast/delivered"]),
    (&[], &["/steps/0/ok"]),
    (&["knee.html"], &["/message/answered"]),
    (&["report.html", "report.xml"], &["/message/answered"]),
    (&[], &["/join/ok", "/push/ok", "/steps/0/ok"]),
    (
        &[],
        &[
            "/connect/ok",
            "/steps/0/ok",
            "/classes/resident/connects_ok",
            "/classes/visitor/connects_ok",
        ],
    ),
];

#[track_caller]
fn check(number: usize) {
    let recipe = Recipe::all().swap_remove(number - 1);
    assert!(recipe.title.starts_with(&format!("{number}. ")), "{}", recipe.title);
    let place = TestDir::new();
    let kind = recipe.commands.iter().find_map(|line| line.strip_prefix("throng serve "));
    let (_server, addr) = match kind {
        Some(kind) => {
            let server = place.serve(&[kind.trim_end_matches(" &")]);
            let addr = server.addr.clone();
            (server.process, addr)
        }
        None => {
            let Some((server, port)) = place.python(SERVER) else { return };
            (server, format!("127.0.0.1:{port}"))
        }
    };
    let run = recipe.commands.iter().find(|line| line.starts_with("throng run ")).unwrap();
    let words: Vec<_> = run.split(' ').skip(1).collect();
    place.write(words[1], &short(&recipe.scenario, &addr));
    if let Some(rows) = &recipe.rows {
        place.write("users.csv", rows);
    }
    let few: &[&str] =
        match (recipe.scenario.contains("\nload:"), recipe.scenario.contains("ramp:")) {
            // Each class has a load of its own.
            (false, _) => &[],
            (true, true) => &["--users", "40"],
            (true, false) => &["--arrivals", "50/s"],
        };
    let tried = place.throng(&["try", words[1], "--no-wait"]);
    assert_eq!(tried.code, Some(0), "{tried:#?}");
    let run = place.throng(&[&words[..], few, &["--json", "summary.json"]].concat());
    // A busy machine misses a latency, or makes the run invalid.
    assert!(matches!(run.code, Some(0 | 1 | 3)), "{run:#?}");
    let summary = place.json("summary.json");
    assert_eq!(summary["errors"], serde_json::json!({}), "{run:#?}");
    let (files, figures) = EXPECTED[number - 1];
    for figure in figures {
        let count = summary.pointer(figure).and_then(Value::as_u64);
        assert!(count.is_some_and(|count| count > 0), "{figure}: {summary:#}");
    }
    for file in files {
        assert!(place.path(file).metadata().is_ok_and(|it| it.len() > 0), "{file} is missing");
    }
}

impl Recipe {
    /// Returns the recipes of the document.
    fn all() -> Vec<Self> {
        let doc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/cookbook.md");
        let text = std::fs::read_to_string(doc).unwrap();
        text.split("\n## ").skip(1).map(Self::read).collect()
    }

    fn read(section: &str) -> Self {
        let block = |kind: &str| {
            let (_, rest) = section.split_once(&format!("```{kind}\n"))?;
            Some(rest.split("```").next().unwrap().to_owned())
        };
        let commands = block("sh").expect("a recipe has its commands");
        Self {
            title: section.lines().next().unwrap().to_owned(),
            scenario: block("yaml").expect("a recipe has a scenario"),
            rows: block("csv"),
            commands: commands.lines().map(str::to_owned).collect(),
        }
    }
}

/// Returns a scenario for the server at `addr`, in which time goes twenty times as fast. Time-outs
/// and thresholds stay.
fn short(scenario: &str, addr: &str) -> String {
    let (scenario, thresholds) = scenario.split_once("thresholds:").unwrap();
    let mut lines: Vec<String> = scenario.lines().map(quick).collect();
    let (scheme, rest) = lines[0].split_once("127.0.0.1:").unwrap();
    let path = rest.trim_start_matches(|it: char| it.is_ascii_digit());
    lines[0] = format!("{scheme}{addr}{path}");
    format!("{}\nthresholds:{thresholds}", lines.join("\n"))
}

/// Divides the whole seconds of a line by twenty.
fn quick(line: &str) -> String {
    let mut quick = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(|it: char| it.is_ascii_digit()) {
        let end = rest[at..].find(|it: char| !it.is_ascii_digit()).map_or(rest.len(), |e| at + e);
        let (number, after) = (&rest[at..end], &rest[end..]);
        let is_part = rest[..at].ends_with(|it: char| it.is_alphanumeric());
        let is_time =
            after.strip_prefix('s').is_some_and(|it| !it.starts_with(char::is_alphanumeric));
        quick.push_str(&rest[..at]);
        match number.parse::<u32>() {
            Ok(seconds) if is_time && !is_part && !line.contains("timeout") => {
                quick.push_str(&format!("{}ms", seconds * 50));
                rest = &after[1..];
            }
            _ => {
                quick.push_str(number);
                rest = after;
            }
        }
    }
    quick + rest
}

#[test]
fn the_document_has_all_recipes_and_a_row_for_each() {
    let doc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/cookbook.md");
    let text = std::fs::read_to_string(doc).unwrap();
    let recipes = Recipe::all();
    assert_eq!(recipes.len(), EXPECTED.len());
    for (recipe, number) in recipes.iter().zip(1..) {
        let row = format!("| [{number}](#{number}-");
        assert!(text.contains(&row), "{}", recipe.title);
    }
    assert_eq!(quick("  - ramp: {to: 40, over: 10s}"), "  - ramp: {to: 40, over: 500ms}");
    assert_eq!(
        quick("exponential(2s, max 30s) 20/s 5s"),
        "exponential(100ms, max 1500ms) 20/s 250ms"
    );
}

/// A server of items and rooms; HTTP and WebSockets share its port.
const SERVER: &str = include_str!("cookbook_server.py");

macro_rules! recipes {
    ($($name:ident = $number:literal;)*) => {
        $(#[test]
        fn $name() {
            check($number);
        })*
    };
}

recipes! {
    the_recipe_of_a_login_and_a_socket_runs = 1;
    the_recipe_of_rooms_runs = 2;
    the_recipe_of_users_that_come_back_runs = 3;
    the_recipe_of_a_csv_file_runs = 4;
    the_recipe_of_rest_with_etag_runs = 5;
    the_recipe_of_a_round_trip_and_a_broadcast_runs = 6;
    the_recipe_of_two_classes_runs = 7;
    the_recipe_of_a_ramp_to_the_knee_runs = 8;
    the_recipe_for_ci_runs = 9;
    the_recipe_of_a_thousand_rooms_runs = 10;
    the_recipe_of_users_who_stay_beside_arrivals_runs = 11;
}
