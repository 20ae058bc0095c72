//! Faults at random: whatever happens, what is recorded adds up.

use std::time::Duration;

use proptest::prelude::*;

use super::World;

/// A fault, for so many seconds.
#[derive(Clone, Copy, Debug)]
enum Fault {
    BusAway(u64),
    Cut(usize, u64),
    Stop(usize, u64),
    Coordinator(u64),
    Clock(usize, i64),
    /// The coordinator may follow so many milliseconds later.
    Kill(usize, u64),
    Loss(u64),
}

fn any_fault() -> impl Strategy<Value = Fault> {
    let site = 0..3_usize;
    prop_oneof![
        (1..40_u64).prop_map(Fault::BusAway),
        (site.clone(), 1..20_u64).prop_map(|(site, time)| Fault::Cut(site, time)),
        (site.clone(), 1..20_u64).prop_map(|(site, time)| Fault::Stop(site, time)),
        (4..40_u64).prop_map(Fault::Coordinator),
        (site.clone(), -3_000_000..3_000_000_i64).prop_map(|(site, us)| Fault::Clock(site, us)),
        (site, 0..5_000_u64).prop_map(|(site, ms)| Fault::Kill(site, ms)),
        (1..15_u64).prop_map(Fault::Loss),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_sums_hold_whatever_happens(
        seed in any::<u64>(),
        faults in prop::collection::vec((0..6_000_u64, any_fault()), 1..5),
    ) {
        let mut world = World::running(seed, 2);
        let names = ["a", "b", "c"];
        let mut killed = Vec::new();
        for (number, (after_ms, fault)) in faults.into_iter().enumerate() {
            world.pass(Duration::from_millis(after_ms));
            let is_there = |site: usize, killed: &[usize]| !killed.contains(&site);
            match fault {
                Fault::BusAway(time) => {
                    world.bus.is_away = true;
                    world.pass(Duration::from_secs(time));
                    world.bus.is_away = false;
                }
                Fault::Cut(site, time) => {
                    world.bus.cut = vec![names[site].into()];
                    world.pass(Duration::from_secs(time));
                    world.bus.cut.clear();
                }
                Fault::Stop(site, time) if is_there(site, &killed) => {
                    world.sites.get_mut(names[site]).unwrap().is_paused = true;
                    world.pass(Duration::from_secs(time));
                    world.sites.get_mut(names[site]).unwrap().is_paused = false;
                }
                Fault::Coordinator(time) => {
                    world.kill_recorder();
                    world.pass(Duration::from_secs(time));
                    let name = format!("successor-{number}");
                    prop_assert!(world.resume(&name));
                }
                Fault::Clock(site, us) if is_there(site, &killed) => {
                    world.sites.get_mut(names[site]).unwrap().step_clock(us);
                }
                // One machine at least stays.
                Fault::Kill(site, ms) if is_there(site, &killed) && killed.len() < 2 => {
                    world.kill_site(names[site]);
                    killed.push(site);
                    world.pass(Duration::from_millis(ms));
                }
                Fault::Loss(time) => {
                    (world.bus.lost, world.bus.repeated) = (300, 300);
                    world.pass(Duration::from_secs(time));
                    (world.bus.lost, world.bus.repeated) = (0, 0);
                }
                Fault::Stop(..) | Fault::Clock(..) | Fault::Kill(..) => {}
            }
            if world.recorder.as_ref().unwrap().state.is_over(world.now) {
                break;
            }
        }
        world.finish();
        world.check_sums();
        let living: Vec<_> =
            names.iter().enumerate().filter(|(site, _)| !killed.contains(site)).collect();
        let lost = world.lost();
        for (_, name) in living {
            // One that was away for too long at the end is told.
            if !lost.contains(name) {
                world.check_whole(&[name]);
            }
        }
    }
}
