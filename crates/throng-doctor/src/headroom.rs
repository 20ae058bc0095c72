//! How much more would have fitted: what is left of the resource that was nearest to its end.

use throng_report::render::{count, rate};

use crate::case::{Case, End};

/// What was left of the scarcest resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Headroom {
    /// From 0, nothing, to 1.
    pub share_free: f64,
    /// Which resource it is, and how far it was used.
    pub of: String,
}

/// The least of what was left of each: none where nothing is known.
pub fn headroom(case: &Case<'_>) -> Option<Headroom> {
    let used = [cpus(case, End::Client), cpus(case, End::Server), ceiling(case), places(case)];
    let worst = used.into_iter().flatten().max_by(|one, other| one.0.total_cmp(&other.0));
    worst.map(|(used, of)| Headroom { share_free: (1.0 - used).max(0.0), of })
}

/// The share of an end's CPUs that was busy or stolen in the busiest second.
fn cpus(case: &Case<'_>, end: End) -> Option<(f64, String)> {
    let share = |(before, now)| {
        let (before, now) = (case.machine(end, before)?, case.machine(end, now)?);
        let taken =
            |machine: &throng_report::MachineUse| machine.cpu_busy_us + machine.cpu_stolen_us;
        let busy = taken(now).saturating_sub(taken(before));
        let idle = now.cpu_idle_us.saturating_sub(before.cpu_idle_us);
        (busy + idle > 0).then(|| busy as f64 / (busy + idle) as f64)
    };
    let most = case.steps().filter_map(share).max_by(f64::total_cmp)?;
    let whose = match (end, case.header.target_is_here) {
        (_, true) => "this machine",
        (End::Client, false) => "the generator's machine",
        (End::Server, false) => "the server's machine",
    };
    Some((most, format!("the CPUs of {whose} were busy for {:.0} % at most", most * 100.0)))
}

/// The share of what the generator was measured to do at most.
fn ceiling(case: &Case<'_>) -> Option<(f64, String)> {
    let ceiling = case.header.ceiling.as_ref()?;
    let share = |did: Option<f64>, can: Option<f64>, what: &str| {
        let (did, can) = (did?, can.filter(|can| *can > 0.0)?);
        Some((
            did / can,
            format!("the generator made {} of the {} {what} that it can", rate(did), rate(can)),
        ))
    };
    let connects = share(case.summary.connect.rate_most, ceiling.connects_per_s, "connects");
    let messages = share(case.summary.message.rate_most, ceiling.messages_per_s, "messages");
    [connects, messages].into_iter().flatten().max_by(|one, other| one.0.total_cmp(&other.0))
}

/// The share of the connections that the generator has fds and ports for.
fn places(case: &Case<'_>) -> Option<(f64, String)> {
    let can = case.header.capacity.filter(|can| *can > 0)?;
    let most = case.summary.users.connected_most;
    let of = format!(
        "{} of the {} connections that fds and ports allow",
        count(most as f64),
        count(can as f64)
    );
    Some((most as f64 / can as f64, of))
}
