//! Searches against made-up servers.

mod token_bucket;

use throng_base::Prng;

use super::*;

const RULES: SearchRules = SearchRules {
    first: 100.0,
    most: None,
    least: 1.0,
    precision: 0.03,
    steps_max: 12,
    repeats: 3,
    hysteresis: 0.1,
    is_whole: true,
};

/// Returns a search without runs.
pub(crate) fn record() -> SearchRecord {
    SearchRecord::new(SearchHeader {
        throng_find: SEARCH_VERSION,
        scenario: Default::default(),
        knob: "users".to_owned(),
        unit: String::new(),
        slo: vec!["errors == 0".to_owned()],
        rules: RULES,
        flags: Vec::new(),
    })
}

/// Runs a search against `server`, which returns the usage at a value. Returns the result and the
/// number of values that were tried.
fn run(rules: SearchRules, mut server: impl FnMut(f64) -> SearchRun) -> (SearchResult, usize) {
    let mut search = Search::new(rules, Vec::new());
    loop {
        match search.next() {
            SearchMove::Run(value) => search.runs.push(server(value)),
            SearchMove::End(result) => return (result, search.values().len()),
        }
        assert!(search.runs.len() <= 3 * rules.steps_max + 3, "{:?}", search.runs);
    }
}

fn outcome(value: f64, usage: f64) -> SearchRun {
    let outcome = if usage < 1.0 { SearchOutcome::Met } else { SearchOutcome::Missed };
    SearchRun { value, outcome, usage: Some(usage) }
}

fn holds(value: f64, is_met: bool, usage: Option<f64>) -> SearchRun {
    let outcome = if is_met { SearchOutcome::Met } else { SearchOutcome::Missed };
    SearchRun { value, outcome, usage }
}

#[test]
fn a_ceiling_is_found_in_spite_of_noise() {
    for seed in 0..500 {
        let mut random = Prng::new(seed);
        let mut share = || random.unit();
        // Between a tenth and forty times the first value.
        let ceiling = 10.0 * 400f64.powf(share());
        let (result, steps) = run(RULES, |value| {
            let noise = 1.0 + 0.01 * (2.0 * share() - 1.0);
            outcome(value, value / ceiling * noise)
        });
        let found = result.found.unwrap();
        let error = (found / ceiling - 1.0).abs();
        let least = if ceiling < 34.0 { 1.0 / ceiling } else { 0.0 };
        assert!(error <= 0.031 + least, "seed {seed}: {found} of {ceiling}, {result:?}");
        assert!(steps <= 12, "seed {seed}: {steps} steps");
        assert_eq!(result.end, SearchEnd::Found);
    }
}

#[test]
fn a_knee_is_found() {
    // A latency that grows as that of a queue: the SLO is missed at 90 % of the capacity.
    let (result, steps) = run(RULES, |value| {
        let load = value / 5000.0;
        outcome(value, if load < 1.0 { 0.1 / (1.0 - load) } else { 100.0 })
    });
    let found = result.found.unwrap();
    assert!((4365.0..=4500.0).contains(&found), "{result:?}");
    assert!(steps <= 12, "{steps} steps");
}

#[test]
fn a_server_that_collapses_beyond_its_limit_and_recovers() {
    let (result, _) = run(RULES, |value| outcome(value, if value <= 730.0 { 0.2 } else { 50.0 }));
    assert!((709.0..=730.0).contains(&result.found.unwrap()), "{result:?}");
    assert_eq!(result.end, SearchEnd::Found);
}

#[test]
fn a_server_that_does_not_recover_is_told() {
    let mut is_down = false;
    let (result, _) = run(RULES, |value| {
        is_down |= value > 730.0;
        outcome(value, if is_down { 50.0 } else { 0.2 })
    });
    assert_eq!(result.end, SearchEnd::NotRecovered);
    assert!((200.0..=730.0).contains(&result.found.unwrap()), "what held at first: {result:?}");
}

#[test]
fn a_value_that_had_luck_at_first_is_not_the_result() {
    let mut runs = 0;
    let (result, _) = run(RULES, |value| {
        runs += 1;
        let limit = if runs < 8 { 900.0 } else { 800.0 };
        outcome(value, if value <= limit { 0.2 } else { 5.0 })
    });
    assert_eq!(result.end, SearchEnd::Found);
    assert!((776.0..=800.0).contains(&result.found.unwrap()), "{result:?}");
}

#[test]
fn a_first_value_near_the_limit_that_had_luck_costs_few_values() {
    let mut runs = 0;
    let (result, steps) = run(RULES, |value| {
        runs += 1;
        let limit = if runs == 1 { 101.0 } else { 98.0 };
        outcome(value, if value <= limit { 0.2 } else { 5.0 })
    });
    assert_eq!(result.end, SearchEnd::Found);
    assert!((95.0..=98.0).contains(&result.found.unwrap()), "{result:?}");
    assert!(steps <= 12, "{steps} steps");
}

