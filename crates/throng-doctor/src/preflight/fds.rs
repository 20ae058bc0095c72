//! Checks of files: fd tables, the machine's open files, and the threads that own the tables.

use std::ops::RangeInclusive;

use throng_driver::fdtable::{self, FdTables};
use throng_machine::status::Capability;
use throng_machine::{Fact, MachineLimits};
use throng_measure::Limit;

use super::check::{Check, LimitValue, Remedy, Sufficiency};
use super::{MachineRole, Requirements};

/// Checks the fd tables of one program.
pub(super) fn tables(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let limit = table_limit(machine);
    let private = is_private(machine);
    let found = limit.clone().map(|limit| {
        let least = cores_least(required, machine);
        let most = if private { cores_most(required) } else { least };
        let holds = most_of(required, machine, limit, least..=most);
        LimitValue::linear(holds, 1, 0)
    });
    let table = limit.known().map_or(0, |limit| *limit);
    let cores = cores_for(required, machine, required.connections);
    let each_end = required.role.each();
    let because = if private {
        // `throng run` takes the cores that it needs, and a server one for each CPU.
        let must_ask = required.accepts() && required.cores.is_none() && cores > machine.cpus;
        let flag = if must_ask { format!("; throng serve --cores {cores}") } else { String::new() };
        let cores = count_cores(cores);
        format!("{} {table}, a table for each core: {cores}{each_end}{flag}", Limit::FDS)
    } else {
        format!("{} {table}, one table{each_end}: its cores cannot have their own", Limit::FDS)
    };
    let check =
        Check::stops("fd_tables", "fd tables", required.connections, required.connections, found);
    Some(check.because(because).else_do(|| raise_table(required, machine, private, table)))
}

/// Checks the open files of the whole machine.
pub(super) fn files(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let needs = required.connections.saturating_mul(required.ends()).saturating_add(FILES_RESERVED);
    let found = machine.files.clone().map(|files| {
        LimitValue::linear(files.max.saturating_sub(files.open), required.ends(), FILES_RESERVED)
    });
    let exempt = machine.may(Capability::SysAdmin);
    let make = if exempt { Check::slows } else { Check::stops };
    let open = machine.files.known().map_or(0, |files| files.open);
    let also = if exempt { "; this user is exempt (CAP_SYS_ADMIN)" } else { "" };
    let check = make(
        "fs_file_max",
        format!("{} less open files", Limit::FILES),
        required.connections,
        needs,
        found,
    );
    Some(
        check
            .because(format!("{} each + {FILES_RESERVED} for other files{also}", required.ends()))
            .else_do(|| {
                let max = machine.files.known().map_or(0, |files| files.max);
                Remedy::sysctl(Limit::FILES, max, needs.saturating_add(open))
            }),
    )
}

/// Checks the threads: one for each table, and a few more.
pub(super) fn threads(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let private = is_private(machine);
    let limit = *table_limit(machine).known()?;
    let cores = cores_for(required, machine, required.connections);
    let needs = (cores + THREADS_BESIDE) * required.ends();
    let found = machine.threads.clone().map(|(free, _)| {
        let cores_left = (free / required.ends()).saturating_sub(THREADS_BESIDE);
        let least = cores_least(required, machine);
        let holds = |cores: u64| most_of(required, machine, limit, least..=cores);
        let enough = if private && holds(cores_left) < holds(cores_most(required)) {
            Sufficiency::For(holds(cores_left))
        } else {
            // More threads would not help: then the fd tables are the limit.
            Sufficiency::Whatever(cores_left >= least)
        };
        LimitValue { has: free, enough }
    });
    let name = machine.threads.known().map_or(Limit::THREADS.name(), |(_, name)| name);
    let check = Check::stops(
        "threads",
        format!("threads left by {name}"),
        required.connections,
        needs,
        found,
    );
    Some(
        check
            .because(format!("{} + {THREADS_BESIDE}{}", count_cores(cores), required.role.each()))
            .else_do(|| match name {
                name if name == Limit::THREADS.name() => {
                    let free = machine.threads.known().map_or(0, |(free, _)| *free);
                    Remedy::command(format!(
                        "sysctl -w {name}=$(( $(sysctl -n {name}) + {} ))",
                        needs.saturating_sub(free)
                    ))
                }
                "RLIMIT_NPROC" => {
                    let free = machine.threads.known().map_or(0, |(free, _)| *free);
                    Remedy::command(format!(
                        "ulimit -u $(( $(ulimit -u) + {} ))   (as root, in the shell that starts \
                         it)",
                        needs.saturating_sub(free)
                    ))
                }
                _ => Remedy::command(format!("systemctl set-property UNIT TasksMax={}", needs * 2)),
            }),
    )
}

/// Returns the cores of a program that holds `connections`: as many as CPUs, or as the fd tables
/// need.
pub fn cores_for(required: &Requirements, machine: &MachineLimits, connections: u64) -> u64 {
    let least = cores_least(required, machine);
    let limit = match table_limit(machine) {
        Fact::Known(limit) if is_private(machine) => limit,
        _ => return least,
    };
    let holds = |cores: u64| held(required, machine, limit, cores);
    let cores = (least..=cores_most(required)).find(|cores| holds(*cores) >= connections);
    cores.unwrap_or_else(|| {
        (least..=cores_most(required)).max_by_key(|cores| holds(*cores)).unwrap_or(least)
    })
}

