//! Devices start and stop by Stressgrid's schedule, to within 1 %: tested on the compiled schedule.

use std::time::Duration;

use throng_load::schedule::ClosedSchedule;

use super::parse;
use crate::import_text;

fn schedule(text: &str, name: &str) -> ClosedSchedule {
    let import = import_text(text, name).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    ClosedSchedule::new(parse(&import.scenario).load.shared())
}

/// Returns a plan with these options.
fn plan(sizes: &[u64], steps: u64, up_ms: u64, sustain_ms: u64, down_ms: u64) -> String {
    let block = |size: &u64| format!(r#"{{"script": "delay(1000)", "size": {size}}}"#);
    let blocks: Vec<_> = sizes.iter().map(block).collect();
    format!(
        r#"[{{"start_run": {{"name": "x",
            "addresses": [{{"host": "h", "port": 1, "protocol": "tcp"}}],
            "blocks": [{}], "opts": {{"ramp_steps": {steps}, "rampup_step_ms": {up_ms},
            "sustain_ms": {sustain_ms}, "rampdown_step_ms": {down_ms}}}}}}}]"#,
        blocks.join(",")
    )
}

/// Returns the devices that run at `ms`, as the coordinator's scheduler starts and stops cohorts.
fn devices_at(
    sizes: &[u64],
    (steps, up_ms, sustain_ms, down_ms): (u64, u64, u64, u64),
    ms: u64,
) -> f64 {
    let cohort: u64 = sizes.iter().map(|size| size / steps).sum();
    let started = (ms / up_ms + 1).min(steps);
    let top_until = steps * up_ms + sustain_ms;
    let stopped = if ms < top_until { 0 } else { ((ms - top_until) / down_ms + 1).min(steps) };
    (cohort * (started - stopped)) as f64
}

#[test]
fn plans_are_exact() {
    for (sizes, opts) in [
        (&[1000][..], (100, 1000, 30_000, 500)),
        (&[1050, 350], (100, 500, 60_000, 100)),
        (&[999], (10, 70, 0, 70)),
        (&[7], (7, 1000, 5000, 2000)),
        (&[50], (1, 1000, 5000, 2000)),
        (&[100], (2, 3000, 1000, 2000)),
    ] {
        let (steps, up_ms, sustain_ms, down_ms) = opts;
        let schedule = schedule(&plan(sizes, steps, up_ms, sustain_ms, down_ms), "plan.json");
        let end = steps * up_ms + sustain_ms + steps * down_ms;
        // Between two steps: at a step the line goes up.
        for ms in (0..end).step_by((end / 1000).max(1) as usize) {
            let is_step =
                ms % up_ms == 0 || (ms.wrapping_sub(steps * up_ms + sustain_ms)) % down_ms == 0;
            if is_step {
                continue;
            }
            let expected = devices_at(sizes, opts, ms);
            let got = schedule.target_at(Duration::from_millis(ms));
            // After a single step, nothing is left to be told.
            assert!(
                (got - expected).abs() < 0.5 || steps == 1 && expected == 0.0,
                "{opts:?} {ms}: {got} {expected}"
            );
        }
    }
}

#[test]
fn ramps_of_a_command_are_within_one_per_cent() {
    // One generator: steps of 10 devices.
    for (size, up_s, sustain_s, down_s) in
        [(10_000u64, 900u64, 900u64, 900u64), (100_000, 900, 60, 900), (2000, 5, 3, 2)]
    {
        let text = format!(
            "# sgcli run x y -s {size} --target-protocol tcp --rampup {up_s} --sustain {sustain_s} \
             --rampdown {down_s}\ndelay(1000)\n"
        );
        let schedule = schedule(&text, "script.exs");
        let steps = size / 10;
        let up_ms = up_s as f64 * 1000.0 / steps as f64;
        let down_ms = down_s as f64 * 1000.0 / steps as f64;
        let end_ms = (up_s + sustain_s + down_s) * 1000;
        for ms in (0..end_ms).step_by((end_ms / 997) as usize) {
            let started = ((ms as f64 / up_ms).floor() + 1.0).min(steps as f64);
            let after = ms as f64 - ((up_s + sustain_s) * 1000) as f64;
            let stopped = if after < 0.0 { 0.0 } else { (after / down_ms).floor() + 1.0 };
            let expected = 10.0 * (started - stopped).max(0.0);
            let got = schedule.target_at(Duration::from_millis(ms));
            assert!((got - expected).abs() <= 0.01 * size as f64, "{size} {ms}: {got} {expected}");
        }
    }
}

#[test]
fn blocks_have_their_shares() {
    let import = import_text(&plan(&[1050, 350], 100, 500, 60_000, 100), "plan.json").unwrap();
    let scenario = parse(&import.scenario);
    let weights: Vec<_> = scenario.classes.iter().map(|class| class.weight).collect();
    assert_eq!(weights, [10, 3]);
    assert!(import.fidelity.to_string().contains("1300 of 1400"));
}
