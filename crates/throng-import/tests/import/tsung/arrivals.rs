//! The arrivals of imported files are those of tsung's phases.

use throng_load::scenario::Scenario;
use throng_load::schedule::Arrivals;

use super::file::File;
use crate::import_text;

/// Returns the moments of all arrivals of a file with this load, in seconds.
fn moments(load: &str, seed: u64) -> Vec<f64> {
    let file = File { load: load.to_owned(), ..File::default() };
    let import = import_text(&file.text(), "tsung/load.xml").unwrap();
    let scenario = Scenario::parse(&import.scenario, "load.yaml").unwrap();
    Arrivals::new(scenario.load.shared(), 0, 1, seed).map(|moment| moment.as_secs_f64()).collect()
}

fn phase(number: usize, duration: &str, users: &str) -> String {
    format!("<arrivalphase phase=\"{number}\" {duration}>{users}</arrivalphase>")
}

/// Asserts that `found` is within one per cent of `planned`.
fn assert_near(found: f64, planned: f64, what: &str) {
    assert!((found / planned - 1.0).abs() < 0.01, "{what}: {found} and not {planned}");
}

/// Name, phases, and for each phase its end in seconds and its rate.
type ShapeRow = (&'static str, String, &'static [(f64, f64)]);

#[test]
fn each_shape_of_a_phase_has_its_rate() {
    let second = "duration=\"100\" unit=\"second\"";
    let rows: &[ShapeRow] = &[
        (
            "arrivalrate",
            phase(1, second, "<users arrivalrate=\"1000\" unit=\"second\"/>"),
            &[(100.0, 1000.0)],
        ),
        (
            "interarrival",
            phase(1, second, "<users interarrival=\"0.001\" unit=\"second\"/>"),
            &[(100.0, 1000.0)],
        ),
        (
            "minutes and hours",
            phase(
                1,
                "duration=\"5\" unit=\"minute\"",
                "<users arrivalrate=\"9000\" unit=\"minute\"/>",
            ) + &phase(
                2,
                "duration=\"360\" unit=\"second\"",
                "<users arrivalrate=\"720000\" unit=\"hour\"/>",
            ),
            &[(300.0, 150.0), (660.0, 200.0)],
        ),
        (
            "a staircase, in milliseconds",
            phase(
                1,
                "duration=\"50000\" unit=\"millisecond\"",
                "<users interarrival=\"0.002\" unit=\"second\"/>",
            ) + &phase(2, second, "<users interarrival=\"0.0005\" unit=\"second\"/>"),
            &[(50.0, 500.0), (150.0, 2000.0)],
        ),
        (
            "a rate that is no whole number",
            phase(1, second, "<users interarrival=\"0.0007\" unit=\"second\"/>"),
            &[(100.0, 1.0 / 0.0007)],
        ),
    ];
    for (name, phases, planned) in rows {
        let moments = moments(&format!("<load>{phases}</load>"), 1);
        let mut begin = 0.0;
        for (end, rate) in *planned {
            let count = moments.iter().filter(|at| (begin..*end).contains(*at)).count();
            assert_near(count as f64, rate * (end - begin), name);
            begin = *end;
        }
        assert!(moments.last().is_some_and(|last| *last < begin), "{name}");
    }
}

#[test]
fn a_load_with_turns_and_an_end() {
    let users = "<users arrivalrate=\"600\" unit=\"second\"/>";
    let phases = phase(1, "duration=\"50\" unit=\"second\"", users);
    let looped = moments(&format!("<load loop=\"2\">{phases}</load>"), 1);
    assert_near(looped.len() as f64, 600.0 * 150.0, "loop");
    let ended =
        moments(&format!("<load loop=\"2\" duration=\"2\" unit=\"minute\">{phases}</load>"), 1);
    assert_near(ended.len() as f64, 600.0 * 120.0, "duration");
}

#[test]
fn no_more_users_than_maxnumber() {
    let users = "<users arrivalrate=\"1000\" unit=\"second\" maxnumber=\"5000\"/>";
    let moments =
        moments(&format!("<load>{}</load>", phase(1, "duration=\"1\" unit=\"minute\"", users)), 1);
    assert_eq!(moments.len(), 5000);
    assert!((4.5..5.5).contains(&moments[4999]), "at its rate until then");
}

/// Numbers of arrivals in equal times have the variance of a Poisson process: their mean.
#[test]
fn gaps_are_exponential() {
    let users = "<users arrivalrate=\"1000\" unit=\"second\"/>";
    let load = format!("<load>{}</load>", phase(1, "duration=\"100\" unit=\"second\"", users));
    let first = moments(&load, 7);
    let gaps: Vec<_> = first.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert_near(mean, 1e-3, "mean of the gaps");
    assert!((variance / (mean * mean) - 1.0).abs() < 0.05, "{variance}");
    let mut counts = vec![0.0f64; 10_000];
    first.iter().for_each(|at| counts[(at * 100.0) as usize] += 1.0);
    let mean = counts.iter().sum::<f64>() / 1e4;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 1e4;
    assert!((variance / mean - 1.0).abs() < 0.05, "{variance} and not {mean}");
    assert_eq!(first, moments(&load, 7), "same seed, same schedule");
    assert_ne!(first, moments(&load, 8));
}
