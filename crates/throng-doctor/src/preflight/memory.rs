//! Checks of memory: of the machine, of the control group, and the pages of TCP's buffers.

use throng_machine::slabinfo::SlabCaches;
use throng_machine::{Fact, MachineLimits};
use throng_measure::Limit;
use throng_report::render::bytes;

use super::check::{Check, LimitValue, Remedy, Sufficiency};
use super::{MachineRole, Requirements};

/// Kernel memory for one side of an idle connection, if the sizes of kernel objects cannot be read.
/// From Linux 6.18 on x86-64.
pub const KERNEL_BYTES: u64 = 3_984;

/// Returns the kernel memory for one side of an idle connection on a machine with these objects,
/// its epoll watch included, or `None` if a cache is missing.
pub fn kernel_bytes(slabs: &SlabCaches, page_bytes: u64) -> Option<u64> {
    let cost = |name: &str| slabs.get(name).map(|slab| slab.cost_bytes(page_bytes));
    let mut all = EPPOLL_ENTRY_BYTES.saturating_add(cost("ep_head").unwrap_or(0));
    for name in ["TCP", "sock_inode_cache", "filp", "dentry", "eventpoll_epi"] {
        all = all.saturating_add(cost(name)?);
    }
    Some(all)
}

/// Checks the machine's free memory.
pub(super) fn machine(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let each = each(required, machine);
    let free =
        machine.memory.clone().map(|memory| memory.available_bytes.unwrap_or(memory.total_bytes));
    let found = free.map(|free| LimitValue::linear(free / 100 * FREE_PERCENT, each.total(), 0));
    let needs = required.connections.saturating_mul(each.total());
    let check = Check::stops("memory", "memory", required.connections, needs, found)
        .in_bytes()
        .at_times(required.held_bytes);
    let needs = check.needs;
    let because = format!("{}; {FREE_PERCENT} % of the free memory", each.describe(required));
    Some(check.because(because).else_do(|| {
        // The amount that the check above accepts, which counts in whole hundreds of bytes.
        let enough = needs.div_ceil(FREE_PERCENT).saturating_mul(100);
        let short = machine
            .memory
            .known()
            .map_or(0, |m| enough.saturating_sub(m.available_bytes.unwrap_or(m.total_bytes)));
        let smaller = match required.held_bytes {
            0 => "",
            _ => ", or smaller messages and `held_bytes_max`",
        };
        Remedy::command(format!(
            "add {} of memory, or plan fewer connections a machine{smaller}",
            bytes(short as f64)
        ))
    }))
}

/// Checks the memory left in the tightest control group.
pub(super) fn cgroup(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let group = match &machine.cgroup_memory {
        Fact::Known(None) => return None,
        Fact::Known(Some(group)) => Fact::Known(*group),
        Fact::Unknown(why) => Fact::Unknown(why.clone()),
    };
    let taken = group.known().map_or(0, |group| group.taken_bytes);
    let free = group.map(|group| group.left_bytes());
    let each = each(required, machine);
    let needs = required.connections.saturating_mul(each.total());
    let found = free.map(|free| LimitValue::linear(free / 100 * FREE_PERCENT, each.total(), 0));
    let check = Check::stops(
        "cgroup_memory",
        "memory of the control group",
        required.connections,
        needs,
        found,
    );
    let check = check.in_bytes().at_times(required.held_bytes);
    let needs = check.needs;
    Some(check.because(each.describe(required)).else_do(|| {
        Remedy::command(format!(
            "systemctl set-property UNIT MemoryMax={}",
            (needs.saturating_mul(100) / FREE_PERCENT).saturating_add(taken)
        ))
        .or("docker run --memory")
    }))
}

