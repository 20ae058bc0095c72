use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::scenario::{Curve, Spacing};

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn ramp(to: u32, seconds: u64) -> Phase {
    Phase::Ramp { to, over: Duration::from_secs(seconds), curve: Curve::Linear }
}

fn hold(seconds: u64) -> Phase {
    Phase::Hold { span: Duration::from_secs(seconds), until_done: false }
}

fn arrivals(from: f64, to: f64, seconds: u64, most: Option<u64>, spacing: Spacing) -> Phase {
    let curve = Curve::Linear;
    Phase::Arrivals { from, to, curve, span: Duration::from_secs(seconds), most, spacing }
}

fn grow(to: u32, seconds: u64) -> Phase {
    Phase::Ramp { to, over: Duration::from_secs(seconds), curve: Curve::Exponential }
}

fn step(to: u32, seconds: u64) -> Phase {
    Phase::Step { to, span: Duration::from_secs(seconds) }
}

fn spike(to: u32, back: u32, over: u64, seconds: u64) -> Phase {
    let (over, span) = (Duration::from_secs(over), Duration::from_secs(seconds));
    Phase::Spike { to, back, over, span }
}

fn exponential(from: f64, to: f64, seconds: u64) -> Phase {
    let span = Duration::from_secs(seconds);
    let (curve, spacing) = (Curve::Exponential, Spacing::Even);
    Phase::Arrivals { from, to, curve, span, most: None, spacing }
}

fn recorded(moments_ns: &[u64]) -> Phase {
    let last = Duration::from_nanos(*moments_ns.last().unwrap());
    Phase::Recorded { moments_ns: moments_ns.into(), span: last + Duration::from_millis(1) }
}

/// All cores' events, in order of time.
fn all_events(phases: &[Phase], cores: usize) -> Vec<ScheduleEvent> {
    let schedule = ClosedSchedule::new(phases);
    let mut events: Vec<_> = (0..cores).flat_map(|core| schedule.events(core, cores)).collect();
    events.sort_by_key(|event| event.at);
    events
}

fn all_arrivals(phases: &[Phase], cores: usize) -> Vec<Duration> {
    let mut moments: Vec<_> =
        (0..cores).flat_map(|core| Arrivals::new(phases, core, cores, 7)).collect();
    moments.sort();
    moments
}

