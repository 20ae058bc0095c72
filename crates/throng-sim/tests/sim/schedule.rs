//! The schedule of a large fleet is that of one machine: 40 machines and 10 million users, one
//! after the other, of which none is kept.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use throng_load::scenario::{Curve, Phase, Spacing};
use throng_load::schedule::{
    Arrivals, ClosedSchedule, MachineShare, ScheduleEvent, UserChange, arrivals_total, peak_users,
};
use throng_load::source::SourcePlan;

const MACHINES: usize = 40;
const USERS: u32 = 10_000_000;

/// Returns the cores of all machines, of which each has one to four: each core as its machine
/// numbers it among all.
fn slots() -> Vec<(usize, usize)> {
    let cores: Vec<_> = (0..MACHINES).map(|machine| 1 + machine % 4).collect();
    let shares = MachineShare::deal(&cores);
    let of = |share: MachineShare| (0..share.cores()).map(move |core| share.slot(core));
    shares.into_iter().flat_map(of).collect()
}

fn ramp(to: u32, seconds: u64, curve: Curve) -> Phase {
    Phase::Ramp { to, over: Duration::from_secs(seconds), curve }
}

fn arrivals(from: f64, to: f64, seconds: u64, most: u32, spacing: Spacing) -> Phase {
    let (span, most) = (Duration::from_secs(seconds), Some(most.into()));
    Phase::Arrivals { from, to, curve: Curve::Linear, span, most, spacing }
}

#[test]
fn the_cores_of_all_machines_are_numbered_as_those_of_one() {
    let slots = slots();
    let alone = MachineShare::whole(slots.len());
    assert_eq!(slots.len(), 100);
    assert!((0..100).map(|core| alone.slot(core)).eq(slots));
}

#[test]
fn users_of_the_closed_model_begin_and_end_as_on_one_machine() {
    let phases = [
        ramp(USERS, 1_000, Curve::Linear),
        Phase::Hold { span: Duration::from_secs(60), until_done: false },
        ramp(USERS / 2, 333, Curve::Exponential),
    ];
    let schedule = ClosedSchedule::new(&phases);
    let mut cores: Vec<_> =
        slots().into_iter().map(|(slot, slots)| schedule.events(slot, slots)).collect();
    let (mut starts, mut stops) = (0_u64, 0_u64);
    let count = cores.len() as u64;
    for event in schedule.events(0, 1) {
        // The core of a user follows from its number, so no other core has it.
        let ScheduleEvent { user, change, .. } = event;
        assert_eq!(cores[(user % count) as usize].next(), Some(event));
        match change {
            UserChange::Start => starts += 1,
            UserChange::Stop => stops += 1,
        }
    }
    assert!(cores.iter_mut().all(|core| core.next().is_none()));
    assert_eq!((starts, stops), (u64::from(USERS), u64::from(USERS / 2)));
    assert_eq!(peak_users(&phases), u64::from(USERS));
}

#[test]
fn arrivals_come_at_the_moments_of_one_machine() {
    let recorded: Vec<u64> = (0..100_003).map(|n| n * 7_000).collect();
    let phases = [
        arrivals(0.0, 20_000.0, 900, USERS - 100_003, Spacing::Even),
        Phase::Recorded { moments_ns: recorded.into(), span: Duration::from_secs(1) },
    ];
    let slots = slots();
    let mut cores: Vec<_> =
        slots.iter().map(|&(slot, slots)| Arrivals::new(&phases, slot, slots, 1)).collect();
    let mut count = 0;
    for (user, moment) in Arrivals::new(&phases, 0, 1, 1).enumerate() {
        assert_eq!(cores[user % slots.len()].next(), Some(moment), "user {user}");
        count = user + 1;
    }
    assert!(cores.iter_mut().all(|core| core.next().is_none()));
    assert_eq!(arrivals_total(&phases), count as u64);
    assert!(count > 8_000_000, "{count}");
}

#[test]
fn random_arrivals_are_those_of_one_machine_with_as_many_cores() {
    let phases = [arrivals(20_000.0, 20_000.0, 600, USERS / 10, Spacing::Poisson)];
    let slots = slots();
    let alone = MachineShare::whole(slots.len());
    let mut count = 0;
    for (core, &(slot, of)) in slots.iter().enumerate() {
        let (own, owns) = alone.slot(core);
        let fleet = Arrivals::new(&phases, slot, of, 7);
        assert!(fleet.clone().eq(Arrivals::new(&phases, own, owns, 7)), "core {core}");
        count += fleet.count();
    }
    // `most` is dealt exactly, with random gaps, too.
    assert_eq!(count, (USERS / 10) as usize);
}

#[test]
fn the_cores_of_a_machine_share_its_source_addresses_and_no_port_is_assigned_twice() {
    let addresses: Vec<IpAddr> =
        (1..=64).map(|host| IpAddr::V4(Ipv4Addr::new(198, 18, 1, host))).collect();
    let plan = SourcePlan::Explicit(addresses.into(), 1_024..=65_535);
    for cores in 1..=4 {
        let users = 250_000;
        let mut alone = plan.of_core(0, 1);
        let mut own: Vec<_> = (0..cores).map(|core| plan.of_core(core, cores)).collect();
        for user in 0..users {
            let expected = format!("{:?}", alone.choose());
            assert_eq!(format!("{:?}", own[user % cores].choose()), expected, "{user} of {cores}");
        }
    }
}