/// Checks the pages for the buffers of all sockets.
pub(super) fn buffers(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let used = machine.tcp_mem_used_pages.known().copied().unwrap_or(0);
    let needs = required.connections.div_ceil(CONNECTIONS_PER_BUFFER_PAGE);
    let found = machine.tcp_mem.clone().map(|[_, _, max]| {
        let has = max.saturating_sub(used);
        let enough = Sufficiency::For(has.saturating_mul(CONNECTIONS_PER_BUFFER_PAGE));
        LimitValue { has, enough }
    });
    let check = Check::stops(
        "tcp_mem",
        format!("{}, pages left", Limit::TCP_MEMORY),
        required.connections,
        needs,
        found,
    );
    let because = format!(
        "a page for {CONNECTIONS_PER_BUFFER_PAGE} connections: buffers are nearly always empty"
    );
    Some(check.because(because).else_do(|| {
        let old = machine.tcp_mem.known().copied().unwrap_or([0; 3]);
        let most = needs.saturating_add(used);
        let new = [old[0].max(most / 2), old[1].max(most * 3 / 4), old[2].max(most)];
        let show = |pages: [u64; 3]| pages.map(|pages| pages.to_string()).join(" ");
        Remedy::sysctl(Limit::TCP_MEMORY, show(old), show(new))
    }))
}

/// The memory of one connection.
struct ConnectionMemory {
    /// Bytes of its sockets.
    socket_bytes: u64,
    user_bytes: u64,
    /// Contexts of permessage-deflate, which a generator keeps.
    context_bytes: u64,
    /// Owner of the sockets, and the source of their size.
    whose: &'static str,
}

impl ConnectionMemory {
    fn total(&self) -> u64 {
        self.socket_bytes.saturating_add(self.user_bytes).saturating_add(self.context_bytes)
    }

    /// Describes the memory and its source.
    fn describe(&self, required: &Requirements) -> String {
        let contexts = match self.context_bytes {
            0 => String::new(),
            bytes => format!(" + up to {bytes} B of contexts of permessage-deflate"),
        };
        let held = match required.held_bytes {
            0 => String::new(),
            held => format!("; up to {} for messages that are not complete", bytes(held as f64)),
        };
        format!(
            "{} B of {} + {} B of {}{contexts} each{held}",
            self.socket_bytes,
            self.whose,
            self.user_bytes,
            if required.ends() == 1 { "program" } else { "both programs" }
        )
    }
}

/// Computes the memory of one connection.
fn each(required: &Requirements, machine: &MachineLimits) -> ConnectionMemory {
    let read = machine.slabs.known().and_then(|slabs| kernel_bytes(slabs, machine.page_bytes));
    let kernel = read.unwrap_or(KERNEL_BYTES);
    let client = required.client_connection_bytes;
    let (server_bytes, client_bytes) = match required.role {
        MachineRole::Server => (kernel, 0),
        MachineRole::Client => (0, client.unwrap_or(kernel)),
        MachineRole::Both => (kernel, client.unwrap_or(kernel)),
    };
    ConnectionMemory {
        socket_bytes: server_bytes.saturating_add(client_bytes),
        user_bytes: required.user_bytes.saturating_mul(required.ends()),
        context_bytes: match required.role {
            MachineRole::Server => 0,
            MachineRole::Client | MachineRole::Both => required.context_bytes,
        },
        whose: match (client, required.role, read) {
            (Some(_), MachineRole::Client, _) => "driver",
            (_, _, Some(_)) => "kernel (this machine's slabs)",
            (_, _, None) => "kernel (as of Linux 6.18: slabinfo is not readable)",
        },
    }
}

/// Bytes of `struct eppoll_entry`, whose cache is merged with another one and has no line of its
/// own.
const EPPOLL_ENTRY_BYTES: u64 = 64;
/// The share of the free memory that connections may use: the rest is for data in flight and other
/// programs.
const FREE_PERCENT: u64 = 90;
/// Connections whose buffers share a page on average: connections that send a few bytes now and
/// then have empty buffers nearly always. If the limit is reached, `TCPMemoryPressures` shows it.
const CONNECTIONS_PER_BUFFER_PAGE: u64 = 16;