#[test]
fn a_ceiling_is_found_whose_nearness_no_condition_tells() {
    // A latency far from its limit, and a limit of connections above which there are errors.
    for (usage, steps_max) in [(None, 13), (Some(0.2), 12)] {
        let rules = SearchRules { steps_max, ..RULES };
        for seed in 0..500 {
            let ceiling = 10.0 * 400f64.powf(Prng::new(seed).unit());
            let (result, _) = run(rules, |value| holds(value, value <= ceiling, usage));
            let error = (result.found.unwrap() / ceiling - 1.0).abs();
            let least = if ceiling < 34.0 { 1.0 / ceiling } else { 0.0 };
            assert!(error <= 0.031 + least, "seed {seed}: {result:?} of {ceiling}");
            assert_eq!(result.end, SearchEnd::Found, "seed {seed}");
        }
    }
}

#[test]
fn a_server_that_is_not_ready_in_the_first_run_costs_no_value() {
    let mut runs = 0;
    let server = |value| {
        runs += 1;
        holds(value, value <= 730.0 && runs > 1, None)
    };
    let (result, steps) = run(RULES, server);
    assert_eq!(result.end, SearchEnd::Found);
    assert!((709.0..=730.0).contains(&result.found.unwrap()), "{result:?}");
    let (_, as_many) = run(RULES, |value| holds(value, value <= 730.0, None));
    assert_eq!(steps, as_many);
}

#[test]
fn a_miss_that_does_not_come_again_is_no_bound() {
    for away in 1..=20 {
        let mut runs = 0;
        let (result, steps) = run(RULES, |value| {
            runs += 1;
            holds(value, value <= 730.0 && runs != away, None)
        });
        let found = result.found.unwrap();
        assert!(result.bound.is_none_or(|bound| bound > 730.0), "run {away}: {result:?}");
        // What a false bound has cost may leave too few values.
        let is_exact = (709.0..=730.0).contains(&found);
        assert!(is_exact || result.end == SearchEnd::Steps, "run {away}: {result:?}");
        assert!(steps <= 12, "run {away}: {steps} steps");
    }
}

#[test]
fn a_bound_is_run_twice_and_the_result_once_after_it() {
    let mut values = Vec::new();
    let (result, _) = run(RULES, |value| {
        values.push(value);
        holds(value, value <= 730.0, None)
    });
    let count = |value| values.iter().filter(|other| Some(**other) == value).count();
    assert_eq!((count(result.bound), count(result.found) <= 2), (2, true), "{values:?}");
}

#[test]
fn the_limit_of_the_generator_is_told() {
    let (result, _) = run(RULES, |value| {
        let usage = Some(0.2);
        let outcome = if value > 3000.0 { SearchOutcome::Invalid } else { SearchOutcome::Met };
        SearchRun { value, outcome, usage }
    });
    assert_eq!(result.end, SearchEnd::Generator);
    assert!((2910.0..=3000.0).contains(&result.found.unwrap()), "{result:?}");
}

#[test]
fn one_invalid_run_decides_nothing() {
    let mut runs = 0;
    let (result, _) = run(RULES, |value| {
        runs += 1;
        match runs {
            1 => SearchRun { value, outcome: SearchOutcome::Invalid, usage: None },
            _ => outcome(value, value / 1000.0),
        }
    });
    assert_eq!(result.end, SearchEnd::Found);
}

#[test]
fn the_bounds_are_kept() {
    let rules = SearchRules { most: Some(350.0), ..RULES };
    let (result, _) = run(rules, |value| outcome(value, value / 1e6));
    assert_eq!((result.found, result.end), (Some(350.0), SearchEnd::Most));
    let (result, _) = run(RULES, |value| outcome(value, 2.0));
    assert_eq!((result.found, result.end), (None, SearchEnd::Least));
    let rules = SearchRules { steps_max: 4, ..RULES };
    let (result, steps) = run(rules, |value| outcome(value, value / 5123.0));
    assert_eq!((result.end, steps), (SearchEnd::Steps, 4));
}

#[test]
fn a_search_goes_on_from_its_runs() {
    let server = |value| outcome(value, value / 1234.0);
    let (whole, _) = run(RULES, server);
    let mut search = Search::new(RULES, Vec::new());
    while let SearchMove::Run(value) = search.next() {
        // Each step is made by another process, which has read the runs of those before it.
        search = Search::new(RULES, search.runs.clone());
        search.runs.push(server(value));
    }
    assert_eq!(search.next(), SearchMove::End(whole));
}

#[test]
fn a_void_run_is_repeated_and_no_run_of_the_search() {
    // The server is away for the first runs of `up_from`.
    let search = |up_from: usize| {
        let mut record = record();
        for number in 0.. {
            let SearchMove::Run(value) = record.next() else { break };
            if number < up_from {
                if !record.may_repeat_void() {
                    return (record, None);
                }
                continue;
            }
            record.push(RecordedRun {
                run: holds(value, value <= 730.0, None),
                grade: None,
                judgements: Vec::new(),
                reached: Default::default(),
                verdict: String::new(),
                run_file: String::new(),
            });
        }
        let end = record.next();
        (record, Some(end))
    };
    let (late, end) = search(1);
    assert_eq!((end, search(0).0.runs), (search(0).1, late.runs));
    let (away, end) = search(2);
    assert_eq!((end, away.runs.len(), away.end), (None, 0, None), "it goes on later");
}