/// Returns the most connections that the tables of this many cores hold. More tables are smaller
/// tables.
fn most_of(
    required: &Requirements,
    machine: &MachineLimits,
    limit: u64,
    cores: RangeInclusive<u64>,
) -> u64 {
    cores.map(|cores| held(required, machine, limit, cores)).max().unwrap_or(0)
}

/// Formats a number of cores: `1 core`, `51 cores`.
fn count_cores(cores: u64) -> String {
    if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") }
}

/// Returns the number of fds in one table, with the reserved ones.
fn table_limit(machine: &MachineLimits) -> Fact<u64> {
    let nr_open = machine.nr_open.known().copied().unwrap_or(u64::MAX);
    match &machine.fds_hard {
        Fact::Known(Some(hard)) => Fact::Known((*hard).min(nr_open)),
        // The kernel's default, if neither is known.
        Fact::Known(None) => Fact::Known(
            nr_open.min(NR_OPEN_DEFAULT.max(machine.nr_open.known().copied().unwrap_or(0))),
        ),
        Fact::Unknown(why) => Fact::Unknown(why.clone()),
    }
}

/// Reports whether each core has an fd table of its own. If that could not be tried, they are
/// assumed to share one.
fn is_private(machine: &MachineLimits) -> bool {
    machine.private_fds.known().copied().unwrap_or(false)
}

/// Returns the connections that the tables of this many cores hold.
fn held(required: &Requirements, machine: &MachineLimits, limit: u64, cores: u64) -> u64 {
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let tables = FdTables { limit: whole(limit), private: is_private(machine) };
    let all = tables.connections(whole(cores));
    match (tables.private, required.role) {
        (false, _) | (true, MachineRole::Client) => all,
        // A server's table also has its listener.
        (true, _) => all.saturating_sub(cores),
    }
}

/// Returns the fewest cores: the given number, or the CPUs.
fn cores_least(required: &Requirements, machine: &MachineLimits) -> u64 {
    required.cores.unwrap_or(machine.cpus).max(1)
}

/// Returns the most cores: the given number, or as many as throng supports.
fn cores_most(required: &Requirements) -> u64 {
    required.cores.unwrap_or(fdtable::CORES_MAX as u64).max(1)
}

/// Returns the change that makes the fd tables large enough.
fn raise_table(
    required: &Requirements,
    machine: &MachineLimits,
    private: bool,
    table: u64,
) -> Remedy {
    let cores = cores_least(required, machine);
    let share = if private { required.connections.div_ceil(cores) } else { required.connections };
    // The connections in a table grow one for one with its limit.
    let tables = if private { cores } else { 1 };
    let in_one = held(required, machine, table, cores) / tables;
    let needed = share.saturating_add(table.saturating_sub(in_one).max(RESERVED_LEAST));
    let mut steps = Vec::new();
    if let Some(nr_open) = machine.nr_open.known().filter(|nr_open| **nr_open < needed) {
        let sysctl = Remedy::sysctl(Limit::FDS_CEILING, nr_open, needed);
        steps.push(sysctl);
    }
    let ulimit = Limit::FDS.raise(needed);
    let by_root = match machine.status.known() {
        Some(status) if status.has(Capability::SysResource) => "in the shell that starts it",
        Some(status) if status.bounding & (1 << Capability::SysResource as u8) == 0 => {
            "not possible here: no process can get CAP_SYS_RESOURCE; plan fewer connections a \
             machine"
        }
        _ => "as root, in the shell that starts it, or LimitNOFILE= of its unit",
    };
    let mut remedy = match steps.pop() {
        Some(sysctl) => Remedy { command: format!("{} && {ulimit}", sysctl.command), ..sysctl },
        None => Remedy::command(ulimit),
    };
    remedy.command += &format!("   ({by_root})");
    if let Some(cores) = more_cores(required, machine, private, table) {
        remedy = Remedy::command(format!("--cores {cores}"));
    }
    remedy
}

/// Returns the number of cores whose tables, at their present size, are enough, or `None` if no
/// number of cores is.
fn more_cores(
    required: &Requirements,
    machine: &MachineLimits,
    private: bool,
    table: u64,
) -> Option<u64> {
    if !private || required.cores.is_none() {
        return None;
    }
    let unfixed = Requirements { cores: None, ..required.clone() };
    let cores = cores_for(&unfixed, machine, required.connections);
    (held(&unfixed, machine, table, cores) >= required.connections).then_some(cores)
}

/// Files for other programs that start during the run, and for throng besides its connections.
const FILES_RESERVED: u64 = 1_024;
/// The kernel's default of [`Limit::FDS_CEILING`].
const NR_OPEN_DEFAULT: u64 = 1 << 20;
/// The reserved fds of a table that is too small for any connection.
const RESERVED_LEAST: u64 = fdtable::RESERVED as u64;
/// Threads for the control socket, the recorder and the signals of one program.
const THREADS_BESIDE: u64 = 8;