#[test]
fn a_ramp_starts_users_one_by_one_and_stops_the_newest_first() {
    let shown: Vec<String> = all_events(&[ramp(4, 4), hold(2), ramp(2, 2), ramp(3, 1)], 1)
        .iter()
        .map(|event| format!("{:?} {:?} {}", event.at, event.change, event.user))
        .collect();
    let expected = [
        "0ns Start 0",
        "1s Start 1",
        "2s Start 2",
        "3s Start 3",
        "7s Stop 3",
        "8s Stop 2",
        "8s Start 2",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn the_target_follows_the_line() {
    let schedule = ClosedSchedule::new(&[ramp(100, 10), hold(5), ramp(0, 20)]);
    for (t, target) in [
        (0.0, 0.0),
        (5.0, 50.0),
        (10.0, 100.0),
        (12.0, 100.0),
        (25.0, 50.0),
        (35.0, 0.0),
        (99.0, 0.0),
    ] {
        assert_eq!(schedule.target_at(secs(t)), target, "at {t}");
    }
    assert_eq!(schedule.length(), secs(35.0));
    assert_eq!(schedule.peak_users(), 100);
    let of_user: Vec<_> = schedule.moments_of(50).collect();
    assert_eq!(of_user, [secs(5.0), secs(25.0)]);
}

#[test]
fn even_arrivals_have_their_exact_moments() {
    let constant = all_arrivals(&[arrivals(1_000.0, 1_000.0, 100, None, Spacing::Even)], 3);
    assert_eq!(constant.len(), 100_000);
    assert!(constant.iter().zip(0u64..).all(|(at, k)| *at == Duration::from_millis(k)));
    // 0 to 100/s over 10 s: k = 5 t^2.
    let growing = all_arrivals(&[arrivals(0.0, 100.0, 10, None, Spacing::Even)], 4);
    assert_eq!(growing.len(), 500);
    for (k, at) in growing.iter().enumerate() {
        assert!((at.as_secs_f64() - (k as f64 / 5.0).sqrt()).abs() < 2e-9, "{k}");
    }
    // 100/s to 0 over 10 s mirrors it: the last arrival is at 10 - sqrt(1/5).
    let falling = all_arrivals(&[arrivals(100.0, 0.0, 10, None, Spacing::Even)], 1);
    assert_eq!(falling.len(), 500);
    assert!((falling[499].as_secs_f64() - (10.0 - 0.2f64.sqrt())).abs() < 1e-6);
}

#[test]
fn phases_of_arrivals_are_chained() {
    let phases = [
        arrivals(10.0, 10.0, 1, None, Spacing::Even),
        hold(5),
        arrivals(10.0, 10.0, 1, Some(3), Spacing::Even),
    ];
    let moments = all_arrivals(&phases, 4);
    assert_eq!(moments.len(), 13);
    assert_eq!(moments[10..], [secs(6.0), secs(6.1), secs(6.2)]);
    assert_eq!(Phase::length_of(&phases), secs(7.0));
    assert_eq!(arrivals_total(&phases), 13);
}

#[test]
fn most_is_split_exactly_with_either_spacing() {
    for spacing in [Spacing::Even, Spacing::Poisson] {
        for cores in [1, 2, 3, 7] {
            let phases = [
                arrivals(1_000.0, 1_000.0, 10, Some(1_001), spacing),
                arrivals(1_000.0, 1_000.0, 10, Some(10), spacing),
            ];
            assert_eq!(all_arrivals(&phases, cores).len(), 1_011, "{spacing:?} on {cores}");
        }
    }
}

#[test]
fn poisson_arrivals_have_the_rate_and_the_spread_of_the_law() {
    // Ten-thousand seconds at 10/s: the number in a second has mean 10 and variance 10.
    let moments = all_arrivals(&[arrivals(10.0, 10.0, 10_000, None, Spacing::Poisson)], 3);
    let mut seconds = vec![0.0f64; 10_000];
    for at in &moments {
        seconds[at.as_secs() as usize] += 1.0;
    }
    let mean = seconds.iter().sum::<f64>() / 1e4;
    let variance = seconds.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 1e4;
    assert!((mean - 10.0).abs() < 0.15, "mean {mean}");
    assert!((variance - 10.0).abs() < 0.7, "variance {variance}");
    // Growing from nothing: a quarter arrives in the first half.
    let moments = all_arrivals(&[arrivals(0.0, 1_000.0, 100, None, Spacing::Poisson)], 2);
    let early = moments.iter().filter(|at| at.as_secs() < 50).count();
    assert!((moments.len() as f64 - 50_000.0).abs() < 1_000.0, "{}", moments.len());
    assert!((early as f64 / moments.len() as f64 - 0.25).abs() < 0.01, "{early}");
}

#[test]
fn the_same_seed_gives_the_same_arrivals_and_another_core_others() {
    let phases = [arrivals(100.0, 100.0, 1, None, Spacing::Poisson)];
    let draw = |core, seed| Arrivals::new(&phases, core, 2, seed).collect::<Vec<_>>();
    assert_eq!(draw(0, 1), draw(0, 1));
    assert_ne!(draw(0, 1), draw(1, 1));
    assert_ne!(draw(0, 1), draw(0, 2));
}

#[test]
fn a_period_is_exact_after_a_billion_turns() {
    let paced = PacedTurns::new(Pace::Period(Duration::from_micros(333)));
    assert_eq!(paced.due(1_000_000_000), Duration::from_secs(333_000));
    assert_eq!(paced.turns_in(Duration::from_micros(666)), 2);
    assert_eq!(paced.turns_in(Duration::from_micros(667)), 3);
}

#[test]
fn a_jitter_does_not_drift_and_keeps_turns_in_order() {
    let period = Duration::from_secs(5);
    let pace = PacedTurns::new(Pace::Jittered { period, jitter: 0.5 });
    let (user, other) = (pace.of_user(1, 7), pace.of_user(1, 8));
    assert_eq!(user.due(0), Duration::ZERO);
    assert_eq!(user.due(3), pace.of_user(1, 7).due(3), "the same seed, the same moments");
    assert_ne!(user.due(3), other.due(3));
    assert_ne!(user.due(3), pace.of_user(2, 7).due(3));
    let turns = 1..100_000u64;
    let deviations: Vec<f64> =
        turns.map(|k| (user.due(k).as_secs_f64() - 5.0 * k as f64) / 5.0).collect();
    assert!(deviations.iter().all(|share| share.abs() <= 0.5 + 1e-9), "no drift");
    let count = deviations.len() as f64;
    let mean = deviations.iter().sum::<f64>() / count;
    let variance = deviations.iter().map(|share| share * share).sum::<f64>() / count;
    assert!(mean.abs() < 0.005, "{mean}");
    assert!((variance - 1.0 / 12.0).abs() < 0.001, "{variance}");
    assert!((0..100_000).map(|k| user.due(k)).is_sorted());
    for k in 1..1_000 {
        let due = user.due(k);
        assert_eq!(user.turns_due(due), k + 1);
        assert_eq!(user.turns_due(due - Duration::from_nanos(1)), k);
    }
    assert_eq!(user.turns_planned(Duration::from_secs(50)), 10);
}

#[test]
fn a_growing_pace_goes_on_at_its_last_rate() {
    // 1/s to 10/s over 10 s: 55 turns, then ten a second.
    let paced =
        PacedTurns::new(Pace::Rate { from: 1.0, to: 10.0, over: secs(10.0), curve: Curve::Linear });
    assert_eq!(paced.due(0), Duration::ZERO);
    assert!((paced.due(55).as_secs_f64() - 10.0).abs() < 1e-9);
    assert!((paced.due(65).as_secs_f64() - 11.0).abs() < 1e-9);
    // At 5 s: 5 + 0.45 * 25 = 16.25 turns.
    assert_eq!(paced.turns_in(secs(5.0)), 17);
    let constant = PacedTurns::new(Pace::Rate {
        from: 4.0,
        to: 4.0,
        over: Duration::ZERO,
        curve: Curve::Linear,
    });
    assert_eq!(constant.due(10), secs(2.5));
}

#[test]
fn an_exponential_ramp_grows_by_the_same_factor() {
    // One user more each time that the users plus one have doubled.
    let phases = [grow(7, 3), grow(0, 3)];
    let moments: Vec<f64> =
        all_events(&phases, 2).iter().map(|event| event.at.as_secs_f64()).collect();
    let starts = [1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].map(f64::log2);
    let stops = [7.0f64, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0].map(|left| 6.0 - left.log2());
    assert_eq!(moments.len(), 14);
    for (moment, expected) in moments.iter().zip(starts.iter().chain(&stops)) {
        assert!((moment - expected).abs() < 2e-9, "{moments:?}");
    }
    let schedule = ClosedSchedule::new(&phases);
    assert!((schedule.target_at(secs(2.0)) - 3.0).abs() < 1e-9);
    // At its end the line rises by 8 ln 2 users a second.
    assert!((peak_rate(&phases) - 8.0 * 2f64.ln()).abs() < 1e-9);
}

#[test]
fn a_step_and_a_spike_jump() {
    let phases = [step(2, 10), spike(3, 2, 0, 5), step(1, 10)];
    let shown: Vec<String> = all_events(&phases, 1)
        .iter()
        .map(|event| format!("{:?} {:?} {}", event.at, event.change, event.user))
        .collect();
    let expected = ["0ns Start 0", "0ns Start 1", "10s Start 2", "15s Stop 2", "15s Stop 1"];
    assert_eq!(shown, expected);
    assert_eq!(
        (Phase::length_of(&phases), peak_users(&phases), peak_rate(&phases)),
        (secs(25.0), 3, 2.0)
    );
    let slow = ClosedSchedule::new(&[step(10, 1), spike(30, 10, 2, 4)]);
    let heights = [1.0, 2.0, 3.0, 6.9, 8.0, 9.0].map(|t| slow.target_at(secs(t)));
    assert_eq!(heights, [10.0, 20.0, 30.0, 30.0, 20.0, 10.0]);
}

#[test]
fn exponential_arrivals_have_their_exact_moments() {
    // 1/s to 1024/s over 10 s doubles each second: in the first t seconds, (2^t - 1) / ln 2.
    let moments = all_arrivals(&[exponential(1.0, 1_024.0, 10)], 3);
    assert_eq!(moments.len() as f64, (1_023.0 / 2f64.ln()).ceil());
    for (k, at) in moments.iter().enumerate() {
        let expected = (1.0 + k as f64 * 2f64.ln()).log2();
        assert!((at.as_secs_f64() - expected).abs() < 2e-9, "{k}: {at:?}");
    }
    // Falling, it is mirrored: the last of them come slowly.
    let falling = all_arrivals(&[exponential(1_024.0, 1.0, 10)], 1);
    assert_eq!(falling.len(), moments.len());
    let last = falling.last().unwrap().as_secs_f64();
    assert!((8.0..10.0).contains(&last), "{last}");
}

#[test]
fn recorded_arrivals_come_as_they_are_and_are_shared_by_the_cores() {
    let phases = [
        arrivals(10.0, 10.0, 1, None, Spacing::Even),
        recorded(&[0, 5, 5, 2_000_000_000]),
        recorded(&[1_000_000]),
    ];
    for cores in 1..7 {
        let moments = all_arrivals(&phases, cores);
        let expected = [secs(1.0), secs(1.000_000_005), secs(1.000_000_005), secs(3.0)];
        assert_eq!((moments.len(), &moments[10..14]), (15, &expected[..]), "{cores}");
        assert_eq!(moments[14], secs(3.002));
    }
    assert_eq!(arrivals_total(&phases), 15);
    let burst = [recorded(&[0, 999_999_999, 1_000_000_000, 1_500_000_000, 1_999_999_998])];
    assert_eq!((peak_rate(&burst), peak_users(&burst)), (4.0, 5));
}

#[test]
fn what_capacity_planning_asks() {
    let closed = [ramp(100_000, 100), hold(60), ramp(0, 100)];
    assert_eq!(
        (peak_users(&closed), peak_rate(&closed), arrivals_total(&closed)),
        (100_000, 1_000.0, 0)
    );
    let open = [arrivals(10.0, 500.0, 100, None, Spacing::Poisson)];
    assert_eq!(
        (peak_users(&open), peak_rate(&open), arrivals_total(&open)),
        (25_500, 500.0, 25_500)
    );
}

fn any_phases() -> impl Strategy<Value = Vec<Phase>> {
    let any = prop_oneof![
        (0u32..200, 1u64..20).prop_map(|(to, s)| ramp(to, s)),
        (0u32..200, 1u64..20).prop_map(|(to, s)| grow(to, s)),
        (0u32..200, 1u64..5).prop_map(|(to, s)| step(to, s)),
        (0u32..200, 0u64..5, 1u64..5).prop_map(|(to, over, s)| spike(to, 0, over, s)),
        (1u64..5).prop_map(hold)
    ];
    prop::collection::vec(any, 1..6).prop_map(|mut phases| {
        // A spike returns to the level before it.
        let mut users = 0;
        for phase in &mut phases {
            match phase {
                Phase::Ramp { to, .. } | Phase::Step { to, .. } => users = *to,
                Phase::Spike { back, .. } => *back = users,
                _ => {}
            }
        }
        phases
    })
}

proptest! {
    #[test]
    fn the_events_draw_the_line(phases in any_phases(), cores in 1usize..9) {
        let schedule = ClosedSchedule::new(&phases);
        let mut running = std::collections::BTreeSet::new();
        let events = all_events(&phases, cores);
        for (index, event) in events.iter().enumerate() {
            match event.change {
                UserChange::Start => {
                    prop_assert!(running.insert(event.user), "{} runs already", event.user)
                }
                UserChange::Stop => {
                    prop_assert!(running.remove(&event.user), "{} does not run", event.user)
                }
            }
            // A jump has many events at one moment; the line is met when it is over.
            if events.get(index + 1).is_some_and(|next| next.at == event.at) {
                continue;
            }
            let target = schedule.target_at(event.at);
            let error = (running.len() as f64 - target).abs();
            prop_assert!(error <= 1.0 + 1e-6, "{} of {target}", running.len());
            prop_assert!(running.len() as u64 <= peak_users(&phases));
        }
        prop_assert_eq!(running.len() as f64, schedule.target_at(schedule.length()).round());
        let lowest = 0..running.len() as u64;
        prop_assert!(running.iter().copied().eq(lowest), "the lowest numbers remain");
    }

    #[test]
    fn each_core_is_in_order_and_has_its_own_users(phases in any_phases(), cores in 1usize..9) {
        let schedule = ClosedSchedule::new(&phases);
        for core in 0..cores {
            let events: Vec<_> = schedule.events(core, cores).collect();
            prop_assert!(events.is_sorted_by_key(|event| event.at));
            prop_assert!(events.iter().all(|event| event.user % cores as u64 == core as u64));
        }
    }

    #[test]
    fn cores_together_arrive_as_one_would(
        from in 0.0f64..500.0,
        to in 0.0f64..500.0,
        seconds in 1u64..8,
        cores in 1usize..9,
        most in 1u64..3_000,
    ) {
        let phases = [
            arrivals(from, to + 0.1, seconds, Some(most), Spacing::Even),
            arrivals(to, from + 0.1, seconds, None, Spacing::Even),
        ];
        prop_assert_eq!(all_arrivals(&phases, cores), all_arrivals(&phases, 1));
        prop_assert_eq!(all_arrivals(&phases, cores).len() as u64, arrivals_total(&phases));
    }

    #[test]
    fn exponential_arrivals_are_as_many_as_the_rate_says(
        from in 0.1f64..500.0,
        to in 0.1f64..500.0,
        seconds in 1u64..8,
        cores in 1usize..9,
    ) {
        let phases = [exponential(from, to, seconds)];
        let moments = all_arrivals(&phases, cores);
        prop_assert_eq!(&moments, &all_arrivals(&phases, 1));
        prop_assert_eq!(moments.len() as u64, arrivals_total(&phases));
        // The integral, summed in small pieces.
        let pieces = 10_000;
        let width = seconds as f64 / f64::from(pieces);
        let rate = |piece: i32| {
            from * (to / from).powf((f64::from(piece) + 0.5) / f64::from(pieces))
        };
        let integral: f64 = (0..pieces).map(|piece| rate(piece) * width).sum();
        prop_assert!((moments.len() as f64 - integral).abs() < 1.01, "{integral}");
        prop_assert!(moments.iter().all(|at| *at <= Duration::from_secs(seconds)));
    }

    #[test]
    fn intended_counts_what_has_been_due(
        rate in 1.0f64..500.0,
        core in 0usize..3,
        poisson: bool,
        steps in prop::collection::vec(0u64..700, 1..10),
    ) {
        let spacing = if poisson { Spacing::Poisson } else { Spacing::Even };
        let phases = [
            arrivals(rate, rate * 2.0, 2, None, spacing),
            hold(1),
            arrivals(rate, rate, 1, None, spacing),
        ];
        let mut arrivals = Arrivals::new(&phases, core, 3, 9);
        let mut t = Duration::ZERO;
        for step in steps {
            t += Duration::from_millis(step);
            let due = Arrivals::new(&phases, core, 3, 9).take_while(|at| *at <= t).count();
            prop_assert_eq!(arrivals.intended_by(t), due as u64);
        }
    }

    #[test]
    fn a_pace_never_goes_back_and_counts_its_turns(
        from in 0.0f64..100.0,
        to in 0.1f64..100.0,
        over in 1u64..10,
        span in 1u64..20,
        is_exponential: bool,
    ) {
        let curve = if is_exponential { Curve::Exponential } else { Curve::Linear };
        let from = if is_exponential { from + 0.1 } else { from };
        let over = Duration::from_secs(over);
        let paced = PacedTurns::new(Pace::Rate { from, to, over, curve });
        let span = Duration::from_secs(span);
        let turns = paced.turns_in(span);
        prop_assert!((0..turns).map(|k| paced.due(k)).is_sorted());
        prop_assert!(turns == 0 || paced.due(turns - 1) < span);
        prop_assert!(paced.due(turns) >= span);
    }
}
